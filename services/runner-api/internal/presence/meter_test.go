package presence_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/internal/metrictest"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/presence"
)

// Of four runners one is revoked, and a job waits for another.
func TestSweepIsMeasured(t *testing.T) {
	t.Parallel()
	metrictest.Start()
	db := pgtest.New(t)
	ids := fleet(t, db, 4)
	for _, sql := range []string{
		`insert into runner_jobs (id, org_id, runner_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_1', 'rnr_1', 'k', 'plan', '{}', 1)`,
		`update runners set state = 'revoked' where id = 'rnr_4'`,
	} {
		if _, err := db.Admin().Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	here := presence.New(database.New(db.AsRole(store.RoleRunner)), slog.New(slog.DiscardHandler), func(presence.News) {})
	for _, id := range ids {
		here.Hold(id)
	}
	here.Now()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- here.Run(ctx) }()

	deadline := time.Now().Add(30 * time.Second)
	for metrictest.Value(t, "runner.online") != 3 || metrictest.Value(t, "runner.backlogged") != 1 {
		if time.Now().After(deadline) {
			t.Fatalf("%g runners are online, %g have a job waiting; want 3 and 1", metrictest.Value(t, "runner.online"), metrictest.Value(t, "runner.backlogged"))
		}
		<-time.After(20 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := metrictest.Value(t, "runner.online"); n != 0 {
		t.Errorf("after its end the register still says that %g runners are online", n)
	}
}
