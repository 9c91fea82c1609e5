package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// A worker that looks after an install says each time when the next look is
// due: that must not make one more look of every one.
func TestOneLookForATime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	st := database.New(db.AsRole(store.RoleCtl))
	workers := river.NewWorkers()
	river.AddWorker(workers, &dueWorker{})
	client, err := jobs.New(st.Store, jobs.Config{Schema: store.RiverCtl, Workers: workers, Log: slog.New(slog.DiscardHandler)}) // inserts only
	if err != nil {
		t.Fatal(err)
	}
	wake := &waker{client: client}
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	looks := []struct {
		install string
		at      time.Time
	}{
		{"ins_1", later}, {"ins_1", later}, {"ins_1", later.Add(time.Millisecond)}, // one
		{"ins_1", later.Add(time.Minute)}, {"ins_2", later}, // and two more
	}
	for _, look := range looks {
		err := st.System(t.Context(), func(ctx context.Context, tx *database.Tx) error {
			return wake.WakeInstallAt(ctx, tx, look.install, look.at)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var n, early int
	err = db.Admin().QueryRow(t.Context(), `
		select count(*), count(*) filter (where scheduled_at <= $1) from river_ctl.river_job where kind = 'install_due' and state = 'scheduled'`, later).Scan(&n, &early)
	if err != nil {
		t.Fatal(err)
	}
	if n != 3 || early != 0 {
		t.Errorf("%d looks, %d of them too early; want 3 and none", n, early)
	}
}
