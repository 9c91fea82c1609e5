package stream_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/pgtest"
)

// A page that shows what a step waits for is told when it waits for something else, once.
func TestAnotherWaitIsTold(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	admin := db.Admin()
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`insert into orgs (org_id, name) values ('org1', 'org')`)
	exec(rowsAlone)
	exec(`insert into workflows (id, org_id, install_id, number, kind, inputs_version, created_by) values ('wfl_1', 'org1', 'ins1', 1, 'deploy', 1, 'ada')`)
	exec(`insert into steps (id, org_id, workflow_id, install_id, idx, name, kind, reason) values ('stp_1', 'org1', 'wfl_1', 'ins1', 1, 'deploy api', 'deploy', 'x')`)
	exec(`delete from event_outbox`)
	for _, table := range []string{"steps", "workflows"} {
		exec(`update ` + table + ` set state = 'waiting', wait_reason = 'decision'`)
		exec(`update ` + table + ` set wait_reason = 'paused_by_vendor'`)
		exec(`update ` + table + ` set wait_reason = 'paused_by_vendor', wait_deadline = now()`)
		exec(`update ` + table + ` set state = 'running', wait_reason = null`)
	}
	rows, err := admin.Query(t.Context(), `select kind || ' ' || coalesce(body ->> 'wait_reason', '') from event_outbox order by n`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var told []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		told = append(told, one)
	}
	want := []string{
		"step.waiting decision", "step.waiting paused_by_vendor", "step.running ",
		"workflow.waiting decision", "workflow.waiting paused_by_vendor", "workflow.running ",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
