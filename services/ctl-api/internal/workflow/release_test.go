package workflow_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store"
)

// accepting is a step that accepts a release, at a change of this state.
func accepting(stepState, changeState string) workflow.Step {
	s := workflow.Step{ID: "a", Name: "release", Kind: workflow.StepAccept, State: stepState}
	if changeState != "" {
		s.Change = change(changeState, func(c *workflow.Change) { c.ID = "chg_accept" })
	}
	if changeState == workflow.ChangeProposed {
		s.WaitReason, s.WaitOn = "decision", "chg_accept"
	}
	if changeState == workflow.ChangePreparing {
		s.Change.Plan = job("leased", "")
	}
	return s
}

// While the release is not accepted, the rest of the workflow plans and asks for
// its decisions; nothing mutates and no script runs.
func TestNextBeforeTheReleaseIsAccepted(t *testing.T) {
	t.Parallel()
	open := accepting(workflow.StepWaiting, workflow.ChangeProposed)
	held := workflow.Wait{Reason: "release", On: "chg_accept", Deadline: now.Add(time.Hour)}
	noChange := func(c *workflow.Change) {
		c.Plan = job("succeeded", "succeeded")
		c.Plan.NoChange = true
	}
	checkStep := workflow.Step{ID: "s", Name: "check/up", Kind: workflow.StepCheck, State: workflow.StepRunning}
	waits := func(s workflow.Step, on string) workflow.Step {
		s.State, s.WaitReason, s.WaitOn = workflow.StepWaiting, "release", on
		return s
	}
	failed := deploy(change(workflow.ChangeDenied))
	failed.State = workflow.StepFailed
	tests := []struct {
		name   string
		accept workflow.Step
		step   workflow.Step
		edit   func(*workflow.State)
		want   workflow.Decision
	}{
		{name: "components are planned next to it", accept: open, step: deploy(nil), want: workflow.Decision{Do: workflow.DoPlan, StepID: "s"}},
		{name: "and proposed", accept: open, step: deploy(change(workflow.ChangePreparing, func(c *workflow.Change) { c.Plan = job("succeeded", "succeeded") })),
			want: workflow.Decision{Do: workflow.DoPropose, StepID: "s", ChangeID: "chg"}},
		{name: "what was approved waits", accept: open, step: deploy(change(workflow.ChangeApproved)),
			want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: held}},
		{name: "also while the release is still looked at", accept: accepting(workflow.StepRunning, workflow.ChangePreparing), step: deploy(change(workflow.ChangeApproved)),
			want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: held}},
		{name: "once", accept: open, step: waits(deploy(change(workflow.ChangeApproved)), "chg_accept"),
			want: workflow.Decision{Do: workflow.DoNothing, WorkflowState: workflow.WorkflowWaiting, StepID: "a"}},
		{name: "a plan without changes does not land", accept: open, step: deploy(change(workflow.ChangePreparing, noChange)),
			want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: held}},
		{name: "a plan that is only shown does not wait", accept: accepting(workflow.StepRunning, workflow.ChangePreparing), step: deploy(change(workflow.ChangePreparing, noChange)),
			edit: func(s *workflow.State) { s.PlanOnly = true }, want: workflow.Decision{Do: workflow.DoNoChange, StepID: "s", ChangeID: "chg"}},
		{name: "a check waits", accept: open, step: checkStep, want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", Wait: held}},
		{name: "a script of the life cycle waits, approved or not", accept: open,
			step: workflow.Step{ID: "s", Kind: workflow.StepAction, State: workflow.StepRunning, Change: change(workflow.ChangeApproved)},
			want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: held}},
		{name: "accepted, the rest goes on", accept: accepting(workflow.StepSucceeded, workflow.ChangeApplied), step: waits(deploy(change(workflow.ChangeApproved)), "chg_accept"),
			want: workflow.Decision{Do: workflow.DoExecute, StepID: "s", ChangeID: "chg"}},
		{name: "nothing new, the rest goes on", accept: accepting(workflow.StepSucceeded, workflow.ChangeNoChange), step: checkStep,
			want: workflow.Decision{Do: workflow.DoRunCheck, StepID: "s"}},
		{name: "with nothing left to accept it for, the question is taken back", accept: open, step: failed,
			want: workflow.Decision{Do: workflow.DoPutOff, StepID: "a", ChangeID: "chg_accept", Error: "step component/api failed"}},
		{name: "denied, a proposal is put off", accept: accepting(workflow.StepFailed, workflow.ChangeDenied), step: deploy(change(workflow.ChangeProposed)),
			want: workflow.Decision{Do: workflow.DoPutOff, StepID: "s", ChangeID: "chg", Error: "the release was not accepted"}},
		{name: "denied, what was approved is put off", accept: accepting(workflow.StepFailed, workflow.ChangeDenied), step: waits(deploy(change(workflow.ChangeApproved)), "chg_accept"),
			want: workflow.Decision{Do: workflow.DoPutOff, StepID: "s", ChangeID: "chg", Error: "the release was not accepted"}},
		{name: "denied, a plan that runs is stopped", accept: accepting(workflow.StepFailed, workflow.ChangeDenied),
			step: deploy(change(workflow.ChangePreparing, func(c *workflow.Change) { c.Plan = job("leased", "") })),
			want: workflow.Decision{Do: workflow.DoCancelJob, StepID: "s", JobID: "job"}},
		{name: "denied, and all put off, the workflow has failed", accept: accepting(workflow.StepFailed, workflow.ChangeDenied),
			step: workflow.Step{ID: "s", Kind: workflow.StepDeploy, State: workflow.StepPending},
			want: workflow.Decision{Do: workflow.DoFinishWorkflow, WorkflowState: workflow.WorkflowFailed, Error: "step release failed"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(tt.accept, tt.step)
			if tt.edit != nil {
				tt.edit(&s)
			}
			if diff := cmp.Diff(tt.want, workflow.Next(s)); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForgettingAsksNobody(t *testing.T) {
	t.Parallel()
	s := workflow.Step{ID: "s", Kind: workflow.StepForget, State: workflow.StepRunning, Change: change(workflow.ChangeProposed, func(c *workflow.Change) { c.ReadOnly = true })}
	want := workflow.Decision{Do: workflow.DoApprove, StepID: "s", ChangeID: "chg", Rule: "read_only"}
	if diff := cmp.Diff(want, workflow.Next(running(s))); diff != "" {
		t.Errorf("decision differs (-want +got):\n%s", diff)
	}
}

func TestScriptsOfAnApp(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(os.DirFS("../../../../examples/hello"), appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatal(diags)
	}
	app.Actions = append(app.Actions, appconfig.Action{
		Name: "clean", Role: "maintenance", Timeout: place.Duration(time.Minute),
		Inputs:   []appconfig.ActionInput{{Name: "PATH"}, {Name: "AGE"}},
		Triggers: []appconfig.Trigger{{Type: appconfig.TriggerCron, CronSchedule: "0 3 * * *"}, {Type: appconfig.TriggerCron, CronSchedule: "0 4 * * *"}},
		Steps:    []appconfig.Step{{Name: "one", Command: "true"}},
	})
	list, err := workflow.Scripts(app)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, strings.Join([]string{s.Action.Name, s.Cron, s.Role, strings.Join(s.Inputs, "+"), map[bool]string{true: "check"}[s.HealthCheck]}, "|"))
	}
	want := []string{"files_intact|* * * * *|||check", "clean|0 3 * * *|maintenance|AGE+PATH|", "clean|0 4 * * *|maintenance|AGE+PATH|"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scripts (-want +got):\n%s", diff)
	}
}

