package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// What is due counts with its age; what is due later, or done, does not.
func TestBacklog(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	read := func() []backlog {
		t.Helper()
		seen, err := newQueue(pg.AsRole(store.RoleCtl).Pool(), store.RiverCtl).read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range seen {
			seen[i].Seconds = float64(int(seen[i].Seconds) / 60) // minutes
		}
		return seen
	}
	want := []backlog{{"available", 0, 0}, {"retryable", 0, 0}, {"running", 0, 0}}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("an empty queue (-want +got):\n%s", diff)
	}
	const sql = `insert into river_ctl.river_job (kind, max_attempts, args, state, scheduled_at, finalized_at)
		select 'workflow_advance', 100, '{}', state::river_ctl.river_job_state, now() - due * interval '1 minute', case when state = 'completed' then now() end
		from (values ('available', 3.5), ('available', 1), ('scheduled', -10), ('retryable', -1), ('completed', 60)) j(state, due)`
	if _, err := pg.Admin().Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	want = []backlog{{"available", 2, 3}, {"retryable", 1, 0}, {"running", 0, 0}}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("a queue (-want +got):\n%s", diff)
	}
}
