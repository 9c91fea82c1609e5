package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

func TestWhatIsSwitchedOffIsRemovedAndMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Component("card").Toggleable = true })
	r.provision()
	r.exec(`update installs set toggles = '{"card": false}', toggles_version = 1`)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
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
	gone := r.start(workflow.Request{Kind: flow.KindDeprovision, ApproveAll: true})
	r.planned(gone, "component/card", "")
	if got := vars(gone, "component/greeting"); got != `text = "3"` {
		t.Errorf("the removal has install_vars %q", got)
	}
}
