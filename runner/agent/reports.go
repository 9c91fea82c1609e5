package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// reports are reports of runs that have no job directory of their own, because
// they never began. They wait on disk until the control plane has them.
type reports struct {
	dir  datadir.Dir
	api  *control.Client
	log  *slog.Logger
	more chan struct{} // has one element when there may be reports
}

func newReports(dir datadir.Dir, api *control.Client, log *slog.Logger) *reports {
	r := &reports{dir: dir, api: api, log: log, more: make(chan struct{}, 1)}
	r.more <- struct{}{} // those of an earlier agent
	return r
}

// add puts a report on disk.
func (r *reports) add(run jobspec.Run) error {
	if err := datadir.WriteJSON(filepath.Join(r.dir.Runs(), id.New(id.ActionRun)+".json"), run); err != nil {
		return err
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
	return nil
}

// deliver hands reports in, oldest first, until ctx ends.
func (r *reports) deliver(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.more:
		}
		entries, err := os.ReadDir(r.dir.Runs()) // sorted, and ids sort by time
		if err != nil {
			return err
		}
		for _, entry := range entries {
			runID, isReport := strings.CutSuffix(entry.Name(), ".json")
			if !isReport || !id.Valid(id.ActionRun, runID) {
				continue
			}
			if err := r.hand(ctx, runID); err != nil {
				return err
			}
		}
	}
}

func (r *reports) hand(ctx context.Context, runID string) error {
	path := filepath.Join(r.dir.Runs(), runID+".json")
	var run jobspec.Run
	found, damaged := datadir.ReadOrSetAside(r.dir, path, &run)
	if damaged != nil {
		r.log.ErrorContext(ctx, "report of a run is damaged and is not delivered", "run_id", runID, "err", damaged)
	}
	if !found {
		return nil
	}
	err := control.Retry(ctx, r.log, "report run", func(ctx context.Context) error {
		_, err := r.api.ReportRun(ctx, runID, run)
		return err
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.log.WarnContext(ctx, "report of a missed run was refused", "action", run.Action, "err", err)
	}
	return datadir.Remove(path)
}
