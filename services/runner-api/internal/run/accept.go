// Package run decides on reports of runs that runners start by themselves.
package run

import (
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"

	"github.com/berth-dev/berth/services/internal/model"
)

// Verdict is what becomes of a report.
type Verdict string

// The verdicts.
const (
	Recorded Verdict = "recorded" // the run is in the reported state now
	Replayed Verdict = "replayed" // it was before
	Finished Verdict = "finished" // it has ended otherwise; refused
)

// Stored is what is known of the run. A run that was just made is "queued", and
// so is one that waits.
type Stored struct {
	State    model.RunState
	ExitCode int
	Error    string
}

// Accept decides on a report. An end is never taken back: a late "queued" or
// "running" of a run that has ended changes nothing and is no error, since reports may
// overtake each other.
func Accept(stored Stored, r jobspec.Run) Verdict {
	state := model.RunState(r.State)
	switch stored.State {
	case model.RunQueued:
		return Recorded
	case model.RunRunning:
		if state == model.RunRunning || state == model.RunQueued {
			return Replayed
		}
		return Recorded
	}
	if state == model.RunRunning || state == model.RunQueued || (state == stored.State && r.ExitCode == stored.ExitCode && r.Error == stored.Error) {
		return Replayed
	}
	return Finished
}

// HasLog reports whether a log is kept of a run that is reported so. A look whose first report is its
// end has said all in it. One that
// never began has nothing to say, unless it said something already.
func HasLog(r jobspec.Run, open bool) bool {
	probe := strings.HasPrefix(r.Action, jobspec.ProbePrefix)
	state := model.RunState(r.State)
	return open || state != model.RunMissed && !(probe && state.Ended())
}
