package judge

import (
	"errors"
	"os"
	"syscall"

	"github.com/berth-dev/berth/runner/agent/process"
)

// walls are what keeps the engine apart on this machine, found out by trying.
type walls struct {
	known     bool
	isolation process.Isolation
	weak      string
	give      func()
}

// Isolation describes the walls around the engine, for people; "" before the first
// question. weak: there are none, and only the engine's own care keeps it from files and
// network.
func (e *Engine) Isolation() (text string, weak bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.walls
	switch {
	case !w.known:
		return "", false
	case w.weak != "":
		return "no walls around the policy engine: " + w.weak, true
	case w.isolation.OwnUsers:
		return "the policy engine runs in namespaces of its own without network and files, as the runner's user", false
	default:
		return "the policy engine runs as a user of its own, in namespaces without network and files", false
	}
}

// build finds the walls when they are needed first.
func (e *Engine) build() (process.Isolation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.walls.known {
		return e.walls.isolation, nil
	}
	w, err := e.best()
	if err != nil {
		return process.Isolation{}, err
	}
	e.walls = w
	return w.isolation, nil
}

// best tries the walls of root, or of a user namespace.
func (e *Engine) best() (walls, error) {
	w := walls{known: true, give: func() {}}
	if e.opts.Launcher == "" {
		w.weak = "there is no launcher"
		return w, nil
	}
	w.isolation = process.Isolation{PIDNamespace: true, Bare: true, NoNetwork: true, UID: e.opts.UID, GID: e.opts.UID}
	switch {
	case os.Geteuid() != 0:
		w.isolation.UID, w.isolation.GID, w.isolation.OwnUsers = 0, 0, true
	case e.opts.Users != nil:
		if err := os.MkdirAll(e.opts.Dir, 0o700); err != nil {
			return w, err
		}
		uid, err := e.opts.Users.Take(e.opts.Dir)
		if err != nil {
			return w, err
		}
		w.isolation.UID, w.isolation.GID = uid, uid
		w.give = func() { e.opts.Users.Give(uid, e.opts.Dir) }
	}
	err := process.Try(process.Spec{Path: e.opts.Executable, Dir: "/", Env: []string{}, Isolation: w.isolation, Launcher: e.opts.Launcher})
	if err != nil {
		w.weak = err.Error()
		// At least not the runner's user, where that is root.
		w.isolation = process.Isolation{UID: w.isolation.UID, GID: w.isolation.GID}
		if err := process.Try(process.Spec{Path: e.opts.Executable, Dir: "/", Env: []string{}, Isolation: w.isolation, Launcher: e.opts.Launcher}); err != nil {
			w.give()
			return walls{}, err
		}
	}
	return w, nil
}

func (w *walls) remove() {
	if w.give != nil {
		w.give()
	}
	*w = walls{}
}

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
