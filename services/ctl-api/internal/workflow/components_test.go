package workflow_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestWhatIsSwitchedOffIsRemovedAndMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Component("card").Toggleable = true })
	r.provision()
	r.exec(`update installs set toggles = '{"card": false}', toggles_version = 1`)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true, Confirm: "acme"})
	if got := r.value(`select kind || ' ' || reason from steps where workflow_id = $1 and name = 'component/card'`, w); got != "teardown it is switched off in this install" {
		t.Fatalf("the step of the card is %q", got)
	}
	if _, spec := r.openJob(w, "component/card"); !spec.Destroy {
		t.Error("the plan of the card does not destroy")
	}
	r.planned(w, "component/card", "gone")
	if got := r.value(`select kind || ' ' || state from changes where workflow_id = $1 and kind = 'teardown'`, w); got != "teardown executing" {
		t.Errorf("its change is %q", got)
	}
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
	r.planned(w, "component/greeting", "")
	r.planned(w, "component/key", "")
	// The check reads the card, so it can only fail now.
	want := map[string]string{
		"runner": "succeeded", "release": "succeeded no_change", "component/card": "succeeded applied", "component/greeting": "succeeded no_change", "component/key": "succeeded no_change",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := r.value(`select (select state from workflows where id = $1) || ' ' || state || coalesce(live_release_id, '') from resources where name = 'card'`, w); got != "succeeded absent" {
		t.Errorf("workflow and card are %q, want succeeded absent", got)
	}
	if got := r.value(`select count(*)::text from checks`); got != "0" {
		t.Errorf("%s checks are judged, want none", got)
	}
	again := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	if _, there := r.steps(again)["component/card"]; there {
		t.Error("what is gone is removed again")
	}

	r.exec(`update installs set toggles = '{"card": true}', toggles_version = 2`)
	w = r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	for _, c := range []string{"component/greeting", "component/key"} {
		r.planned(w, c, "")
	}
	r.planned(w, "component/card", "card again")
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select (select state || ' ' || toggles_version::text from workflows where id = $1) || ' ' || state from resources where name = 'card'`, w); got != "succeeded 2 live" {
		t.Errorf("workflow, its toggles and card are %q, want succeeded 2 live", got)
	}
	if got := r.value(`select verdict from checks where name = 'files_intact'`); got != "healthy" {
		t.Errorf("the check is %q", got)
	}
}

// A preview with toggles that nobody has set plans their removals, needs no
// confirmation, and leaves the install as it is.
func TestPreviewOfASwitch(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Component("card").Toggleable = true })
	r.provision()
	standing := `select i.toggles::text || i.toggles_version || r.state from installs i join resources r on r.install_id = i.id where r.name = 'card'`
	before := r.value(standing)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, PlanOnly: true, Toggles: map[string]bool{"card": false}})
	if _, spec := r.openJob(w, "component/card"); !spec.Destroy {
		t.Error("the plan of the card does not destroy")
	}
	r.planned(w, "component/card", "gone")
	for _, c := range []string{"component/greeting", "component/key"} {
		r.planned(w, c, "")
	}
	want := map[string]string{
		"runner": "succeeded", "release": "succeeded no_change", "component/card": "succeeded planned",
		"component/greeting": "succeeded no_change", "component/key": "succeeded no_change",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if after := r.value(standing); after != before {
		t.Errorf("install and card are %s, were %s", after, before)
	}
	err := r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		_, err := workflow.Start(ctx, tx, workflow.Request{InstallID: r.install, Actor: "ada", Kind: flow.KindDeploy, Toggles: map[string]bool{"card": false}})
		return err
	})
	if fault.From(err).Code != "invalid" {
		t.Errorf("a deploy with toggles that are not set: %v", err)
	}
}

// No workflow removes anything without the install's name: no approval and no
// setting stands in for it.
func TestRemovalIsConfirmed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Component("card").Toggleable = true })
	r.provision()
	r.exec(`update installs set toggles = '{"card": false}', toggles_version = 1, approval_option = 'approve_all'`)
	before := r.value(`select count(*)::text from workflows`)
	all := []string{"component card", "component greeting", "component key", "the sandbox"}
	for _, tt := range []struct {
		name string
		req  workflow.Request
		goes []string // nil when it may begin
	}{
		{"a deploy that removes what is off", workflow.Request{Kind: flow.KindDeploy, ApproveAll: true}, all[:1]},
		{"with another name", workflow.Request{Kind: flow.KindDeploy, Confirm: "card"}, all[:1]},
		{"a provision that does", workflow.Request{Kind: flow.KindProvision, ApproveAll: true}, all[:1]},
		{"a deprovision", workflow.Request{Kind: flow.KindDeprovision, ApproveAll: true}, all},
		{"a plan of it", workflow.Request{Kind: flow.KindDeprovision, PlanOnly: true}, nil},
		{"a plan of a deploy", workflow.Request{Kind: flow.KindDeploy, PlanOnly: true}, nil},
		{"a deploy of another component", workflow.Request{Kind: flow.KindDeploy, Components: []string{"key"}}, nil},
	} {
		tt.req.InstallID, tt.req.Actor = r.install, "ada"
		err := r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
			if _, err := workflow.Start(ctx, tx, tt.req); err != nil {
				return err
			}
			return errUndo
		})
		if tt.goes == nil {
			if !errors.Is(err, errUndo) {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		refused := fault.From(err)
		var goes []string
		for _, f := range refused.Errors {
			goes = append(goes, f.Detail)
		}
		slices.Sort(goes)
		if diff := cmp.Diff(tt.goes, goes); diff != "" || refused.Code != "not_confirmed" {
			t.Errorf("%s: %v (%s); what goes (-want +got):\n%s", tt.name, err, refused.Code, diff)
		}
	}
	if after := r.value(`select count(*)::text from workflows`); after != before {
		t.Errorf("there are %s workflows, were %s", after, before)
	}
}

// errUndo ends a transaction that a test looks into.
var errUndo = errors.New("undo")

// A workflow has what was overridden when it began, and takes it to each job of
// the component, its removal too.
func TestOverridesArePinnedWithTheInputs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	override := func(version int32, vars string) {
		r.exec(`insert into install_inputs (org_id, install_id, version, values, sealed, overrides, created_by)
			select org_id, install_id, $2, values, $4, jsonb_build_object('greeting', jsonb_build_object('tf_vars', $3::text)), 'test'
			from install_inputs where install_id = $1 and version = 1`, r.install, version, vars, r.sealedInputs(version))
		r.exec(`update installs set inputs_version = $2 where id = $1`, r.install, version)
	}
	vars := func(workflowID, step string) string {
		_, spec := r.openJob(workflowID, step)
		return spec.TerraformModule.InstallVars
	}
	override(2, `text = "{{ .nuon.name }}"`)
	first := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	if got := vars(first, "component/greeting"); got != `text = "{{ .nuon.name }}"` {
		t.Errorf("the plan of the greeting has install_vars %q", got)
	}
	if got := vars(first, "component/key"); got != "" {
		t.Errorf("the plan of the key has install_vars %q", got)
	}
	override(3, `text = "3"`)
	r.planned(first, "component/greeting", "new text")
	if got := vars(first, "component/greeting"); got != `text = "{{ .nuon.name }}"` {
		t.Errorf("the apply has install_vars %q, want those that the workflow began with", got)
	}
	r.applied(first, "component/greeting", jobspec.OutcomeStale, nil)
	if got := vars(first, "component/greeting"); got != `text = "{{ .nuon.name }}"` {
		t.Errorf("the second plan has install_vars %q, want those that the workflow began with", got)
	}
	gone := r.start(workflow.Request{Kind: flow.KindDeprovision, ApproveAll: true, Confirm: "acme"})
	r.planned(gone, "component/card", "")
	if got := vars(gone, "component/greeting"); got != `text = "3"` {
		t.Errorf("the removal has install_vars %q", got)
	}
}

func TestWhatIsOffByDefaultIsNotDeployed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		card := app.Component("card")
		card.Toggleable, card.DefaultEnabled = true, new(false)
	})
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	if state, there := r.steps(w)["component/card"]; there {
		t.Errorf("nobody switched the card on, and its step is %s", state)
	}
	r.exec(`update workflows set state = 'cancelled', finished_at = now() where id = $1`, w)
	r.exec(`update installs set toggles = '{"card": true}', toggles_version = 1`)
	w = r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	if _, there := r.steps(w)["component/card"]; !there {
		t.Errorf("the card is switched on, and the steps are %v", r.steps(w))
	}
}

// A deploy that fails is planned again as often as max_auto_retries says, and
// approved again.
func TestFailedDeployIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Component("card").MaxAutoRetries = 1 })
	r.provision()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	r.planned(w, "component/greeting", "")
	r.planned(w, "component/key", "")
	for _, try := range []string{"first", "second"} {
		r.planned(w, "component/card", try)
		r.applied(w, "component/card", jobspec.OutcomeFailed, nil)
	}
	if got := r.steps(w)["component/card"]; got != "failed failed" {
		t.Errorf("after two failures the card is %q, want failed failed", got)
	}
	if got := r.value(`select count(*)::text from changes where workflow_id = $1 and state = 'failed'`, w); got != "2" {
		t.Errorf("%s changes failed, want 2", got)
	}
}

// A failure that comes again until somebody changes something is not tried
// again by itself, whatever max_auto_retries says; a person's retry is.
func TestFailureThatNeedsAChangeIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Component("card").MaxAutoRetries = 3 })
	r.provision()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	r.planned(w, "component/greeting", "")
	r.planned(w, "component/key", "")
	plans := func() string {
		return r.value(`select count(*)::text from changes c join steps s on s.id = c.step_id where s.workflow_id = $1 and s.name = 'component/card'`, w)
	}
	failed := func(reason jobspec.Reason, text string) {
		jobID, _ := r.openJob(w, "component/card")
		r.report(w, jobID, "failed", jobspec.Result{JobID: jobID, Outcome: jobspec.OutcomeFailed, Reason: reason, Error: text, Remedy: "declare it"})
	}
	failed("", "the registry does not answer")
	if got := r.steps(w)["component/card"]; got != "running preparing" || plans() != "2" {
		t.Fatalf("after a failure that may pass the card is %q with %s plans, want a second plan", got, plans())
	}
	failed(jobspec.ReasonNeedsChange, "no value for variable x")
	step := r.value(`select id from steps where workflow_id = $1 and name = 'component/card'`, w)
	told := r.value(`select error || '; ' || remedy from steps where id = $1`, step)
	if got := r.steps(w)["component/card"]; got != "failed failed" || plans() != "2" || told != "no value for variable x; declare it" {
		t.Errorf("the card is %q with %s plans: %s", got, plans(), told)
	}
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, err := workflow.Retry(ctx, tx, step, "ada")
		return err
	})
	r.advance(w)
	if got := r.steps(w)["component/card"]; got != "running preparing" || plans() != "3" {
		t.Errorf("after ada's retry the card is %q with %s plans", got, plans())
	}
	failed("moon_phase", "what a newer runner says")
	if got := r.steps(w)["component/card"]; got != "running preparing" || plans() != "4" {
		t.Errorf("after a reason that nobody knows the card is %q with %s plans, want it planned again", got, plans())
	}
}

// Templates may name a component by its var_name, which the tree of an install
// holds.
func TestStateHasTheVarNamesOfComponents(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Component("card").VarName = "postcard" })
	r.provision()
	if got := r.value(`select tree #>> '{components,card,var_name}' from state_versions where install_id = $1 order by version desc limit 1`, r.install); got != "postcard" {
		t.Errorf("the card is %q in templates, want postcard", got)
	}
}

