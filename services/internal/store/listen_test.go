package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// patience is how long something may take on a busy machine; it is spent only
// when the test is about to fail.
const patience = 20 * time.Second

func TestListenerWakesByChannelAndKey(t *testing.T) {
	t.Parallel()
	st := pgtest.New(t).AsRole(store.RoleCtl)
	l := startListener(t, st, func(*store.Listener) {})
	jobs, other := l.Subscribe("berth_jobs", "run_1"), l.Subscribe("berth_jobs", "run_2")
	defer jobs.Close()
	defer other.Close()

	notify(t, st, "berth_jobs", "run_1")
	wait(t, jobs.C, "the notified key")
	notify(t, st, "berth_jobs", "run_1") // the second one arrives after anything for run_2 would have
	wait(t, jobs.C, "the notified key, again")
	select {
	case <-other.C:
		t.Error("another key was woken")
	default:
	}
}

// A notification while the connection is away is lost, so everybody is woken
// when it is back.
func TestListenerResyncsAfterALostConnection(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	st := pg.AsRole(store.RoleCtl)
	resynced := make(chan struct{}, 10)
	l := startListener(t, st, func(l *store.Listener) {
		l.OnResync(func(context.Context) { resynced <- struct{}{} })
	})
	wait(t, resynced, "the first connect")
	sub := l.Subscribe("berth_jobs", "run_1")
	defer sub.Close()

	execute(t, pg.Admin(), `select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%' and datname = current_database()`)
	wait(t, resynced, "the reconnect")
	wait(t, sub.C, "the subscriber after the reconnect")
	notify(t, st, "berth_jobs", "run_1")
	wait(t, sub.C, "a notification on the new connection")
}

func TestHandlersGetTheKey(t *testing.T) {
	t.Parallel()
	st := pgtest.New(t).AsRole(store.RoleCtl)
	keys := make(chan string, 10)
	startListener(t, st, func(l *store.Listener) {
		l.Handle("berth_jobs", func(key string) { keys <- key })
	})
	notify(t, st, "berth_jobs", "run_7")
	select {
	case got := <-keys:
		if got != "run_7" {
			t.Errorf("key: got %q, want run_7", got)
		}
	case <-time.After(patience):
		t.Fatal("no notification")
	}
}

func startListener(t *testing.T, st *store.Store, prepare func(*store.Listener)) *store.Listener {
	t.Helper()
	l := st.NewListener("berth_jobs")
	prepare(l)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("listener: %v", err)
		}
	})
	wait(t, l.Ready(), "the listener")
	return l
}

func notify(t *testing.T, st *store.Store, channel model.Channel, key string) {
	t.Helper()
	err := st.System(t.Context(), func(_ context.Context, tx *store.Tx) error {
		tx.NotifyAfterCommit(channel, key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}
