package plugin

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/berth-dev/berth/pkg/plugin"
)

// stateDir is where the plugin has its state. The agent has put it into in/state and
// takes it from here when the engine is over, however it ended.
func (p *admitted) stateDir() string { return p.dir(filepath.FromSlash(plugin.StateDir)) }

// enterState gives the plugin its state. The directory appears whole or not at all:
// what the agent finds in it later is what the plugin wants kept.
func (p *admitted) enterState() error {
	if !p.given.State {
		return nil
	}
	draft := p.dir("work", "state.new")
	err := os.CopyFS(draft, os.DirFS(p.job.In("state")))
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(draft, 0o700) // the agent of a rehearsal gives none
	}
	if err != nil {
		return err
	}
	return os.Rename(draft, p.stateDir())
}

// checkState checks what the plugin left of its state. A plan leaves it as it was.
func (p *admitted) checkState(planned bool) error {
	if !p.given.State {
		return nil
	}
	now, err := readState(p.stateDir())
	if err != nil {
		return p.brokenf("its state: %v", err)
	}
	if !planned {
		return nil
	}
	before, err := readState(p.job.In("state"))
	if err != nil {
		return err
	}
	if !maps.EqualFunc(before, now, slices.Equal[[]byte]) {
		return p.brokenf("its plan changed its state")
	}
	return nil
}

// readState reads a state without following a link out of it; one that is not there
// is empty.
func readState(dir string) (plugin.State, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return plugin.ReadState(root.FS())
}