// An input that the install does not set and that has no default is there for
// templates, and empty; so is a sensitive one.
func TestStateHasInputsWithoutValue(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		app.Inputs = append(app.Inputs, appconfig.Input{Name: "motto"}, appconfig.Input{Name: "token", Sensitive: true})
	})
	r.provision()
	for _, name := range []string{"motto", "token"} {
		got := r.value(`select tree #> array['inputs', 'inputs', $2] from state_versions where install_id = $1 order by version desc limit 1`, r.install, name)
		if got != `""` {
			t.Errorf("input %s is %s in templates, want an empty text", name, got)
		}
	}
}

// What the triggers of an action say becomes steps: at which point, of which
// component, and which action first.
func TestTriggersBecomeSteps(t *testing.T) {
	t.Parallel()
	timeout, step := place.Duration(time.Minute), []appconfig.Step{{Name: "s", Command: "true"}}
	r := newRig(t, func(app *appconfig.App) {
		app.Actions = append(app.Actions,
			appconfig.Action{Name: "a", Timeout: timeout, Steps: step, Triggers: []appconfig.Trigger{{Type: "pre-deploy-component", ComponentName: "key", Index: 2}, {Type: "manual"}}},
			appconfig.Action{Name: "b", Timeout: timeout, Steps: step, Triggers: []appconfig.Trigger{{Type: "pre-deploy-component", ComponentName: "key", Index: 1}}},
			appconfig.Action{Name: "c", Timeout: timeout, Steps: step, Triggers: []appconfig.Trigger{{Type: "manual"}}},
		)
	})
	r.arrive()
	actions := func(w string) string {
		return r.value(`select string_agg(name, ' ' order by idx) from steps where workflow_id = $1 and action in ('a', 'b', 'c')`, w)
	}
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	if got, want := actions(w), "pre-deploy-component/key/b pre-deploy-component/key/a"; got != want {
		t.Errorf("actions of the workflow: %s; want %s", got, want)
	}
	for _, action := range []string{"a", "c"} {
		byHand := r.start(workflow.Request{Kind: flow.KindActionRun, Action: action})
		if got, want := actions(byHand), "action/"+action; got != want {
			t.Errorf("started by hand: %s; want %s", got, want)
		}
	}
}
