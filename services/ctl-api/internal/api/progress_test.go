package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// What the runner told with the lease of a running step's job is shown with the
// step; of what a job told that has ended nothing is.
func TestStepShowsProgress(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	started, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindProvision})
	must(t, started, err, http.StatusAccepted)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	shown := func() *ctlapi.StepProgress {
		t.Helper()
		w, err := c.GetWorkflowWithResponse(t.Context(), started.JSON202.ID, nil)
		must(t, w, err, http.StatusOK)
		var found *ctlapi.StepProgress
		for _, s := range w.JSON200.Steps {
			if s.Progress != nil && s.Name != "component/api" {
				t.Errorf("step %s has progress, too", s.Name)
			}
			if s.Name == "component/api" {
				found = s.Progress
			}
		}
		return found
	}
	exec(`update steps set state = 'running', started_at = now() where name = 'component/api'`)
	exec(`insert into runner_jobs (id, org_id, runner_id, install_id, step_id, workflow_id, kind, operation, state, spec, timeout_seconds, attempt)
		select 'job_1', s.org_id, r.id, s.install_id, s.id, s.workflow_id, 'terraform_module', 'plan', 'leased', '{}', 60, 2
		from steps s, runners r where s.name = 'component/api' and r.install_id = s.install_id`)
	exec(`insert into runner_sessions (id, org_id, runner_id, epoch, token_hash) select 'ses_1', org_id, runner_id, 1, 'x' from runner_jobs`)
	exec(`insert into leases (id, org_id, job_id, runner_id, session_id, attempt, claim_id, stream_id, state, expires_at)
		select 'lea_' || n, org_id, 'job_1', runner_id, 'ses_1', n, 'c', 's', case n when 2 then 'active' else 'ended' end, now()
		from runner_sessions, generate_series(1, 2) n`)
	if got := shown(); got != nil {
		t.Errorf("before anything is told: %+v", got)
	}
	told := `update leases set progress = '{"what":"aws_db_instance.main","doing":"creating","seconds":190,"done":4,"total":12}', progress_at = now() where attempt = `
	exec(told + `1`)
	if got := shown(); got != nil {
		t.Errorf("what an earlier attempt told is shown: %+v", got)
	}
	exec(told + `2`)
	got := shown()
	if got == nil || got.What != "aws_db_instance.main" || got.Doing != "creating" || got.Done != 4 || got.Total != 12 ||
		got.ReportedAt.Sub(got.StartedAt) != 190*time.Second || time.Since(got.ReportedAt) > time.Minute {
		t.Errorf("progress %+v", got)
	}
	exec(`update runner_jobs set state = 'succeeded'`)
	if got := shown(); got != nil {
		t.Errorf("after the job's end: %+v", got)
	}
}
