package flow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

// accepting is a step that accepts a release, at a change of this state.
func accepting(stepState model.StepState, changeState model.ChangeState) flow.Step {
	s := flow.Step{ID: "a", Name: "release", Kind: flow.StepAccept, State: stepState}
	if changeState != "" {
		s.Change = change(changeState, func(c *flow.Change) { c.ID = "chg_accept" })
	}
	if changeState == model.ChangeProposed {
		s.WaitReason, s.WaitOn = "decision", "chg_accept"
	}
	if changeState == model.ChangePreparing {
		s.Change.Plan = job("leased", "")
	}
	return s
}

// While the release is not accepted, the rest of the workflow plans and asks for
// its decisions; nothing mutates and no script runs.
func TestNextBeforeTheReleaseIsAccepted(t *testing.T) {
	t.Parallel()
	open := accepting(model.StepWaiting, model.ChangeProposed)
	held := flow.Wait{Reason: "release", On: "chg_accept", Deadline: now.Add(time.Hour)}
	noChange := func(c *flow.Change) {
		c.Plan = job("succeeded", "succeeded")
		c.Plan.NoChange = true
	}
	check := flow.Step{ID: "s", Name: "check/up", Kind: flow.StepCheck, State: model.StepRunning}
	waits := func(s flow.Step, on string) flow.Step {
		s.State, s.WaitReason, s.WaitOn, s.WaitDeadline = model.StepWaiting, "release", on, now.Add(time.Hour)
		return s
	}
	failed := deploy(change(model.ChangeDenied))
	failed.State = model.StepFailed
	tests := []struct {
		name   string
		accept flow.Step
		step   flow.Step
		edit   func(*flow.State)
		want   flow.Decision
	}{
		{name: "components are planned next to it", accept: open, step: deploy(nil), want: flow.Decision{Do: flow.DoPlan, StepID: "s"}},
		{name: "and proposed", accept: open, step: deploy(change(model.ChangePreparing, func(c *flow.Change) { c.Plan = job("succeeded", "succeeded") })),
			want: flow.Decision{Do: flow.DoPropose, StepID: "s", ChangeID: "chg"}},
		{name: "what was approved waits", accept: open, step: deploy(change(model.ChangeApproved)),
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: held}},
		{name: "also while the release is still looked at", accept: accepting(model.StepRunning, model.ChangePreparing), step: deploy(change(model.ChangeApproved)),
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: held}},
		{name: "once", accept: open, step: waits(deploy(change(model.ChangeApproved)), "chg_accept"),
			want: flow.Decision{Do: flow.DoNothing, WorkflowState: model.WorkflowWaiting, StepID: "a"}},
		{name: "a plan without changes does not land", accept: open, step: deploy(change(model.ChangePreparing, noChange)),
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: held}},
		{name: "a plan that is only shown does not wait", accept: accepting(model.StepRunning, model.ChangePreparing), step: deploy(change(model.ChangePreparing, noChange)),
			edit: func(s *flow.State) { s.PlanOnly = true }, want: flow.Decision{Do: flow.DoNoChange, StepID: "s", ChangeID: "chg"}},
		{name: "a check waits", accept: open, step: check, want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", Wait: held}},
		{name: "a script of the life cycle waits, approved or not", accept: open,
			step: flow.Step{ID: "s", Kind: flow.StepAction, State: model.StepRunning, Change: change(model.ChangeApproved)},
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: held}},
		{name: "accepted, the rest goes on", accept: accepting(model.StepSucceeded, model.ChangeApplied), step: waits(deploy(change(model.ChangeApproved)), "chg_accept"),
			want: flow.Decision{Do: flow.DoExecute, StepID: "s", ChangeID: "chg"}},
		{name: "nothing new, the rest goes on", accept: accepting(model.StepSucceeded, model.ChangeNoChange), step: check,
			want: flow.Decision{Do: flow.DoRunCheck, StepID: "s"}},
		{name: "with nothing left to accept it for, the question is taken back", accept: open, step: failed,
			want: flow.Decision{Do: flow.DoPutOff, StepID: "a", ChangeID: "chg_accept", Error: "component/api was not done: the change was denied"}},
		{name: "denied, a proposal is put off", accept: accepting(model.StepFailed, model.ChangeDenied), step: deploy(change(model.ChangeProposed)),
			want: flow.Decision{Do: flow.DoPutOff, StepID: "s", ChangeID: "chg", Error: "the release was not accepted"}},
		{name: "denied, what was approved is put off", accept: accepting(model.StepFailed, model.ChangeDenied), step: waits(deploy(change(model.ChangeApproved)), "chg_accept"),
			want: flow.Decision{Do: flow.DoPutOff, StepID: "s", ChangeID: "chg", Error: "the release was not accepted"}},
		{name: "denied, a plan that runs is stopped", accept: accepting(model.StepFailed, model.ChangeDenied),
			step: deploy(change(model.ChangePreparing, func(c *flow.Change) { c.Plan = job("leased", "") })),
			want: flow.Decision{Do: flow.DoCancelJob, StepID: "s", JobID: "job"}},
		{name: "denied, and all put off, the workflow has failed", accept: accepting(model.StepFailed, model.ChangeDenied),
			step: flow.Step{ID: "s", Kind: flow.StepDeploy, State: model.StepPending},
			want: flow.Decision{Do: flow.DoFinishWorkflow, WorkflowState: model.WorkflowFailed, Error: "release was not done: the change was denied", Ended: model.EndedExpired}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(tt.accept, tt.step)
			if tt.edit != nil {
				tt.edit(&s)
			}
			if diff := cmp.Diff(tt.want, flow.Next(s)); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForgettingAsksNobody(t *testing.T) {
	t.Parallel()
	s := flow.Step{ID: "s", Kind: flow.StepForget, State: model.StepRunning, Change: change(model.ChangeProposed, func(c *flow.Change) { c.ReadOnly = true })}
	want := flow.Decision{Do: flow.DoApprove, StepID: "s", ChangeID: "chg", Rule: "read_only"}
	if diff := cmp.Diff(want, flow.Next(running(s))); diff != "" {
		t.Errorf("decision differs (-want +got):\n%s", diff)
	}
}
