package stateproxy

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// fenceFile in an attempt's directory says that the customer took its lock away.
const fenceFile = "state-fenced.json"

// Fence shuts an attempt, by its directory, out of its state for good: it takes no lock
// and writes no state any more, also when a later agent serves it or its engine comes
// back. What it still brings is kept as evidence. An engine reaches its state only
// through the proxy of its attempt. It may be called again.
func Fence(attemptDir, why string) error {
	if _, err := os.Stat(attemptDir); errors.Is(err, fs.ErrNotExist) {
		return nil // over, with its proxy
	}
	return datadir.WriteJSON(filepath.Join(attemptDir, fenceFile), map[string]string{"reason": why})
}

// fenced says why this attempt is shut out, nil when it is not. A file that cannot be
// looked for shuts out too.
func (p *Proxy) fenced() error {
	_, err := os.Stat(filepath.Join(p.Dir, fenceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &control.Error{Status: http.StatusConflict, Code: "state_fenced", Detail: "the customer has freed the lock of this job; it writes no state any more"}
}
