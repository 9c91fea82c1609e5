// Package users gives each running job of a machine a user of its own, out of a
// range of numbers that no account has. All runners of a machine share the
// range; who has which user is written down in one directory.
package users

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Dir is where the runners of a machine keep the users of engines. A boot empties
// it, and ends all engines.
const Dir = "/run/berth/engine-users"

// Off is the setting of a machine whose engines get no users of their own.
const Off = "off"

// DefaultRange is above the accounts of people (to 60000) and of systemd (to
// 65535), and below those of containers (from 100000).
const DefaultRange = "70000:4096"

// Range is Size numbers from First on. The first is never a job's: it owns on
// disk what belongs to no job alone.
type Range struct{ First, Size int }

// smallest is the lowest number that a range may begin with: below are accounts
// of the system.
const smallest = 1000

// ParseRange reads FIRST:SIZE; Off is the empty range.
func ParseRange(text string) (Range, error) {
	if text == Off {
		return Range{}, nil
	}
	first, size, _ := strings.Cut(text, ":")
	r := Range{}
	var errFirst, errSize error
	r.First, errFirst = strconv.Atoi(first)
	r.Size, errSize = strconv.Atoi(size)
	const last = 1<<31 - 2
	if errFirst != nil || errSize != nil || r.First < smallest || r.Size < 2 || r.First > last-r.Size {
		return Range{}, fmt.Errorf("%q is not a range of users: give FIRST:SIZE such as %s, from %d on and 2 at least, or %s", text, DefaultRange, smallest, Off)
	}
	return r, nil
}

// Owner is the user that has on disk what outlives jobs. No engine runs as it.
func (r Range) Owner() int { return r.First }

// ErrNone says that all users are given away.
var ErrNone = errors.New("all users of engines are taken")

// Pool hands out users. Safe for concurrent use, by several processes too.
type Pool struct {
	dir      string
	users    Range
	reserved int
}

// Open returns the pool of a directory, which is made when it is missing. The
// number reserved is not given away.
func Open(dir string, users Range, reserved int) (*Pool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("users of engines: %w", err)
	}
	return &Pool{dir: dir, users: users, reserved: reserved}, nil
}

// Take gives a user to the owner of a directory: as long as that exists, nobody
// else gets it until Give. The same owner gets the same user again.
func (p *Pool) Take(owner string) (int, error) {
	unlock, err := p.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	for uid := p.users.First + 1; uid < p.users.First+p.users.Size; uid++ {
		if uid == p.reserved {
			continue
		}
		has, err := os.ReadFile(p.file(uid))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return 0, fmt.Errorf("users of engines: %w", err)
		case string(has) == owner:
			return uid, nil
		case p.taken(uid, string(has)):
			continue
		}
		if err := os.WriteFile(p.file(uid), []byte(owner), 0o600); err != nil {
			return 0, fmt.Errorf("users of engines: %w", err)
		}
		return uid, nil
	}
	return 0, fmt.Errorf("%w (%d from %d on)", ErrNone, p.users.Size-1, p.users.First+1)
}

// Give takes a user back, if the owner has it. Nothing may run as it any more.
func (p *Pool) Give(uid int, owner string) {
	unlock, err := p.lock()
	if err != nil {
		return // it is free once the owner's directory is gone
	}
	defer unlock()
	if has, err := os.ReadFile(p.file(uid)); err == nil && string(has) == owner {
		_ = os.Remove(p.file(uid))
	}
}

func (p *Pool) file(uid int) string { return filepath.Join(p.dir, strconv.Itoa(uid)) }

func (p *Pool) lock() (unlock func(), err error) {
	f, err := datadir.AwaitFlock(filepath.Join(p.dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("users of engines: %w", err)
	}
	return func() { f.Close() }, nil
}

// taken: the owner is still there, or something runs as the user without one.
func (p *Pool) taken(uid int, owner string) bool {
	if owner != "" {
		if _, err := os.Lstat(owner); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return runs(uid)
}

// runs tells whether any process of the machine has the user. Only what a
// killed runner left makes it necessary to look.
func runs(uid int) bool {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return true
	}
	for _, path := range processes {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == uid {
			return true
		}
	}
	return false
}
