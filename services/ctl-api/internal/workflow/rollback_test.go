package workflow_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/rollback"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// newRelease makes a release of the same components, as a sync and its builds do.
func (r *rig) newRelease(number int) string {
	r.t.Helper()
	next := id.New(id.Release)
	r.exec(`insert into releases (id, org_id, app_id, number, config_id, made_by, digest) select $1, org_id, app_id, $2, config_id, 'sync', $1 from releases where id = $3`, next, number, r.release)
	r.exec(`insert into release_items (org_id, release_id, component_id, revision_id, build_id, artifact_repository, artifact_digest)
		select org_id, $1, component_id, revision_id, build_id, artifact_repository, artifact_digest from release_items where release_id = $2`, next, r.release)
	return next
}

// inputs sets inputs as a person does.
func (r *rig) inputs(change installs.Values) {
	r.t.Helper()
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, _, err := (&installs.Service{Keys: r.engine.Keys}).SetInputs(ctx, tx, r.install, installs.Change{Set: change, Actor: "ada"})
		return err
	})
}

func (r *rig) finder() rollback.Finder {
	return rollback.Finder{Installs: &installs.Service{Keys: r.engine.Keys}}
}

// back starts a rollback as the API does.
func (r *rig) back(req workflow.Request) (id string, err error) {
	r.t.Helper()
	req.Kind, req.InstallID, req.Actor = flow.KindRollback, r.install, "ada"
	err = r.ctl.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		if err := r.finder().Prepare(ctx, tx, &req); err != nil {
			return err
		}
		id, err = workflow.Start(ctx, tx, req)
		return err
	})
	if err == nil {
		r.advance(id)
	}
	return id, err
}

// offer is what accepts the rollback that a workflow's failure offers; empty for none.
func (r *rig) offer(workflowID string) (command string) {
	r.t.Helper()
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		w, err := tx.GetWorkflow(ctx, workflowID)
		if err == nil {
			_, command, err = r.finder().Offer(ctx, tx, w)
		}
		return err
	})
	return command
}

// approve approves what a step proposes.
func (r *rig) approve(workflowID, step string) {
	r.t.Helper()
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		change := r.value(`select change_id from steps where workflow_id = $1 and name = $2`, workflowID, step)
		return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: change, Answer: model.Approve, EffectDigest: r.value(`select effect_digest from changes where id = $1`, change), By: r.ada})
	})
	r.advance(workflowID)
}

// failedUpgrade provisions release 1, sets inputs version 2, and deploys release 2,
// which fails at the key after the greeting came out.
func (r *rig) failedUpgrade() (deploy string) {
	r.t.Helper()
	r.provision()
	r.inputs(installs.Values{"greeting": "Hello"})
	r.newRelease(2)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	r.planned(w, "component/greeting", "greeting 2")
	r.planned(w, "component/key", "key 2")
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "Hello"))
	r.applied(w, "component/key", jobspec.OutcomeFailed, nil)
	return w
}

const standsAt = `select i.inputs_version || ' ' || (select number from releases where id = i.release_id) || ' ' ||
	(select values->>'greeting' from install_inputs n where n.install_id = i.id and n.version = i.inputs_version) from installs i`

