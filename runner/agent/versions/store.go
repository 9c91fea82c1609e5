package versions

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/releaselist"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Names of the executables in the folder of a version.
const (
	RunnerName = "berth-runner"
	EngineName = "berth-engine"
	PolicyName = "berth-policy"
)

// mostAccepted is how many versions an update may go back to.
const mostAccepted = 20

var (
	// ErrNotOnTrial says that the version is not on trial, or not any more.
	ErrNotOnTrial = errors.New("this version is not on trial any more")
	// ErrDamaged says that the executables of a version are not those that were verified.
	ErrDamaged = errors.New("its executables were changed")
)

// Store is the folder with the versions. Several processes may use it.
type Store struct{ dir string }

// In is the store of a data directory, whose path must be absolute.
func In(data string) Store { return Store{dir: filepath.Join(data, "versions")} }

// Read reads what runs; the zero State where no update ever was.
func (s Store) Read() (State, error) {
	var state State
	raw, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		return State{}, fmt.Errorf("%s: %w", s.file(), err)
	}
	return state, nil
}

// Begin puts an installed version on trial: the next start runs it. running is the
// version that this agent is of.
func (s Store) Begin(v Version, job, running string) error {
	return s.change(func(state *State) error {
		state.Trial, state.Failed = &Trial{Version: v, Job: job}, nil
		state.Serial++
		state.accept(running)
		return nil
	})
}

// Boot counts a start of the version on trial, before it is started.
func (s Store) Boot() error {
	return s.change(func(state *State) error {
		if state.Trial == nil {
			return ErrNotOnTrial
		}
		state.Trial.Boots++
		return nil
	})
}

// Uncount takes a start back that somebody ended on purpose.
func (s Store) Uncount() error {
	return s.change(func(state *State) error {
		if state.Trial == nil {
			return ErrNotOnTrial
		}
		state.Trial.Boots = max(0, state.Trial.Boots-1)
		return nil
	})
}

// Confirm makes the version on trial the current one. ErrNotOnTrial: its time is over,
// and whoever asks has to end.
func (s Store) Confirm(digest string) error {
	return s.change(func(state *State) error {
		t := state.Trial
		if t == nil || t.Digest() != digest {
			return ErrNotOnTrial
		}
		state.Before = state.Current
		state.Current, state.ConfirmedBy, state.Trial, state.Failed = &t.Version, t.Job, nil, nil
		state.Serial++
		state.accept(t.Version.Version)
		return nil
	})
}

// Fail ends the trial, so that the version before is what runs.
func (s Store) Fail(digest, reason string, now time.Time) error {
	return s.change(func(state *State) error {
		t := state.Trial
		if t == nil || t.Digest() != digest {
			return ErrNotOnTrial
		}
		state.Failed = &Failure{Version: t.Version, Job: t.Job, Reason: reason, At: now.UTC()}
		state.Trial = nil
		state.Serial++
		return nil
	})
}

func (s *State) accept(v string) {
	if v == "" || slices.Contains(s.Accepted, v) {
		return
	}
	s.Accepted = append(s.Accepted, v)
	s.Accepted = s.Accepted[max(0, len(s.Accepted)-mostAccepted):]
}

// Digest names a version by its executables.
func (v Version) Digest() string {
	text := v.Runner + "\n" + v.Engine + "\n"
	if v.Policy != "" {
		text += v.Policy + "\n"
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Folder is where the executables of a version are.
func (s Store) Folder(v Version) string { return filepath.Join(s.dir, v.Digest()) }

// Verify compares the executables of a version on disk with what was verified.
func (s Store) Verify(v Version) error {
	for name, want := range v.executables() {
		got, err := DigestOf(filepath.Join(s.Folder(v), name))
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s of version %s: %w", name, v.Version, ErrDamaged)
		}
	}
	return nil
}

// DigestOf is the digest of a file, "sha256:…".
func DigestOf(path string) (string, error) {
	sum, _, err := releaselist.SumOf(path)
	if err != nil {
		return "", err
	}
	return "sha256:" + sum, nil
}

// Install copies the executables of a version out of the folder from, durably and for
// nobody to write. It may be repeated; one process at a time may.
func (s Store) Install(v Version, from string) error {
	if s.Verify(v) == nil {
		return nil
	}
	if err := s.make(); err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(s.dir, ".new-*")) // of an agent that was killed here
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	next, err := os.MkdirTemp(s.dir, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next)
	for name, want := range v.executables() {
		if err := copyExecutable(filepath.Join(from, name), filepath.Join(next, name)); err != nil {
			return err
		}
		if got, err := DigestOf(filepath.Join(next, name)); err != nil || got != want {
			return errors.Join(fmt.Errorf("%s of version %s: %w", name, v.Version, ErrDamaged), err)
		}
	}
	if err := errors.Join(durable.SyncDir(next), os.Chmod(next, 0o755)); err != nil {
		return err
	}
	if err := os.RemoveAll(s.Folder(v)); err != nil { // damaged
		return err
	}
	return errors.Join(os.Rename(next, s.Folder(v)), durable.SyncDir(s.dir))
}

func copyExecutable(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return durable.Replace(to, 0o555, func(w io.Writer) error {
		_, err := io.Copy(w, source)
		return err
	})
}

// Tidy removes the versions that nothing runs: all but the current one, the one before,
// and the one on trial.
func (s Store) Tidy() error {
	return s.change(func(state *State) error {
		entries, err := os.ReadDir(s.dir)
		if err != nil {
			return err
		}
		var wanted []string
		for _, v := range []*Version{state.Current, state.Before} {
			if v != nil {
				wanted = append(wanted, v.Digest())
			}
		}
		if state.Trial != nil {
			wanted = append(wanted, state.Trial.Digest())
		}
		var errs []error
		for _, entry := range entries {
			if entry.IsDir() && !slices.Contains(wanted, entry.Name()) && !strings.HasPrefix(entry.Name(), ".new-") {
				errs = append(errs, os.RemoveAll(filepath.Join(s.dir, entry.Name())))
			}
		}
		return errors.Join(errs...)
	})
}

// Watch makes the caller the one that watches the version on trial, until the file is
// closed or the process ends; busy while somebody else does.
func (s Store) Watch(busy error) (*os.File, error) {
	return datadir.Flock(filepath.Join(s.dir, "watched"), busy)
}

func (s Store) file() string { return filepath.Join(s.dir, "state.json") }

// make creates the folder. Engines pass through it, and find no name in it that they
// were not given.
func (s Store) make() error {
	if err := os.MkdirAll(s.dir, 0o711); err != nil {
		return err
	}
	return errors.Join(os.Chmod(s.dir, 0o711), durable.SyncDir(filepath.Dir(s.dir)))
}

// change replaces the state by what edit makes of it, while no other process does.
func (s Store) change(edit func(*State) error) error {
	if err := s.make(); err != nil {
		return err
	}
	lock, err := datadir.AwaitFlock(filepath.Join(s.dir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	state, err := s.Read()
	if err != nil {
		return err
	}
	if err := edit(&state); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(s.file(), append(raw, '\n'), 0o600)
}
