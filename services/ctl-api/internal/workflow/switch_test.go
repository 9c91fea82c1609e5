package workflow_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/model"
)

// switching is a live install whose card can be switched, with an action at each of
// the points of that. The one before a removal reads the card, which is there still.
func switching(t *testing.T) *rig {
	t.Helper()
	hook := func(name, point, command string) appconfig.Action {
		return appconfig.Action{
			Name: name, Timeout: place.Duration(time.Minute), Steps: []appconfig.Step{{Name: "s", Command: command}},
			Triggers: []appconfig.Trigger{{Type: appconfig.TriggerType(point), ComponentName: "card"}},
		}
	}
	r := newRig(t, func(app *appconfig.App) {
		app.Component("card").Toggleable = true
		app.Actions = []appconfig.Action{
			hook("dump", "pre-disable-component", "cat {{ .nuon.components.card.outputs.path }}"), hook("gone", "post-disable-component", "true"),
			hook("ask", "pre-enable-component", "true"), hook("cheer", "post-enable-component", "true"),
			hook("lost", "post-disable-component", "cat {{ .nuon.components.card.outputs.path }}"),
		}
	})
	r.provisionWithoutChecks()
	return r
}

// ran plays an action of a workflow that is planned, approved and run.
func (r *rig) ran(workflowID, step string) {
	r.t.Helper()
	r.planned(workflowID, step, step)
	r.applied(workflowID, step, jobspec.OutcomeSucceeded, nil)
}

// A switch that takes effect removes or makes one component, between its points; the
// rest of the install is left alone.
func TestAToggleIsAWorkflow(t *testing.T) {
	t.Parallel()
	r := switching(t)
	release := r.value(`select release_id from installs`)
	r.exec(`update installs set toggles = '{"card": false}', toggles_version = 1`)
	w := r.start(workflow.Request{Kind: flow.KindToggle, Components: []string{"card"}, ApproveAll: true, Confirm: "acme"})
	r.ran(w, "pre-disable-component/card/dump")
	r.planned(w, "component/card", "gone")
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
	r.ran(w, "post-disable-component/card/gone")
	want := map[string]string{
		"runner": "succeeded", "release": "succeeded no_change", "pre-disable-component/card/dump": "succeeded applied",
		"component/card": "succeeded applied", "post-disable-component/card/gone": "succeeded applied",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("off (-want +got):\n%s", diff)
	}
	r.exec(`update installs set toggles = '{"card": true}', toggles_version = 2`)
	w = r.start(workflow.Request{Kind: flow.KindToggle, ApproveAll: true})
	r.ran(w, "pre-enable-component/card/ask")
	r.planned(w, "component/card", "again")
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
	r.ran(w, "post-enable-component/card/cheer")
	want = map[string]string{
		"runner": "succeeded", "release": "succeeded no_change", "pre-enable-component/card/ask": "succeeded applied",
		"component/card": "succeeded applied", "post-enable-component/card/cheer": "succeeded applied",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("on (-want +got):\n%s", diff)
	}
	if got := r.value(`select i.state || ' ' || r.state || ' ' || (i.release_id = $1) from installs i join resources r on r.install_id = i.id where r.name = 'card'`, release); got != "live live true" {
		t.Errorf("install, card and whether the release is as before: %s", got)
	}
}

