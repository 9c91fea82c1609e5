package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

// plannedOutputs answers the plan job of a step with a plan that changes these
// outputs, in nothing else.
func (r *rig) plannedOutputs(workflowID, step string, outputs ...string) {
	r.t.Helper()
	jobID, _ := r.openJob(workflowID, step)
	effect := capsule.Effect{OrgID: r.org, InstallID: r.install, ChangeKind: "deploy", Component: step, PlanDigest: step}
	summary := jobspec.PlanSummary{Update: 1}
	for _, o := range outputs {
		summary.Outputs = append(summary.Outputs, jobspec.FieldChange{Path: o, Before: "a", After: "b"})
	}
	r.report(workflowID, jobID, "succeeded", map[string]any{
		"outcome": "succeeded", "plan": map[string]any{"effect": effect, "effect_digest": effect.Digest(), "pinned": "sha256:pin", "plan_bytes_digest": "sha256:pin", "summary": summary},
	})
}

// mayChange shows what a preview could not know, by step.
func (r *rig) mayChange(workflowID string) map[string]string {
	r.t.Helper()
	got := map[string]string{}
	for name := range r.steps(workflowID) {
		if text := r.value(`select may_change::text from steps where workflow_id = $1 and name = $2`, workflowID, name); text != "[]" {
			got[name] = text
		}
	}
	return got
}

// inForce is what a preview must leave as it is. The row of a resource that is not
// there says nothing, and a preview may add one.
func (r *rig) inForce() string {
	r.t.Helper()
	return r.value(`select json_build_object('install', (select i::jsonb - 'updated_at' - 'version' from (select to_jsonb(i) as i from installs i where id = $1) x),
		'resources', (select json_agg(json_build_array(name, state, live_release_id, live_change_id, fence, outputs) order by name) from resources where install_id = $1 and (state <> 'absent' or fence > 0)),
		'trees', (select json_agg(version order by version) from state_versions where install_id = $1 and version > 0),
		'inputs', (select json_agg(version order by version) from install_inputs where install_id = $1 and version > 0))::text`, r.install)
}

// A preview plans everything, applies nothing, and says what it cannot know.
func TestPreview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	before := r.inForce()

	w := r.start(workflow.Request{Kind: flow.KindDeploy, PlanOnly: true})
	r.plannedOutputs(w, "component/greeting", "text.of[0]")
	r.planned(w, "component/key", "")
	r.planned(w, "component/card", "")
	want := map[string]string{
		"runner": "succeeded", "release": "succeeded no_change", "component/greeting": "succeeded planned",
		"component/key": "succeeded no_change", "component/card": "succeeded no_change",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"component/card": `[{"of": "greeting", "reads": "greeting.text"}]`}, r.mayChange(w)); diff != "" {
		t.Errorf("what may change (-want +got):\n%s", diff)
	}
	if got := r.value(`select state from workflows where id = $1`, w); got != "succeeded" {
		t.Errorf("the preview has %s", got)
	}

	again := r.start(workflow.Request{Kind: flow.KindProvision, PlanOnly: true})
	r.plannedOutputs(again, "sandbox", "size")
	r.plannedOutputs(again, "component/greeting", "size")
	r.planned(again, "component/key", "")
	r.planned(again, "component/card", "")
	if diff := cmp.Diff(map[string]string{}, r.mayChange(again)); diff != "" {
		t.Errorf("nobody reads the outputs that change (-want +got):\n%s", diff)
	}
	gone := r.start(workflow.Request{Kind: flow.KindDeprovision, PlanOnly: true})
	for _, step := range []string{"component/card", "component/greeting", "component/key", "sandbox", "scripts"} {
		if step != "scripts" { // advance answers for it
			r.planned(gone, step, "gone "+step)
		}
		if got := r.value(`select c.state || ' ' || c.kind from changes c join steps s on s.id = c.step_id where s.workflow_id = $1 and s.name = $2`, gone, step); got != "planned teardown" && step != "scripts" {
			t.Errorf("%s is %s", step, got)
		}
	}
	if got := r.value(`select state from workflows where id = $1`, gone); got != "succeeded" {
		t.Errorf("the preview of a deprovision has %s: %v", got, r.steps(gone))
	}
	if diff := cmp.Diff(before, r.inForce()); diff != "" {
		t.Errorf("previews changed what is in force (-want +got):\n%s", diff)
	}
	if got := r.value(`select count(*)::text from runner_jobs where workflow_id = any ($1) and operation <> 'plan'`, []string{w, again, gone}); got != "0" {
		t.Errorf("previews had %s jobs that are no plans", got)
	}
}

// What is not there yet cannot be planned; the preview says so and continues.
func TestPreviewOfFirstProvision(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		app.Component("key").TerraformModule.Vars = nil
	})
	r.arrive()
	before := r.inForce()
	w := r.start(workflow.Request{Kind: flow.KindProvision, PlanOnly: true})
	r.planned(w, "sandbox", "sb")
	r.plannedOutputs(w, "component/key", "signing_key")
	want := map[string]string{
		"stack": "succeeded", "runner": "succeeded", "release": "succeeded no_change", "sandbox": "succeeded planned",
		"component/greeting": "skipped", "component/key": "succeeded planned", "component/card": "skipped",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	wantMay := map[string]string{
		"component/greeting": `[{"of": "sandbox", "reads": "sandbox.data_dir", "absent": true}]`,
		"component/card": `[{"of": "sandbox", "reads": "sandbox.data_dir", "absent": true}, {"of": "key", "reads": "key.signing_key", "absent": true}, ` +
			`{"of": "greeting", "reads": "greeting.text", "absent": true}]`,
	}
	if diff := cmp.Diff(wantMay, r.mayChange(w)); diff != "" {
		t.Errorf("what may change (-want +got):\n%s", diff)
	}
	if got := r.value(`select state from workflows where id = $1`, w); got != "succeeded" {
		t.Errorf("the preview has %s", got)
	}
	if diff := cmp.Diff(before, r.inForce()); diff != "" {
		t.Errorf("the preview changed what is in force (-want +got):\n%s", diff)
	}
}
