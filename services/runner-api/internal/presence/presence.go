// Package presence knows which runners are there. Every few seconds it asks
// about all of them at once, whatever their orgs: it writes that they were seen
// and reads what a lost notification would have told. So an idle runner costs
// no statement of its own, and nothing that was lost stays lost.
package presence

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
)

const (
	// Interval is how often all runners that are there are asked about. A
	// lost wake-up costs at most this much, which is within the 15 s that
	// recovery may take.
	Interval = 10 * time.Second

	// freshFor is how old last_seen_at may be before it is written again.
	freshFor = 15 * time.Second

	// retryAfter an outage: the database is back, or will be soon.
	retryAfter = time.Second

	// batch is how many runners one transaction asks about: few enough that
	// none of them waits long for its row, many enough that 10,000 cost two
	// statements per second.
	batch = 2000

	// batchTimeout bounds one batch.
	batchTimeout = 20 * time.Second
)

// News is what a sweep found out about a runner.
type News struct {
	RunnerID        string
	Epoch           int64
	Active          bool
	Queued          bool // a job waits
	SettingsVersion int64
}

// Register holds the runners that are there. Safe for concurrent use.
type Register struct {
	store *database.Store
	log   *slog.Logger
	news  func(News)
	now   chan struct{}

	mu      sync.Mutex
	runners map[string]*presence
	seen    counts // by the last sweep
}

type presence struct {
	holds int  // requests that are being held
	seen  bool // called since the last sweep
}

// New returns a register that hands news to fn. fn must not block.
func New(s *database.Store, log *slog.Logger, fn func(News)) *Register {
	return &Register{store: s, log: log, news: fn, now: make(chan struct{}, 1), runners: map[string]*presence{}}
}

// Saw notes that a runner called.
func (r *Register) Saw(runnerID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(runnerID).seen = true
}

// Hold notes that a runner is there until release is called.
func (r *Register) Hold(runnerID string) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of(runnerID)
	p.holds++
	p.seen = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		p.holds--
	}
}

func (r *Register) of(runnerID string) *presence {
	p := r.runners[runnerID]
	if p == nil {
		p = &presence{}
		r.runners[runnerID] = p
	}
	return p
}

// Now asks for a sweep at once: notifications may have been lost.
func (r *Register) Now() {
	select {
	case r.now <- struct{}{}:
	default:
	}
}

// Run sweeps until ctx is done, and returns nil then.
func (r *Register) Run(ctx context.Context) error {
	defer instruments.Observe(r.look, online, backlogged)()
	wait := Interval
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.now:
		case <-time.After(wait):
		}
		wait = Interval
		if err := r.Sweep(ctx); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "presence not recorded", "err", err, "retry_in", retryAfter)
			wait = retryAfter
		}
	}
}

// Sweep asks about everybody, and hands out the news. Those that it could not
// ask about stay seen.
func (r *Register) Sweep(ctx context.Context) error {
	var failed error
	var seen counts
	for runners := range slices.Chunk(r.present(), batch) {
		if err := r.ask(ctx, runners, &seen); err != nil {
			failed = err
			for _, runner := range runners {
				r.Saw(runner)
			}
		}
	}
	if failed == nil {
		r.mu.Lock()
		r.seen = seen
		r.mu.Unlock()
	}
	return failed
}

// present takes down who is there, and forgets who has left.
func (r *Register) present() (there []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.runners {
		if !p.seen && p.holds == 0 {
			delete(r.runners, id)
			continue
		}
		p.seen = false
		there = append(there, id)
	}
	return there
}

// ask asks about some of them, and counts them.
func (r *Register) ask(ctx context.Context, runners []string, seen *counts) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	var rows []runnerdb.RunnersPresentRow
	err := r.store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		rows, err = tx.RunnersPresent(ctx, runnerdb.RunnersPresentParams{Ids: runners, FreshSeconds: freshFor.Seconds()})
		return err
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Active {
			seen.online++
			if row.Queued {
				seen.backlogged++
			}
		}
		r.news(News{RunnerID: row.ID, Epoch: row.Epoch, Active: row.Active, Queued: row.Queued, SettingsVersion: row.SettingsVersion})
	}
	return nil
}