// A rollback brings back release and inputs of then. They are in force when it has
// succeeded, not before.
func TestRollbackOfAnInstall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	failed := r.failedUpgrade()
	if got := r.offer(failed); got != "berth rollback acme" {
		t.Errorf("the failure offers %q", got)
	}
	w, err := r.back(workflow.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.offer(failed); got != "" {
		t.Errorf("while it is rolled back, the failure offers %q", got)
	}
	if got := r.value(standsAt); got != "2 1 Hello" {
		t.Errorf("before the rollback is approved, the install is at %q", got)
	}
	const told = `select coalesce(string_agg((body->>'version') || (body->>'changed'), ' ' order by n), '') from event_outbox where kind = 'inputs.changed'`
	if got := r.value(told); got != `2["greeting"]` {
		t.Errorf("before the rollback is approved, inputs are told to have changed: %s", got)
	}
	if got := r.value(`select inputs_version || ' ' || (params->'rollback'->>'answers') || ' ' || (params->'rollback'->>'inputs') from workflows where id = $1`, w); got != "3 "+failed+" 1" {
		t.Errorf("the rollback is with inputs %q", got)
	}
	if got := r.value(`select reason from steps where workflow_id = $1 and name = 'component/card'`, w); got != "goes back to release 1, with the inputs of then" {
		t.Errorf("the card is in because %q", got)
	}
	r.planned(w, "component/greeting", "greeting 1")
	r.planned(w, "component/key", "key 1")
	for _, c := range []string{"greeting", "key"} {
		r.approve(w, "component/"+c)
		r.applied(w, "component/"+c, jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	}
	r.planned(w, "component/card", "")
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select state from workflows where id = $1`, w) + " " + r.value(standsAt); got != "succeeded 3 1 Ahoy" {
		t.Errorf("at the end it is %q, want succeeded, inputs 3 with Ahoy, release 1", got)
	}
	if got := r.value(told); got != `2["greeting"] 3["greeting"]` {
		t.Errorf("once they are in force, inputs are told to have changed: %s", got)
	}
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		install, err := tx.FindInstall(ctx, r.install)
		if err != nil {
			return err
		}
		untaken, err := (&installs.Service{Keys: r.engine.Keys}).Untaken(ctx, tx, []ctldb.Install{install})
		if got := untaken[r.install]; got.Inputs || got.Toggles {
			t.Errorf("after the rollback %+v waits to be deployed", got)
		}
		return err
	})
	if got := r.offer(failed); got != "" {
		t.Errorf("after the rollback, the failure offers %q", got)
	}
	if _, err := r.back(workflow.Request{}); fault.From(err).Code != rollback.CodeNoEarlier {
		t.Errorf("further back: %v", err)
	}
	// New inputs get a number that nobody had.
	r.inputs(installs.Values{"greeting": "Moin"})
	if got := r.value(standsAt); got != "4 1 Moin" {
		t.Errorf("with inputs set after the rollback, it is at %q", got)
	}
}

// A rollback that does not come to its end changes nothing of what the install is to
// be, and inputs set meanwhile win.
func TestInputsAroundARollback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.failedUpgrade()
	given, err := r.back(workflow.Request{})
	if err != nil {
		t.Fatal(err)
	}
	r.tx(func(ctx context.Context, tx *database.Tx) error { return workflow.Cancel(ctx, tx, given, "ada") })
	r.advance(given)
	r.inputs(installs.Values{"greeting": "Servus"})
	if got := r.value(standsAt); got != "4 1 Servus" {
		t.Errorf("inputs set after a rollback that was cancelled: %q", got)
	}
	w, err := r.back(workflow.Request{ApproveAll: true})
	if err != nil {
		t.Fatal(err)
	}
	r.inputs(installs.Values{"greeting": "Moin"})
	for _, c := range []string{"component/greeting", "component/key", "component/card"} {
		r.planned(w, c, "")
	}
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select state from workflows where id = $1`, w) + " " + r.value(standsAt); got != "succeeded 6 1 Moin" {
		t.Errorf("inputs set during a rollback: %q", got)
	}
}

