// Package expiry marks leases lost whose time is over. That is all it does:
// expired is not dead. It never queues a job again and never ends an attempt;
// the runner may renew the lease as soon as it is heard again.
package expiry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/services/runner-api/internal/database"
)

const (
	// batch is how many leases are marked per turn.
	batch = 200

	// longest is the longest time between two looks: a lease that is granted
	// meanwhile ends no sooner than one lease time from now, but another
	// replica's may.
	longest = 15 * time.Second

	// shortest keeps turns apart when leases end one after the other.
	shortest = 200 * time.Millisecond

	// retry is how often a database is asked that is away.
	retry = time.Second
)

// Watch is the loop. Every replica runs one; they take turns by an advisory
// lock.
type Watch struct {
	store *database.Store
	log   *slog.Logger
	lease time.Duration
	lost  func(n int64)
	now   func() time.Time
	away  bool // the database did not answer the last time; only Look uses it

	mu   sync.Mutex
	held time.Time // no lease is marked before
}

// Options of a Watch.
type Options struct {
	// Lease is how long a lease lasts.
	Lease time.Duration
	// Lost gets how many were marked; may be nil.
	Lost func(n int64)
	// Now is the clock of hold-backs; time.Now when nil. Leases themselves
	// are on the clock of the database.
	Now func() time.Time
}

// New returns a watch that holds back for one lease time from now.
func New(s *database.Store, log *slog.Logger, o Options) *Watch {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lost == nil {
		o.Lost = func(int64) {}
	}
	w := &Watch{store: s, log: log, lease: o.Lease, lost: o.Lost, now: o.Now}
	w.HoldBack()
	return w
}

// HoldBack lets one lease time pass before a lease is marked lost: runners
// could not renew for a while, because we or the database were away.
func (w *Watch) HoldBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = w.now().Add(w.lease)
}

func (w *Watch) heldFor() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held.Sub(w.now())
}

// Run looks for expired leases until ctx is done, and returns nil then.
func (w *Watch) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(w.Look(ctx)):
		}
	}
	return nil
}

// Look does what is due, and says in how long to look again. An outage of the
// database that no look falls into is shorter than a quarter of a lease: no
// lease ends by that alone, as each is renewed when a third of it is over. All
// others are noticed, and held back after.
func (w *Watch) Look(ctx context.Context) (next time.Duration) {
	if err := w.store.Ping(ctx); err != nil {
		return w.outage(ctx, err)
	}
	if w.away {
		w.away = false
		w.HoldBack()
	}
	next = w.heldFor()
	if next <= 0 {
		var err error
		if next, err = w.turn(ctx); err != nil {
			return w.outage(ctx, err)
		}
	}
	return min(max(next, shortest), longest, w.lease/4)
}

func (w *Watch) outage(ctx context.Context, err error) (next time.Duration) {
	if !w.away && ctx.Err() == nil {
		w.log.WarnContext(ctx, "expiry of leases held back", "err", err)
	}
	w.away = true
	return min(retry, w.lease/4)
}

// turn marks what has expired by now, unless another replica is at it, and
// says in how long the next lease ends.
func (w *Watch) turn(ctx context.Context) (next time.Duration, _ error) {
	err := w.store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		mine, err := tx.RunnerExpiryTurn(ctx)
		if err != nil {
			return err
		}
		if !mine {
			next = longest
			return nil
		}
		expired, err := tx.RunnerExpiredLeases(ctx, batch)
		if err != nil {
			return err
		}
		// In transactions of their own, under the lock of this one.
		if err := w.mark(ctx, expired); err != nil {
			return err
		}
		seconds, err := tx.RunnerNextExpiry(ctx)
		next = time.Duration(seconds * float64(time.Second))
		return err
	})
	return next, err
}

// mark takes 'org lease' pairs.
func (w *Watch) mark(ctx context.Context, expired []string) error {
	orgs := map[string][]string{}
	for _, pair := range expired {
		org, lease, ok := strings.Cut(pair, " ")
		if !ok {
			return fmt.Errorf("expired lease %q is not an org and an id", pair)
		}
		orgs[org] = append(orgs[org], lease)
	}
	for org, leases := range orgs {
		var n int64
		err := w.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) (err error) {
			n, err = tx.RunnerLoseLeases(ctx, leases)
			return err
		})
		if err != nil {
			return err
		}
		if n > 0 {
			w.lost(n)
			w.log.WarnContext(ctx, "leases lost", "org_id", org, "count", n)
		}
	}
	return nil
}
