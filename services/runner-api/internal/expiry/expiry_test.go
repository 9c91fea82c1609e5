package expiry_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/expiry"
)

const lease = time.Minute

// scene is a watch on a clock of the test's, and a lease whose time was over
// long ago on the clock of the database.
type scene struct {
	t     *testing.T
	admin *pgxpool.Pool
	watch *expiry.Watch
	clock time.Time
	lost  atomic.Int64
}

func newScene(t *testing.T) *scene {
	t.Helper()
	db := pgtest.New(t)
	s := &scene{t: t, admin: db.Admin(), clock: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	for _, sql := range []string{
		`insert into orgs (org_id, name) values ('org_1', 'o')`,
		`insert into runners (id, org_id, kind, name) values ('rnr_1', 'org_1', 'build', 'r')`,
		`insert into runner_sessions (id, org_id, runner_id, epoch, token_hash) values ('ses_1', 'org_1', 'rnr_1', 1, 'h')`,
		`insert into runner_jobs (id, org_id, runner_id, kind, operation, state, attempt, spec, timeout_seconds) values ('job_1', 'org_1', 'rnr_1', 'k', 'plan', 'leased', 1, '{}', 1)`,
		`insert into leases (id, org_id, job_id, runner_id, session_id, attempt, claim_id, stream_id, expires_at)
		 values ('lse_1', 'org_1', 'job_1', 'rnr_1', 'ses_1', 1, 'c', 's', now() - interval '1 hour')`,
	} {
		s.exec(sql)
	}
	s.watch = expiry.New(database.New(db.AsRole(store.RoleRunner)), slog.New(slog.DiscardHandler), expiry.Options{
		Lease: lease, Now: func() time.Time { return s.clock }, Lost: func(n int64) { s.lost.Add(n) },
	})
	return s
}

func (s *scene) exec(sql string) {
	s.t.Helper()
	if _, err := s.admin.Exec(s.t.Context(), sql); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// look has the watch look, and says what became of the lease.
func (s *scene) look() (state string, next time.Duration) {
	s.t.Helper()
	next = s.watch.Look(s.t.Context())
	if err := s.admin.QueryRow(s.t.Context(), `select state from leases`).Scan(&state); err != nil {
		s.t.Fatal(err)
	}
	return state, next
}

// losesAfterOneLeaseTime checks that the lease is held back from now on.
func (s *scene) losesAfterOneLeaseTime(what string) {
	s.t.Helper()
	from := s.clock
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "active"}, {lease / 2, "active"}, {lease - 1, "active"}, {lease, "lost"}} {
		s.clock = from.Add(step.after)
		state, next := s.look()
		if state != step.want {
			s.t.Fatalf("%s after %s the lease is %s, want %s", step.after, what, state, step.want)
		}
		if next <= 0 || next > lease/4 {
			s.t.Errorf("%s after %s the next look is in %s, want at most a quarter of a lease", step.after, what, next)
		}
	}
}

// renewed makes the lease active again, and lets its time be over again.
func (s *scene) renewed() {
	s.t.Helper()
	s.exec(`update leases set state = 'active', expires_at = now() - interval '1 hour'`)
}

func TestExpiryIsHeldBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.losesAfterOneLeaseTime("the start")
	if n := s.lost.Load(); n != 1 {
		t.Errorf("%d leases were told lost, want one", n)
	}

	s.renewed()
	if state, _ := s.look(); state != "lost" {
		t.Fatalf("the lease is %s: nothing holds it back", state)
	}

	s.renewed()
	s.watch.HoldBack()
	s.losesAfterOneLeaseTime("notifications were lost")
}

func TestExpiryIsHeldBackAfterTheDatabaseWasAway(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.losesAfterOneLeaseTime("the start")

	s.renewed()
	var name string
	if err := s.admin.QueryRow(t.Context(), `select quote_ident(current_database())`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	s.exec(`alter database ` + name + ` connection limit 0`) // does not count superusers
	s.exec(`select pg_terminate_backend(pid, 10000) from pg_stat_activity where usename = 'berth_runner' and datname = current_database()`)
	for range 3 { // however long it lasts
		if state, next := s.look(); state != "active" || next > time.Second {
			t.Errorf("in an outage the lease is %s and the next look in %s", state, next)
		}
		s.clock = s.clock.Add(10 * lease)
	}
	s.exec(`alter database ` + name + ` connection limit -1`)
	s.losesAfterOneLeaseTime("the outage")
}
