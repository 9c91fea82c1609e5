package main

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/services/builder/internal/build"
	"github.com/berth-dev/berth/services/builder/internal/database"
)

// buildAdvance wakes the worker for one build. ctl-api and runner-api insert it
// by the SQL function berth.wake_build.
type buildAdvance struct {
	BuildID string `json:"build_id"`
}

// Kind is fixed by that function.
func (buildAdvance) Kind() string { return "build_advance" }

type buildWorker struct {
	river.WorkerDefaults[buildAdvance]
	builds *build.Worker
}

// advanceTimeout leaves time to copy a private image, for which a build_timeout of
// half an hour is the default. A copy that takes longer goes on in the next try.
const advanceTimeout = 35 * time.Minute

func (w *buildWorker) Timeout(*river.Job[buildAdvance]) time.Duration { return advanceTimeout }

func (w *buildWorker) Work(ctx context.Context, job *river.Job[buildAdvance]) error {
	return w.builds.Advance(ctx, job.Args.BuildID, job.Attempt)
}

func workers(builds *build.Worker) *river.Workers {
	all := river.NewWorkers()
	river.AddWorker(all, &buildWorker{builds: builds})
	return all
}

// wakeOpenBuilds has every build looked at that was open when builder started:
// its wake-up may have been lost with an earlier life.
func wakeOpenBuilds(ctx context.Context, st *database.Store) error {
	err := st.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		open, err := tx.BuilderOpenWork(ctx, "build")
		if err != nil {
			return err
		}
		for _, id := range open {
			if err := tx.WakeBuild(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("wake open builds: %w", err)
	}
	return nil
}
