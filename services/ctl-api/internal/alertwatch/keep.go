package alertwatch

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
)

const (
	// KeepDays is for how long closed alerts and incidents are kept.
	KeepDays = 400
	// dropEvery is how often older ones are dropped.
	dropEvery = 24 * time.Hour
)

// Drop is the periodic job that drops what was closed long ago.
type Drop struct{}

// Kind is stored with every job; it must not change.
func (Drop) Kind() string { return "alerts_drop" }

// DropWorker works it.
type DropWorker struct {
	river.WorkerDefaults[Drop]
	Store *database.Store
	Log   *slog.Logger
}

// Daily is the periodic job of a queue.
func Daily() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(dropEvery), func() (river.JobArgs, *river.InsertOpts) { return Drop{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})
}

// Work drops them.
func (w *DropWorker) Work(ctx context.Context, _ *river.Job[Drop]) error {
	return w.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		dropped, err := tx.DropOldAlerts(ctx, KeepDays)
		if err != nil {
			return fmt.Errorf("drop old alerts: %w", err)
		}
		if dropped > 0 {
			w.Log.InfoContext(ctx, "old alerts dropped", "alerts", dropped)
		}
		return nil
	})
}