// Somebody switches the card on again while its removal waits: what has not begun is
// not wanted any more, and is left out with that reason.
func TestAToggleIsReadAgainWhenAStepStarts(t *testing.T) {
	t.Parallel()
	r := switching(t)
	r.exec(`update installs set toggles = '{"card": false}', toggles_version = 1`)
	w := r.start(workflow.Request{Kind: flow.KindToggle, Components: []string{"card"}, ApproveAll: true, Confirm: "acme"})
	r.planned(w, "pre-disable-component/card/dump", "dump")
	r.exec(`update installs set toggles = '{"card": true}', toggles_version = 2`)
	r.applied(w, "pre-disable-component/card/dump", jobspec.OutcomeSucceeded, nil)
	want := map[string]string{
		"runner": "succeeded", "release": "succeeded no_change", "pre-disable-component/card/dump": "succeeded applied",
		"component/card": "skipped", "post-disable-component/card/gone": "skipped",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	got := r.value(`select w.state || ' ' || r.state || ': ' || s.reason from workflows w join steps s on s.workflow_id = w.id join resources r on r.id = s.resource_id where w.id = $1`, w)
	if want := "succeeded live: it was switched off in this install; skipped: component card was switched on after this workflow was planned"; got != want {
		t.Errorf("workflow and card: %q, want %q", got, want)
	}
}

// After a failure one workflow stops, and another goes on with what does not need the
// failed component; the choice is pinned in its row.
func TestAWorkflowContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	for policy, want := range map[model.OnFailure]string{model.FailureStops: "pending", model.FailureContinues: "running preparing"} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			const seed = "post-deploy-component/greeting/seed"
			r := newRig(t, func(app *appconfig.App) { app.Actions = nil })
			r.provisionWithoutChecks()
			r.exec(`update configs set body = jsonb_set(body::jsonb, '{actions}', $1::jsonb)::json`, `[{"name": "seed", "timeout": "1m", "steps": [{"name": "s", "command": "true"}],
				"triggers": [{"type": "post-deploy-component", "component_name": "greeting"}]}]`)
			w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true, OnFailure: policy})
			r.planned(w, "component/key", "new")
			r.applied(w, "component/key", jobspec.OutcomeFailed, nil)
			r.planned(w, "component/greeting", "")
			if got := r.steps(w)[seed]; got != want {
				t.Fatalf("what needs the greeting only is %q, want %q", got, want)
			}
			if policy == model.FailureContinues {
				r.ran(w, seed)
			}
			if got := r.steps(w)["component/card"]; got != "pending" {
				t.Errorf("the card, which needs the key, is %q", got)
			}
			if got := r.value(`select state || ' ' || on_failure || ': ' || error from workflows where id = $1`, w); got != "failed "+string(policy)+": step component/key failed" {
				t.Errorf("the workflow is %q", got)
			}
			r.tx(func(ctx context.Context, tx *database.Tx) error { return workflow.RetryAll(ctx, tx, w, "ada") })
			r.advance(w)
			r.planned(w, "component/key", "")
			if policy == model.FailureStops {
				r.ran(w, seed)
			}
			r.planned(w, "component/card", "")
			if got := r.value(`select state from workflows where id = $1`, w); got != "succeeded" {
				t.Errorf("after the retry the workflow is %s (%v)", got, r.steps(w))
			}
		})
	}
}

// A workflow that was cancelled goes on where it stopped, with plans of its own; a
// change that somebody approved before is asked for again only when its effect differs.
func TestACancelledWorkflowIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Actions = nil })
	r.provisionWithoutChecks()
	w := r.start(workflow.Request{Kind: flow.KindDeploy})
	r.planned(w, "component/key", "")
	r.planned(w, "component/greeting", "new")
	r.tx(func(ctx context.Context, tx *database.Tx) error { return workflow.Cancel(ctx, tx, w, "ada") })
	err := r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error { return workflow.RetryAll(ctx, tx, w, "ada") })
	if err == nil {
		t.Error("a workflow is taken up again before it has stopped")
	}
	r.advance(w)
	if got := r.value(`select state from workflows where id = $1`, w); got != "cancelled" {
		t.Fatalf("the workflow is %s", got)
	}
	step := r.value(`select id from steps where workflow_id = $1 and name = 'component/greeting'`, w)
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, err := workflow.Retry(ctx, tx, step, "ada")
		return err
	})
	r.advance(w)
	r.planned(w, "component/greeting", "new")
	if got := r.steps(w)["component/greeting"]; got != "waiting proposed" {
		t.Fatalf("nobody approved it before, and it is %q", got)
	}
	if err := r.answered(w, "component/greeting", model.Approve, ""); err != nil {
		t.Fatal(err)
	}
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "Hello"))
	r.planned(w, "component/card", "")
	want := map[string]string{
		"runner": "succeeded", "release": "succeeded no_change", "component/key": "succeeded no_change",
		"component/greeting": "succeeded applied", "component/card": "succeeded no_change",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := r.value(`select state || coalesce(cancel_requested_at::text, '') from workflows where id = $1`, w); got != "succeeded" {
		t.Errorf("the workflow is %s", got)
	}
}
