package turn_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/builder/internal/turn"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// replica takes turns until it is stopped.
type replica struct {
	works atomic.Bool
	began atomic.Int32
	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, st *store.Store, working *atomic.Int32) *replica {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &replica{stop: stop, ended: make(chan error, 1)}
	go func() {
		r.ended <- turn.New(st, "test", slog.New(slog.DiscardHandler)).Run(ctx, func(ctx context.Context) error {
			if n := working.Add(1); n > 1 {
				t.Errorf("%d replicas work at once", n)
			}
			r.works.Store(true)
			r.began.Add(1)
			<-ctx.Done()
			r.works.Store(false)
			working.Add(-1)
			return ctx.Err()
		})
	}()
	t.Cleanup(func() { stop() })
	return r
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestOneReplicaWorks(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var working atomic.Int32
	one := start(t, db.AsRole(store.RoleBuilder), &working)
	eventually(t, "the first works", one.works.Load)
	other := start(t, db.AsRole(store.RoleBuilder), &working)

	// A session that breaks is replaced, and the work goes on.
	kill := func() (n int) {
		if err := db.Admin().QueryRow(t.Context(), `
			select count(pg_terminate_backend(l.pid)) from pg_locks l join pg_database d on d.oid = l.database
			where d.datname = current_database() and l.locktype = 'advisory' and l.classid::bigint = $1`, 0x7475726e).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := kill(); n != 1 {
		t.Fatalf("%d sessions have the turn, want 1", n)
	}
	eventually(t, "somebody has the turn again", func() bool { return kill() > 0 })
	eventually(t, "one works", func() bool { return working.Load() == 1 })

	one.stop()
	if err := <-one.ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	eventually(t, "the other works", other.works.Load)
	other.stop()
	<-other.ended
}

// The end of the work is the end of the turn, and its error is not lost.
func TestWorkThatEnds(t *testing.T) {
	t.Parallel()
	want := errors.New("it cannot go on")
	err := turn.New(pgtest.New(t).AsRole(store.RoleBuilder), "test", slog.New(slog.DiscardHandler)).Run(t.Context(), func(context.Context) error { return want })
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
