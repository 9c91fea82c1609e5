package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/store"
)

const (
	pollEvery  = time.Second
	pollerJobs = 200
)

// bareRiver works jobs of one queue that nobody else has, with the settings of
// the services' own clients.
type bareRiver struct {
	client *river.Client[pgx.Tx]
	worked chan time.Time
}

type nothing struct{}

func (nothing) Kind() string { return "bench_nothing" }

func newBareRiver(st *store.Store) (*bareRiver, error) {
	b := &bareRiver{worked: make(chan time.Time, 1)}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[nothing]) error {
		b.worked <- time.Now()
		return nil
	}))
	var err error
	b.client, err = river.NewClient(riverpgxv5.New(st.Pool()), &river.Config{
		Schema: store.RiverCtl, Workers: workers, Queues: map[string]river.QueueConfig{"bench": {MaxWorkers: 20}},
		FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 200 * time.Millisecond,
		ReindexerSchedule: river.NeverSchedule(), Logger: slog.New(slog.DiscardHandler),
	})
	return b, err
}

// sample measures one job from its commit to its worker.
func (b *bareRiver) sample(ctx context.Context, st *store.Store) (time.Duration, error) {
	var committed time.Time
	err := st.System(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := b.client.InsertTx(ctx, tx.Raw(), nothing{}, &river.InsertOpts{Queue: "bench"})
		tx.AfterCommit(func() { committed = time.Now() })
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("insert into River: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	select {
	case at := <-b.worked:
		return at.Sub(committed), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("River did not work its job: %w", context.Cause(ctx))
	}
}

// polled measures what jobs take to a runner that is not woken: it asks once a
// second. They are queued at random moments of that second.
func polled(ctx context.Context, st *store.Store, w *waiter, into *figures) error {
	arrivals := make(chan arrival, pollerJobs)
	committed := map[string]time.Time{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.poll(ctx, pollerJobs, arrivals) })
	group.Go(func() error {
		for range pollerJobs {
			jobID, at, err := queue(ctx, st, w.runner, jobspec.OperationRun)
			if err != nil {
				return err
			}
			committed[jobID] = at
			if err := pause(ctx, rand.N(pollEvery/10)); err != nil { //nolint:gosec // spread, not a secret
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for got := range arrivals {
		into.add(got.at.Sub(committed[got.jobID]))
	}
	return nil
}

// poll asks once a second until it has had n jobs; then it closes into.
func (w *waiter) poll(ctx context.Context, n int, into chan<- arrival) error {
	defer close(into)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for asked := 0; n > 0; asked++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		jobs, at, err := w.claim(ctx, fmt.Sprintf("polls-%06d", asked), n, 0)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			into <- arrival{job.JobID, at}
			if err := w.report(ctx, job); err != nil {
				return err
			}
		}
		n -= len(jobs)
	}
	return nil
}

// engineStart measures the engine's executable alone, from exec to exit.
func engineStart(ctx context.Context, bin string) (time.Duration, error) {
	began := time.Now()
	if err := exec.CommandContext(ctx, filepath.Join(bin, "berth-engine"), "version").Run(); err != nil {
		return 0, errors.Join(errors.New("start the engine"), err)
	}
	return time.Since(began), nil
}
