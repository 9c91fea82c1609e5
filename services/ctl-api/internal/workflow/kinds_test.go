package workflow_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

// An input update deploys what refers to the input, and what needs that.
func TestInputUpdate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	r.exec(`insert into install_inputs (org_id, install_id, version, values, sealed, created_by) values ($1, $2, 2, '{"greeting":"Hello","person":"sailor"}', $3, 'test')`,
		r.org, r.install, r.sealedInputs(2))
	r.exec(`update installs set inputs_version = 2`)
	moved := map[int32]flow.Moved{0: {All: true}, 1: {Inputs: []string{"greeting"}}}
	w := r.start(workflow.Request{Kind: flow.KindInputUpdate, ApproveAll: true, Moved: moved})
	if got := r.value(`select string_agg(name || ': ' || reason, ', ' order by idx) from steps where workflow_id = $1 and resource_id is not null`, w); got != "component/greeting: refers to input greeting (components/greeting.toml: vars.text), component/card: needs greeting" {
		t.Errorf("the workflow has %q", got)
	}
	r.planned(w, "component/greeting", "new")
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "Hello"))
	r.planned(w, "component/card", "")
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select (select state from workflows where id = $1) || ' ' || string_agg(name || live_inputs_version, ' ' order by name) from resources where kind = 'component'`, w); got != "succeeded card2 greeting2 key1" {
		t.Errorf("workflow and the inputs of the components are %q", got)
	}
	again := r.start(workflow.Request{Kind: flow.KindInputUpdate, ApproveAll: true, Moved: moved})
	if got := r.value(`select count(*)::text from steps where workflow_id = $1 and resource_id is not null`, again); got != "0" {
		t.Errorf("the same update again has %s deploys", got)
	}
}

// The toggles count as they are when a step starts.
func TestTogglesAreReadWhenAStepStarts(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		app.Component("card").Toggleable, app.Actions = true, nil
	})
	r.provisionWithoutChecks()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	r.exec(`update installs set toggles = '{"card": false}', toggles_version = 1`)
	r.planned(w, "component/greeting", "")
	r.planned(w, "component/key", "new")
	r.applied(w, "component/key", jobspec.OutcomeSucceeded, nil)
	want := map[string]string{
		"runner": "succeeded", "release": "succeeded no_change", "component/greeting": "succeeded no_change", "component/key": "succeeded applied", "component/card": "skipped",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := r.value(`select reason || ' ' || (select state from workflows where id = $1) from steps where workflow_id = $1 and name = 'component/card'`, w); got !=
		"every component of the release is deployed; skipped: component card was switched off after this workflow was planned succeeded" {
		t.Errorf("the card says %q", got)
	}
	if got := r.value(`select state from resources where name = 'card'`); got != "live" {
		t.Error("the card is not as it was")
	}
}

// What is switched on meanwhile is not added, and the end of the workflow says so.
func TestSwitchedOnMeanwhileIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Component("card").Toggleable, app.Actions = true, nil })
	r.exec(`update installs set toggles = '{"card": false}', toggles_version = 1`)
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	r.exec(`update installs set toggles = '{"card": true}', toggles_version = 2`)
	r.planned(w, "sandbox", "sb")
	r.applied(w, "sandbox", jobspec.OutcomeSucceeded, r.output("data_dir", "/data/hello"))
	for _, c := range []string{"component/greeting", "component/key"} {
		r.planned(w, c, c)
		r.applied(w, c, jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	}
	if got := r.value(`select body->>'note' from workflow_events where workflow_id = $1 order by seq desc limit 1`, w); got !=
		"switched on after this workflow was planned, and not added: card; `berth deploy acme` adds what is on" {
		t.Errorf("the end of the workflow says %q", got)
	}
	if _, there := r.steps(w)["component/card"]; there {
		t.Error("the card was added")
	}
}

// Approved changes get a resource in the order in which people asked, whoever looks
// first, and one that gives up its turn holds up nobody.
func TestQueueOfAResource(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Actions = nil })
	r.provisionWithoutChecks()
	var all []string
	for _, what := range []string{"one", "two", "three", "four"} {
		w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"key"}, ApproveAll: true})
		r.planned(w, "component/key", what)
		all = append(all, w)
	}
	state := func(w string) string {
		return r.value(`select c.state || coalesce(' behind ' || (select o.workflow_id from changes o where o.id = s.wait_on), '')
			from steps s join changes c on c.id = s.change_id where s.workflow_id = $1 and s.name = 'component/key'`, w)
	}
	r.applied(all[0], "component/key", jobspec.OutcomeSucceeded, nil)
	r.advance(all[3]) // the last looks first
	if got, want := state(all[3]), "approved behind "+all[1]; got != want {
		t.Errorf("the fourth is %q, want %q", got, want)
	}
	r.tx(func(ctx context.Context, tx *database.Tx) error { return workflow.Cancel(ctx, tx, all[1], "ada") })
	r.advance(all[1])
	r.advance(all[3])
	if got, want := state(all[3]), "approved behind "+all[2]; got != want {
		t.Errorf("the fourth is %q, want %q", got, want)
	}
	r.advance(all[2])
	r.advance(all[3])
	if got, want := state(all[2])+", "+state(all[3]), "executing, approved behind "+all[2]; got != want {
		t.Errorf("the third and the fourth are %q, want %q", got, want)
	}
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		holders, err := tx.LockHolders(ctx, r.install)
		if err != nil || len(holders) != 1 || holders[0].WorkflowID != all[2] || holders[0].Since.Before(time.Now().Add(-time.Hour)) {
			t.Errorf("holders are %v, %v", holders, err)
		}
		queue, err := tx.LockQueue(ctx, r.install)
		if err != nil || len(queue) != 1 || queue[0].WorkflowID != all[3] || queue[0].WaitsFor != holders[0].ChangeID {
			t.Errorf("the queue is %v, %v", queue, err)
		}
		return nil
	})
	r.applied(all[2], "component/key", jobspec.OutcomeSucceeded, nil)
	r.advance(all[3])
	r.applied(all[3], "component/key", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select count(*)::text from resources where locked_by is not null`); got != "0" {
		t.Errorf("%s resources are held at the end", got)
	}
}