// A rollback of one component leaves the rest, and what the install is to be.
func TestRollbackOfAComponent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.failedUpgrade()
	w, err := r.back(workflow.Request{Components: []string{"greeting"}, ApproveAll: true})
	if err != nil {
		t.Fatal(err)
	}
	r.planned(w, "component/greeting", "greeting 1")
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select state from workflows where id = $1`, w) + " " + r.value(standsAt); got != "succeeded 2 1 Hello" {
		t.Errorf("after the rollback of one component: %q", got)
	}
	if got := r.value(`select l.number || ' ' || s.live_inputs_version from resources s join releases l on l.id = s.live_release_id where s.name = 'greeting'`); got != "1 3" {
		t.Errorf("the greeting stands on %q", got)
	}
}

func TestRollbacksThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.back(workflow.Request{}); fault.From(err).Code != "never_provisioned" {
		t.Errorf("of what was never provisioned: %v", err)
	}
	r.provision()
	second := r.newRelease(2)
	for name, req := range map[string]workflow.Request{
		rollback.CodeNoEarlier: {}, rollback.CodeNever: {ReleaseID: second},
	} {
		if _, err := r.back(req); !errors.Is(err, fault.ErrConflict) || fault.From(err).Code != name {
			t.Errorf("%+v: %v, want %s", req, err, name)
		}
	}
	if _, err := r.back(workflow.Request{Components: []string{"nonsense"}}); fault.From(err).Code != rollback.CodeNoEarlier {
		t.Errorf("of a component that there is not: %v", err)
	}
	// What was denied before anything was applied is nothing to go back from.
	w := r.start(workflow.Request{Kind: flow.KindDeploy})
	r.planned(w, "component/greeting", "greeting 2")
	r.tx(func(ctx context.Context, tx *database.Tx) error { return workflow.Cancel(ctx, tx, w, "ada") })
	r.advance(w)
	if got := r.offer(w); got != "" {
		t.Errorf("a deploy that applied nothing offers %q", got)
	}
}

// A component whose app asks for it goes back once when its deploy fails, and no
// crash makes that two. The approval of the failed workflow does not count for it.
func TestRollbackThatTheAppAsksFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		class jobspec.ReversalClass
		asks  bool
		want  string // workflows of kind rollback that Berth started
	}{
		{"reversible", jobspec.Reversible, true, "1"},
		{"not when it loses data", jobspec.ReverseLoses, true, "0"},
		{"not when nobody asks", jobspec.Reversible, false, "0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(app *appconfig.App) {
				key := app.Component("key")
				if key.Berth == nil {
					key.Berth = &appconfig.BlockExtension{}
				}
				key.Berth.AutoRollback = tt.asks
			})
			finder := r.finder()
			finder.Log = slog.New(slog.DiscardHandler)
			died := errors.New("killed")
			killed := false
			r.engine.Failed = func(ctx context.Context, tx *database.Tx, w ctldb.Workflow) error {
				if err := finder.ByItself(ctx, tx, w); err != nil || killed {
					return err
				}
				killed = true
				return died // before the commit
			}
			r.provision()
			r.inputs(installs.Values{"greeting": "Hello"})
			r.newRelease(2)
			w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true, Components: []string{"key"}})
			fails := func() {
				t.Helper()
				r.planned(w, "component/key", "key 2")
				r.exec(`update changes set plan = jsonb_set(plan, '{reversal}', jsonb_build_object('class', $2::text)) where id = (select change_id from steps where workflow_id = $1 and name = 'component/key')`, w, tt.class)
				jobID, _ := r.openJob(w, "component/key")
				r.exec(`update runner_jobs set state = 'failed', result = '{"outcome": "failed"}', finished_at = now() where id = $1`, jobID)
				for {
					err := r.engine.Advance(t.Context(), w)
					if err == nil {
						return
					}
					if !errors.Is(err, died) {
						t.Fatal(err)
					}
					if got := r.value(`select state || ' ' || (select count(*) from workflows where kind = 'rollback') from workflows where id = $1`, w); got != "running 0" {
						t.Fatalf("after the crash, workflow and rollbacks are %q", got)
					}
				}
			}
			started := `select count(*)::text from workflows where kind = 'rollback' and created_by = 'berth' and params->'rollback'->>'answers' = $1 and not approve_all and params->'components' = '["key"]'`
			fails()
			if got := r.value(started, w); got != tt.want {
				t.Fatalf("%s rollbacks began by themselves, want %s", got, tt.want)
			}
			if tt.want == "0" {
				return
			}
			back := r.value(`select id from workflows where kind = 'rollback'`)
			r.advance(back)
			r.planned(back, "component/key", "key 1")
			if got := r.steps(back)["component/key"]; got != "waiting proposed" {
				t.Errorf("the rollback's change is %s, want it to wait for a decision", got)
			}
			r.approve(back, "component/key")
			r.applied(back, "component/key", jobspec.OutcomeFailed, nil)
			// A retry that fails again, and a rollback that failed: there is no second one.
			r.tx(func(ctx context.Context, tx *database.Tx) error {
				_, err := workflow.Retry(ctx, tx, r.value(`select id from steps where workflow_id = $1 and name = 'component/key'`, w), "ada")
				return err
			})
			r.advance(w)
			fails()
			if got := r.value(`select count(*)::text from workflows where kind = 'rollback'`); got != "1" {
				t.Errorf("after the second failure there are %s rollbacks", got)
			}
		})
	}
}

// A workflow goes on without a step that a person skips. The install does not count as
// brought to the release then, and a rollback never goes back to that.
func TestSkippedStep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	r.newRelease(2)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	r.planned(w, "component/greeting", "greeting 2")
	r.planned(w, "component/key", "key 2")
	r.applied(w, "component/key", jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	r.applied(w, "component/greeting", jobspec.OutcomeFailed, nil)
	skip := func(name string) error {
		return r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
			_, err := workflow.Skip(ctx, tx, r.value(`select id from steps where workflow_id = $1 and name = $2`, w, name), "ada")
			return err
		})
	}
	if err := skip("component/key"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("skip of what came out: %v", err)
	}
	if err := skip("component/greeting"); err != nil {
		t.Fatal(err)
	}
	r.advance(w)
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	steps := r.steps(w)
	if got := r.value(`select state from workflows where id = $1`, w) + " " + r.value(standsAt) + " " + steps["component/greeting"] + " " + steps["component/card"]; got != "succeeded 1 1 Ahoy skipped failed skipped" {
		t.Errorf("workflow, install and steps are %q", got)
	}
	if got := r.value(`select reason from steps where workflow_id = $1 and name = 'component/card'`, w); got != "every component of the release is deployed; skipped by ada" {
		t.Errorf("the card says %q", got)
	}
	if _, err := r.back(workflow.Request{ReleaseID: r.value(`select id from releases where number = 2`)}); fault.From(err).Code != rollback.CodeNever {
		t.Errorf("back to a release with something missing: %v", err)
	}
	if back, err := r.back(workflow.Request{}); err != nil || r.value(`select r.number::text from workflows w join releases r on r.id = w.release_id where w.id = $1`, back) != "1" {
		t.Errorf("back from a release with something missing: %v", err)
	}
}
