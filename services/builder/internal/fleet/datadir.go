package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/pkg/durable"
)

// dataDir is the data directory of a runner. Of what is in it the builder
// writes only what a customer writes for an Install Runner; the rest is the
// runner's own.
type dataDir string

func (d dataDir) trust() string     { return filepath.Join(string(d), "trust.json") }
func (d dataDir) config() string    { return filepath.Join(string(d), "config.json") }
func (d dataDir) enrolment() string { return filepath.Join(string(d), "secrets", "enrolment") }
func (d dataDir) identity() string  { return filepath.Join(string(d), "identity") }
func (d dataDir) enrolled() string  { return filepath.Join(string(d), "runner.json") }
func (d dataDir) lock() string      { return filepath.Join(string(d), "lock") }
func (d dataDir) log() string       { return filepath.Join(string(d), "agent.log") }

// settings are the runner's, as far as its owner chooses them.
type settings struct {
	// EngineUID is the user of its engines; absent: that of the runner.
	EngineUID int `json:"engine_uid,omitempty"`
}

func (d dataDir) make() error {
	for _, dir := range []string{string(d), filepath.Dir(d.enrolment())} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	return nil
}

func (d dataDir) has(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// locked tells whether a runner is active in the directory.
func (d dataDir) locked() bool {
	f, err := os.Open(d.lock())
	if err != nil {
		return false // not there yet: nobody can have it
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// secret reads the enrolment secret; empty when there is none.
func (d dataDir) secret() (string, error) {
	text, err := os.ReadFile(d.enrolment())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// maxLogBytes of what a runner says of itself; the log of its jobs is elsewhere.
const maxLogBytes = 10 << 20

// openLog opens the log for the next process. A large one becomes the one
// before.
func (d dataDir) openLog() (*os.File, error) {
	if info, err := os.Stat(d.log()); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(d.log(), d.log()+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(d.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

func writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(name, append(text, '\n'), 0o600)
}

func readJSON(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
