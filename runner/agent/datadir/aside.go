package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
)

// asideReason ends the name of the file that says why another is there.
const asideReason = ".reason.json"

// Aside says why something is in the evidence directory.
type Aside struct {
	File   string    `json:"file"` // where it was
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// SetAside moves a damaged file or directory to the evidence of name (an
// attempt, or "agent"), where nobody cleans up, with a file next to it that says
// why. It returns where it is now; "" when there was nothing to move.
func (d Dir) SetAside(path, name string, why error) (string, error) {
	dir := d.Evidence(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("set damaged %s aside: %w", path, err)
	}
	at := time.Now().UTC()
	to := filepath.Join(dir, fmt.Sprintf("%s.damaged-%s", filepath.Base(path), at.Format("20060102T150405.000000000")))
	if err := os.Rename(path, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return "", fmt.Errorf("set damaged %s aside: %w", path, err)
	}
	return to, errors.Join(WriteJSON(to+asideReason, Aside{File: path, Reason: why.Error(), At: at}), durable.SyncDir(filepath.Dir(path)))
}

// SetAsideFiles lists what SetAside has moved, of all attempts.
func (d Dir) SetAsideFiles() ([]string, error) {
	reasons, err := filepath.Glob(d.join("evidence", "*", "*"+asideReason))
	if err != nil {
		return nil, err
	}
	files := make([]string, len(reasons))
	for i, path := range reasons {
		files[i] = strings.TrimSuffix(path, asideReason)
	}
	return files, nil
}

// ReadOrSetAside reads a file that may be lost without harm. One that is damaged
// is set aside and told to the caller by damaged; v is then as if there were
// none.
func ReadOrSetAside[T any](d Dir, path string, v *T) (found bool, damaged error) {
	found, err := ReadJSON(path, v)
	if err == nil {
		return found, nil
	}
	var none T
	*v = none
	to, moved := d.SetAside(path, "agent", err)
	if moved != nil {
		return false, errors.Join(err, moved)
	}
	return false, fmt.Errorf("%w; it was set aside as %s", err, to)
}
