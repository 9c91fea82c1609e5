package workflow_test

import (
	"context"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

// Each job of a component has its deploy_timeout. One that the runner stopped by it
// fails its step with that reason, frees the resource, and can be retried.
func TestAStepPastItsTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		key := app.Component("key")
		key.DeployTimeout, key.MaxAutoRetries, app.Actions = place.Duration(7*time.Minute), 0, nil
	})
	r.provisionWithoutChecks()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"key"}, ApproveAll: true})
	limit := func(what string) (jobID string) {
		t.Helper()
		jobID, spec := r.openJob(w, "component/key")
		if spec.TimeoutSeconds != 7*60 {
			t.Errorf("the %s has %d s, want 420", what, spec.TimeoutSeconds)
		}
		return jobID
	}
	limit("plan")
	r.planned(w, "component/key", "new")
	const said = "timed out after 7m0s and stopped at a safe point"
	apply := limit("apply")
	r.report(w, apply, "failed", jobspec.Result{JobID: apply, Outcome: jobspec.OutcomeFailed, Error: said})
	if got := r.value(`select s.state || ': ' || s.error || ' ' || coalesce(r.locked_by, 'free') from steps s join resources r on r.id = s.resource_id where s.workflow_id = $1 and s.name = 'component/key'`, w); got != "failed: "+said+" free" {
		t.Errorf("the step is %q", got)
	}
	r.tx(func(ctx context.Context, tx *database.Tx) error { return workflow.RetryAll(ctx, tx, w, "ada") })
	r.advance(w)
	r.planned(w, "component/key", "new")
	limit("apply of the retry")
	r.applied(w, "component/key", jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	if got := r.value(`select w.state || ' ' || s.attempt from workflows w join steps s on s.workflow_id = w.id where w.id = $1 and s.name = 'component/key'`, w); got != "succeeded 2" {
		t.Errorf("workflow and attempt of the step are %q, want succeeded 2", got)
	}
}
