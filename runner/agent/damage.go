package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/schedule"
)

// What the customer can do about a chain that does not add up. Nothing is
// changed before that: without its record, nobody could tell what was done.
const chainRemedy = "see which record it is with `berth-runner chain verify`, then restore the file from a copy, " +
	"or continue from what is there with `berth-runner chain accept --reason TEXT`, which is recorded"

// damaged is the error of a file without which the runner may not work: it names
// the file, what is wrong, and what to do. A file that is only missing, and a
// disk that is only full, keep their own errors.
func damaged(path string, err error, remedy string) error {
	if _, missing := os.Lstat(path); errors.Is(missing, os.ErrNotExist) || disk.Full(err) {
		return err
	}
	if !strings.Contains(err.Error(), path) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%w: %w. %s; see \"Damaged files\" in docs/reference/runner.md", ErrDamaged, err, remedy)
}

// setAside tells of a damaged file that the runner can do without: in the log,
// and in the chain once there is one.
func (a *agent) setAside(ctx context.Context, err error) {
	a.cfg.Log.ErrorContext(ctx, "a damaged file was set aside; the runner continues without it", "err", err)
	if a.chain == nil {
		a.aside = append(a.aside, err.Error())
		return
	}
	a.note(ctx, "damaged file was set aside", err.Error())
}

// noteAside records what was set aside before the chain was open.
func (a *agent) noteAside(ctx context.Context) {
	for _, what := range a.aside {
		a.note(ctx, "damaged file was set aside", what)
	}
	a.aside = nil
}

// openBook opens the book of the schedule. Without it the runner looks at each
// action as for the first time: what was missed meanwhile is not told.
func (a *agent) openBook(ctx context.Context) {
	var err error
	if a.book, err = schedule.OpenBook(a.dir.Schedule()); err == nil {
		return
	}
	to, moved := a.dir.SetAside(a.dir.Schedule(), "agent", err)
	a.setAside(ctx, errors.Join(fmt.Errorf("%w; it was set aside as %s", err, to), moved))
}

// openLayout opens the install's own registry. The contents are found by their
// digests and checked each time; an index that is damaged is begun again, and
// what it listed is fetched or planned again when it is needed.
func (a *agent) openLayout() (*oci.Layout, error) {
	layout, err := oci.Open(a.dir.Artifacts())
	if err == nil || disk.Full(err) {
		return layout, err
	}
	to, moved := a.dir.SetAside(filepath.Join(a.dir.Artifacts(), "index.json"), "agent", err)
	if to == "" {
		return nil, errors.Join(err, moved)
	}
	a.setAside(context.Background(), fmt.Errorf("%w; it was set aside as %s", err, to))
	return oci.Open(a.dir.Artifacts())
}

// readSpare reads a file that the runner can do without.
func readSpare[T any](ctx context.Context, a *agent, path string, v *T) (found bool) {
	found, err := datadir.ReadOrSetAside(a.dir, path, v)
	if err != nil {
		a.setAside(ctx, err)
	}
	return found
}
