// Package jobs sets up River, which carries every asynchronous step of a
// service: one schema per service, wake-ups within milliseconds, traces that go
// on in the worker, and jobs of a killed process taken up by the others within
// seconds.
//
// A job is a wake-up: its args name a row, and the worker looks at the row, does
// the one missing thing and returns. So jobs may run twice, and losing one is
// no catastrophe as long as something looks at the rows at start-up.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/store"
)

const (
	// Measured: with River's defaults (100 ms, 1 s) a job inserted shortly after
	// another may miss its notification and wait for the poll; with these,
	// insert → work takes 2 ms at p50.
	fetchCooldown     = 10 * time.Millisecond
	fetchPollInterval = 200 * time.Millisecond

	defaultMaxWorkers = 20

	// A wake-up does one thing; a job that needs longer says so in its worker's
	// Timeout.
	jobTimeout = time.Minute

	// maxAttempts at up to a minute apart outlast an outage of whatever the
	// worker needs; the wake-up functions in SQL use the same number.
	maxAttempts = 100

	minRetry = 250 * time.Millisecond
	maxRetry = time.Minute

	defaultStopTimeout = 10 * time.Second

	// Finished wake-ups tell nothing; a day is enough to look into a failure.
	keepCompleted = time.Hour
	keepDiscarded = 7 * 24 * time.Hour
)

// Config of a Client.
type Config struct {
	// Schema is store.RiverCtl or store.RiverBuilder.
	Schema string
	// Workers do the jobs, made with river.AddWorker.
	Workers *river.Workers
	// MaxWorkers is how many jobs of the default queue run at once; 20 when
	// zero. Each needs a database connection while it works.
	MaxWorkers int
	// Queues are further queues with their number of workers.
	Queues map[string]int
	// Periodic jobs run on the leader only. River keeps their schedule in
	// memory: use it to look at rows that know their own next time.
	Periodic []*river.PeriodicJob
	// StopTimeout is how long running jobs may go on at the end before their
	// context is cancelled; 10 s when zero.
	StopTimeout time.Duration
	Log         *slog.Logger
}

// Client inserts and works the jobs of one service.
type Client struct {
	river   *river.Client[pgx.Tx]
	orphans *orphans
	queue   *queue
	stop    time.Duration
	log     *slog.Logger
}

// New prepares a client; it works nothing before Run.
func New(st *store.Store, cfg Config) (*Client, error) {
	if cfg.MaxWorkers == 0 {
		cfg.MaxWorkers = defaultMaxWorkers
	}
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = defaultStopTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	queues := map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cfg.MaxWorkers}}
	for name, workers := range cfg.Queues {
		queues[name] = river.QueueConfig{MaxWorkers: workers}
	}
	clientID := id.New("riv")
	client, err := river.NewClient(riverpgxv5.New(st.Pool()), &river.Config{
		ID:                          clientID,
		Schema:                      cfg.Schema,
		Workers:                     cfg.Workers,
		Queues:                      queues,
		PeriodicJobs:                cfg.Periodic,
		FetchCooldown:               fetchCooldown,
		FetchPollInterval:           fetchPollInterval,
		JobTimeout:                  jobTimeout,
		MaxAttempts:                 maxAttempts,
		RetryPolicy:                 retryPolicy{},
		SoftStopTimeout:             cfg.StopTimeout,
		CompletedJobRetentionPeriod: keepCompleted,
		CancelledJobRetentionPeriod: keepCompleted,
		DiscardedJobRetentionPeriod: keepDiscarded,
		// Only the owner may reindex, and the service is not the owner.
		ReindexerSchedule: river.NeverSchedule(),
		Logger:            slog.New(quietHandler{cfg.Log.Handler()}),
		ErrorHandler:      errorHandler{cfg.Log},
		Middleware:        []rivertype.Middleware{tracing{schema: cfg.Schema}},
	})
	if err != nil {
		return nil, fmt.Errorf("river client for %s: %w", cfg.Schema, err)
	}
	return &Client{
		river:   client,
		queue:   newQueue(st.Pool(), cfg.Schema),
		orphans: newOrphans(st, cfg.Schema, clientID, cfg.Log),
		stop:    cfg.StopTimeout,
		log:     cfg.Log,
	}, nil
}

// River is for what this package does not cover: queues at run time,
// subscriptions, cancelling a job.
func (c *Client) River() *river.Client[pgx.Tx] { return c.river }

// Run works jobs until ctx ends, then lets running ones finish for
// Config.StopTimeout before their context is cancelled.
func (c *Client) Run(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer instruments.Observe(c.queue.look, open, oldest)()
	group.Go(func() error {
		// The claim to be alive is kept until the last job has ended.
		return c.orphans.run(working)
	})
	group.Go(func() error {
		defer stop()
		// River must not see ctx end: Stop ends it in order.
		if err := c.river.Start(working); err != nil {
			return fmt.Errorf("start river: %w", err)
		}
		select {
		case <-groupCtx.Done():
		case <-c.river.Stopped():
			return errors.New("river stopped by itself")
		}
		// SoftStopTimeout cancels the jobs; the rest is for them to notice.
		ctx, cancel := context.WithTimeout(working, c.stop+defaultStopTimeout)
		defer cancel()
		if err := c.river.Stop(ctx); err != nil {
			return fmt.Errorf("stop river: %w", err)
		}
		return nil
	})
	return group.Wait()
}

// Insert adds a job as part of the transaction: it is worked after the commit,
// or never. The trace of ctx continues in the worker.
func (c *Client) Insert(ctx context.Context, tx *store.Tx, args river.JobArgs) error {
	return c.InsertAt(ctx, tx, args, time.Time{})
}

// InsertAt is Insert for a job that is due later; the zero time means now.
func (c *Client) InsertAt(ctx context.Context, tx *store.Tx, args river.JobArgs, due time.Time) error {
	_, err := c.river.InsertTx(ctx, tx.Raw(), args, &river.InsertOpts{ScheduledAt: due})
	if err != nil {
		return fmt.Errorf("insert job %s: %w", args.Kind(), err)
	}
	return nil
}

// retryPolicy doubles from 250 ms to a minute, a little apart.
type retryPolicy struct{}

func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().UTC().Add(retryAfter(len(job.Errors)+1, rand.Float64())) //nolint:gosec // spread, not a secret
}

// retryAfter is the pause after so many failures; spread is in [0, 1).
func retryAfter(failures int, spread float64) time.Duration {
	pause := maxRetry
	if shift := failures - 1; shift < 16 {
		pause = min(pause, minRetry<<shift)
	}
	return pause + time.Duration(spread*float64(pause)/4)
}

// errorHandler writes the one line per failed job. River retries it.
type errorHandler struct{ log *slog.Logger }

func (h errorHandler) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	level := slog.LevelWarn
	if job.Attempt >= job.MaxAttempts {
		level = slog.LevelError // nobody will try again
	}
	h.log.Log(ctx, level, "job failed", "kind", job.Kind, "args", string(job.EncodedArgs), "attempt", job.Attempt, "err", err)
	return nil
}

func (h errorHandler) HandlePanic(ctx context.Context, job *rivertype.JobRow, value any, trace string) *river.ErrorHandlerResult {
	if trace == "" {
		trace = string(debug.Stack())
	}
	h.log.ErrorContext(ctx, "job panicked", "kind", job.Kind, "args", string(job.EncodedArgs), "attempt", job.Attempt, "panic", value, "stack", trace)
	return nil
}

// quietHandler takes River's own talk down a level: its infos are our debug.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, quieter(level))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quieter(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}

func quieter(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}