// deployed brings the example up, then starts a deploy whose release brings
// something new, up to its first component's proposal.
func deployed(t *testing.T) (r *rig, w string) {
	t.Helper()
	r = newRig(t)
	r.provision()
	r.reviews = true
	w = r.start(workflow.Request{Kind: workflow.KindDeploy})
	r.planned(w, "component/greeting", "other")
	r.planned(w, "component/key", "")
	return r, w
}

// seen is a proposed change of a step, as a person saw it.
func (r *rig) seen(w, step string) workflow.Seen {
	r.t.Helper()
	return workflow.Seen{
		ChangeID:     r.value(`select change_id from steps where workflow_id = $1 and name = $2`, w, step),
		EffectDigest: r.value(`select c.effect_digest from changes c join steps s on s.change_id = c.id where s.workflow_id = $1 and s.name = $2`, w, step),
	}
}

// answer decides on changes and says how that went.
func (r *rig) answer(w string, approve bool, first workflow.Seen, also ...workflow.Seen) error {
	r.t.Helper()
	err := r.ctl.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *store.Tx) error {
		return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: first.ChangeID, EffectDigest: first.EffectDigest, Also: also, Approve: approve, Actor: "ada"})
	})
	r.advance(w)
	return err
}

func TestOneAnswerCoversTheReleaseAndThePlan(t *testing.T) {
	t.Parallel()
	r, w := deployed(t)
	_, spec := r.openJob(w, "release")
	if spec.Release == nil || spec.Release.ID != r.release || len(spec.Release.Scripts) != 1 || len(spec.Release.Artifacts) != 4 || spec.State != nil {
		t.Errorf("spec = %+v", spec)
	}
	r.planned(w, "release", "new scripts")
	want := map[string]string{
		"runner": "succeeded", "release": "waiting proposed", "component/greeting": "waiting proposed", "component/key": "waiting preparing",
		"component/card": "pending", "check/files_intact": "pending",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Fatalf("steps (-want +got):\n%s", diff)
	}

	release, greeting := r.seen(w, "release"), r.seen(w, "component/greeting")
	old := release
	old.EffectDigest = "sha256:of-what-was-shown-before"
	if err := r.answer(w, true, greeting, old); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("an answer to something else: %v", err)
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("half an answer was taken (-want +got):\n%s", diff)
	}
	if err := r.answer(w, true, greeting, release); err != nil {
		t.Fatal(err)
	}
	if got := r.steps(w); got["release"] != "running executing" || got["component/greeting"] != "waiting approved" {
		t.Errorf("before the release is accepted: %v", got)
	}
	if got := r.value(`select wait_reason || ' ' || wait_on from steps where workflow_id = $1 and name = 'component/greeting'`, w); got != "release "+release.ChangeID {
		t.Errorf("the component waits for %q", got)
	}
	r.applied(w, "release", jobspec.OutcomeSucceeded, nil)
	if got := r.steps(w); got["release"] != "succeeded applied" || got["component/greeting"] != "running executing" || got["component/key"] != "succeeded no_change" {
		t.Errorf("after the acceptance: %v", got)
	}
	if got := r.value(`select count(*)::text from decisions d join changes c on c.id = d.change_id where c.workflow_id = $1 and d.rule = 'person'`, w); got != "2" {
		t.Errorf("%s decisions by a person, want one for each of the two changes", got)
	}
}

