package job

import (
	"os"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// progressFile is where the agent looks for what the engine does right now.
const progressFile = "progress.json"

// Show says what the engine does right now, in place of what it said before; the
// zero value takes that back. It may fail in silence: nothing depends on it. One
// goroutine at a time may call it.
func (j *Job) Show(p jobspec.Progress) {
	if p == j.shown {
		return
	}
	j.shown = p
	path := j.Out(progressFile)
	if p == (jobspec.Progress{}) {
		_ = os.Remove(path)
		return
	}
	if err := WriteJSON(path+".new", p); err == nil {
		_ = os.Rename(path+".new", path) // the agent never reads half of it
	}
}
