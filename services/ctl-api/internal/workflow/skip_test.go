package workflow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// answered decides on what a step proposes.
func (r *rig) answered(w, step string, answer model.Answer, then model.DeniedThen) error {
	r.t.Helper()
	change := r.value(`select change_id from steps where workflow_id = $1 and name = $2`, w, step)
	err := r.ctl.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		return workflow.Decide(ctx, tx, workflow.Answer{
			ChangeID: change, Answer: answer, Then: then, By: r.ada, Note: "not now",
			EffectDigest: r.value(`select effect_digest from changes where id = $1`, change),
		})
	})
	r.advance(w)
	return err
}

// A denied step takes the workflow with it, or is skipped, alone or with what needs it.
func TestDeniedSteps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		then model.DeniedThen
		want map[string]string // greeting is denied, card needs it, key needs nothing
		ends string
	}{
		"fail":            {"", map[string]string{"component/greeting": "failed denied", "component/card": "pending"}, "failed"},
		"skip":            {model.ThenSkip, map[string]string{"component/greeting": "skipped denied", "component/card": "succeeded applied"}, "succeeded"},
		"with dependents": {model.ThenSkipDependents, map[string]string{"component/greeting": "skipped denied", "component/card": "skipped"}, "succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(app *appconfig.App) { app.Actions = nil })
			r.provisionWithoutChecks()
			w := r.start(workflow.Request{Kind: flow.KindDeploy})
			r.planned(w, "component/greeting", "new")
			r.planned(w, "component/key", "")
			if err := r.answered(w, "component/greeting", model.Deny, tc.then); err != nil {
				t.Fatal(err)
			}
			if tc.then == model.ThenSkip {
				r.planned(w, "component/card", "new")
				if err := r.answered(w, "component/card", model.Approve, ""); err != nil {
					t.Fatal(err)
				}
				r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
			}
			want := map[string]string{"runner": "succeeded", "release": "succeeded no_change", "component/key": "succeeded no_change"}
			for step, state := range tc.want {
				want[step] = state
			}
			if diff := cmp.Diff(want, r.steps(w)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if got := r.value(`select state from workflows where id = $1`, w); got != tc.ends {
				t.Errorf("the workflow is %s, want %s", got, tc.ends)
			}
			if got := r.value(`select count(*)::text from steps where workflow_id = $1 and wait_reason is not null`, w); got != "0" {
				t.Errorf("%s steps still wait", got)
			}
			if got := r.value(`select count(*)::text from resources where locked_by is not null`); got != "0" {
				t.Errorf("%s resources are locked", got)
			}
		})
	}
}

// Who wants a new plan gets one, which nobody has approved yet.
func TestPlanAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Actions = nil })
	r.provisionWithoutChecks()
	w := r.start(workflow.Request{Kind: flow.KindDeploy})
	r.planned(w, "component/greeting", "new")
	first := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, w)
	if err := r.answered(w, "component/greeting", model.PlanAgain, ""); err != nil {
		t.Fatal(err)
	}
	if got := r.value(`select state || ': ' || error from changes where id = $1`, first); got != "withdrawn: to be planned again, asked for by ada: not now" {
		t.Errorf("the first change is %q", got)
	}
	r.planned(w, "component/greeting", "newer")
	if got := r.value(`select c.state || ' ' || (c.id <> $2)::text from steps s join changes c on c.id = s.change_id where s.workflow_id = $1 and s.name = 'component/greeting'`, w, first); got != "proposed true" {
		t.Errorf("the second change is %q", got)
	}
	if err := r.answered(w, "component/greeting", model.Approve, ""); err != nil {
		t.Fatal(err)
	}
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "Hello"))
	if got := r.value(`select string_agg(answer, ' ' order by d.created_at) from decisions d join changes c on c.id = d.change_id where c.workflow_id = $1 and rule = 'person'`, w); got != "plan_again approve" {
		t.Errorf("the decisions are %q", got)
	}
}

// The scripts of a release are not skipped, and the refusal leaves the change as it was.
func TestScriptsAreNotSkipped(t *testing.T) {
	t.Parallel()
	r, w := deployed(t)
	r.planned(w, "release", "new")
	if err := r.answered(w, "release", model.Deny, model.ThenSkip); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("skipping the scripts: %v", err)
	}
	if got := r.value(`select c.state from steps s join changes c on c.id = s.change_id where s.workflow_id = $1 and s.name = 'release'`, w); got != "proposed" {
		t.Errorf("the change is %s", got)
	}
}
