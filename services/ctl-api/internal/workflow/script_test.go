package workflow_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

// script is a request to run one, with a sealed variable.
func (r *rig) script(name, component string) workflow.Request {
	r.t.Helper()
	s := &orders.Script{Name: name, Text: "echo $TOKEN", Component: component}
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		install, err := tx.FindInstall(ctx, r.install)
		if err != nil {
			return err
		}
		return workflow.SealScript(r.engine.Keys, install, s, map[string]string{"TOKEN": "a canary that nobody may see"})
	})
	return workflow.Request{Kind: flow.KindRunScript, Script: s}
}

// A script holds the install while it runs, leaves what is known of it alone, and only the
// install can open its variables.
func TestRunScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	r.provision()
	before := r.value(`select string_agg(name || ' ' || state || ' ' || coalesce(live_change_id, ''), ',' order by name) from resources`)

	w := r.start(r.script("fix", ""))
	_, spec := r.openJob(w, "script")
	if !spec.Action.AdHoc || spec.Action.Name != "script/fix" || spec.Resource == nil || spec.Resource.Kind != "sandbox" {
		t.Fatalf("spec = %+v", spec)
	}
	var tree struct {
		Script struct {
			Env map[string]any `json:"env"`
		} `json:"script"`
	}
	if err := json.Unmarshal(spec.State, &tree); err != nil {
		t.Fatal(err)
	}
	opened, err := seal.OpenLeaves(r.seal.Opener(), tree.Script.Env, func(path []string) (seal.Purpose, bool) {
		return interpolate.ScriptPurpose(r.org, r.install, spec.ChangeID, path[0]), true
	})
	if err != nil || opened.(map[string]any)["TOKEN"] != "a canary that nobody may see" {
		t.Errorf("the install opens %v, %v", opened, err)
	}
	if _, err := seal.OpenLeaves(r.seal.Opener(), tree.Script.Env, func(path []string) (seal.Purpose, bool) {
		return interpolate.ScriptPurpose(r.org, r.install, "chg_other", path[0]), true
	}); err == nil {
		t.Error("the variable opens for another change")
	}
	for table, column := range map[string]string{"runner_jobs": "spec", "workflows": "params", "state_versions": "tree", "workflow_events": "body"} {
		if n := r.value(`select count(*)::text from ` + table + ` where ` + column + `::text like '%canary%'`); n != "0" {
			t.Errorf("%s of %s rows of %s hold the variable in clear", column, n, table)
		}
	}
	if n := r.value(`select count(*)::text from state_versions where tree ? 'script'`); n != "0" {
		t.Error("the stored tree has what is for one job alone")
	}

	r.planned(w, "script", "fix")
	r.approve(w, "script")
	if held := r.value(`select count(*)::text from resources where kind = 'sandbox' and locked_by is not null and state = 'live'`); held != "1" {
		t.Errorf("%s sandboxes are held and live, want 1", held)
	}
	// What changes the install meanwhile waits for it.
	deploy := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}, ApproveAll: true})
	r.planned(deploy, "component/greeting", "again")
	if got := r.steps(deploy)["component/greeting"]; !strings.Contains(got, "waiting") {
		t.Errorf("the deploy is %q while the script runs, want it to wait", got)
	}
	r.applied(w, "script", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select state from workflows where id = $1`, w); got != "succeeded" {
		t.Errorf("workflow is %s; steps: %v", got, r.steps(w))
	}
	if after := r.value(`select string_agg(name || ' ' || state || ' ' || coalesce(live_change_id, ''), ',' order by name) from resources`); after != before {
		t.Errorf("resources after it:\n%s\nbefore:\n%s", after, before)
	}
	if got := r.value(`select trigger || ' ' || state from action_runs where action = 'script/fix'`); got != "run_script succeeded" {
		t.Errorf("its run is %q", got)
	}
	r.advance(deploy)
	r.applied(deploy, "component/greeting", jobspec.OutcomeSucceeded, nil)
}

// Nobody knows whether it ran: it is not started again, and it frees what it held.
func TestUncertainScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	r.provision()
	w := r.start(r.script("fix", "greeting"))
	r.planned(w, "script", "fix")
	r.approve(w, "script")
	r.applied(w, "script", jobspec.OutcomeUncertain, nil)
	if got := r.value(`select state from workflows where id = $1`, w); got != "failed" {
		t.Errorf("workflow is %s; steps: %v", got, r.steps(w))
	}
	if n := r.value(`select count(*)::text from runner_jobs where workflow_id = $1 and state = 'queued'`, w); n != "0" {
		t.Errorf("%s jobs are queued after it, want none", n)
	}
	if n := r.value(`select count(*)::text from resources where locked_by is not null`); n != "0" {
		t.Errorf("%s resources are held after it", n)
	}
	if got := r.value(`select state from resources where name = 'greeting'`); got != "live" {
		t.Errorf("the component is %s, want it as it was", got)
	}
}