func TestDeniedReleaseEndsTheWorkflow(t *testing.T) {
	t.Parallel()
	r, w := deployed(t)
	r.planned(w, "release", "new scripts")
	if err := r.answer(w, true, r.seen(w, "component/greeting")); err != nil {
		t.Fatal(err)
	}
	if err := r.answer(w, false, r.seen(w, "release")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"runner": "succeeded", "release": "failed denied", "component/greeting": "pending superseded", "component/key": "pending superseded",
		"component/card": "pending", "check/files_intact": "pending",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := r.value(`select state || ' ' || error from workflows where id = $1`, w); got != "failed step release failed" {
		t.Errorf("workflow is %q", got)
	}

	// A retry of the acceptance begins all of it again; what was approved counts
	// for the same effect.
	r.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := workflow.Retry(ctx, tx, r.value(`select id from steps where workflow_id = $1 and name = 'release'`, w), "ada")
		return err
	})
	r.advance(w)
	r.planned(w, "release", "new scripts")
	r.planned(w, "component/greeting", "other")
	r.planned(w, "component/key", "")
	if err := r.answer(w, true, r.seen(w, "release")); err != nil {
		t.Fatal(err)
	}
	r.applied(w, "release", jobspec.OutcomeSucceeded, nil)
	if got := r.steps(w); got["release"] != "succeeded applied" || got["component/greeting"] != "running executing" {
		t.Errorf("after the retry: %v", got)
	}
}

func TestNewerReleaseTakesTheQuestionOver(t *testing.T) {
	t.Parallel()
	r, first := deployed(t)
	r.planned(first, "release", "new scripts")
	second := r.start(workflow.Request{Kind: workflow.KindDeploy})
	r.planned(second, "release", "newer scripts")
	r.advance(first)
	if got := r.steps(first)["release"]; got != "failed superseded" {
		t.Errorf("the older question is %q", got)
	}
	if got := r.steps(second)["release"]; got != "waiting proposed" {
		t.Errorf("the newer question is %q", got)
	}
}