// Orphans are removed by their own workflow alone, and reprovision keeps the release.
func TestOrphansAndTeardown(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) { app.Actions = nil })
	r.provisionWithoutChecks()
	w := r.start(workflow.Request{Kind: flow.KindTeardown, Components: []string{"card"}, ApproveAll: true, Confirm: "acme"})
	r.planned(w, "component/card", "gone")
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
	r.exec(`update components set tombstoned_at = now() where name = 'key'`)
	w = r.start(workflow.Request{Kind: flow.KindRemoveOrphans, ApproveAll: true, Confirm: "acme"})
	if got := r.value(`select string_agg(name || ': ' || kind || ', ' || reason, ' ' order by idx) from steps where workflow_id = $1 and resource_id is not null`, w); got != "component/key: teardown, it is no longer part of the app" {
		t.Errorf("the removal of orphans has %q", got)
	}
	r.planned(w, "component/key", "gone")
	r.applied(w, "component/key", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select (select state from installs) || ' ' || string_agg(name || ' ' || state, ', ' order by name) from resources where kind = 'component'`); got != "live card absent, greeting live, key absent" {
		t.Errorf("install and components are %q", got)
	}
	w = r.start(workflow.Request{Kind: flow.KindDeprovisionSandbox, WithDependents: true, ApproveAll: true, Confirm: "acme"})
	r.planned(w, "component/greeting", "gone")
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, nil)
	r.planned(w, "sandbox", "gone")
	if got := r.value(`select state from installs`); got != "deprovisioning" {
		t.Errorf("meanwhile the install is %q", got)
	}
}

// provisionWithoutChecks brings up an app that has no actions.
func (r *rig) provisionWithoutChecks() {
	r.t.Helper()
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	r.planned(w, "sandbox", "sb")
	r.applied(w, "sandbox", jobspec.OutcomeSucceeded, r.output("data_dir", "/data/hello"))
	for _, c := range []string{"component/greeting", "component/key", "component/card"} {
		r.planned(w, c, c)
		r.applied(w, c, jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	}
}
