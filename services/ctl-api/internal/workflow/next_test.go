package workflow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// running is a workflow at work with these steps.
func running(steps ...workflow.Step) workflow.State {
	return workflow.State{
		Now: now, WorkflowState: workflow.WorkflowRunning, StackActive: true, RunnerActive: true, RunnerID: "rnr_1",
		StackDeadline: now.Add(time.Hour), RunnerDeadline: now.Add(time.Hour), LockedBy: map[string]string{}, Steps: steps,
	}
}

// deploy is a running deploy step that is at this change.
func deploy(c *workflow.Change) workflow.Step {
	s := workflow.Step{ID: "s", Name: "component/api", Kind: workflow.StepDeploy, ResourceID: "res_api", State: workflow.StepRunning, Change: c}
	if c == nil {
		return s
	}
	switch c.State {
	case workflow.ChangeFailed:
		s.Failed = 1
	case workflow.ChangeUncertain:
		s.Uncertain = 1
	case workflow.ChangeStale:
		s.Stale = 1
	}
	return s
}

func change(state string, edit ...func(*workflow.Change)) *workflow.Change {
	c := &workflow.Change{ID: "chg", State: state, EffectDigest: "sha256:a", Deadline: now.Add(time.Hour)}
	for _, e := range edit {
		e(c)
	}
	return c
}

func job(state, outcome string) *workflow.Job {
	return &workflow.Job{ID: "job", State: state, Outcome: outcome}
}

func TestNextOfOneChange(t *testing.T) {
	t.Parallel()
	plan := func(j *workflow.Job) func(*workflow.Change) { return func(c *workflow.Change) { c.Plan = j } }
	apply := func(j *workflow.Job) func(*workflow.Change) { return func(c *workflow.Change) { c.Apply = j } }
	approved := func(digest string) func(*workflow.Change) {
		return func(c *workflow.Change) { c.ApprovedDigest = digest }
	}
	tests := []struct {
		name   string
		change *workflow.Change
		state  func(*workflow.State)
		want   workflow.Decision
	}{
		{name: "a step without a change plans", want: workflow.Decision{Do: workflow.DoPlan, StepID: "s"}},
		{name: "a plan in hand is waited for", change: change(workflow.ChangePreparing, plan(job("leased", ""))),
			want: workflow.Decision{Do: workflow.DoNothing, WorkflowState: workflow.WorkflowRunning}},
		{name: "a plan with changes is proposed", change: change(workflow.ChangePreparing, plan(job("succeeded", "succeeded"))),
			want: workflow.Decision{Do: workflow.DoPropose, StepID: "s", ChangeID: "chg"}},
		{name: "an empty plan passes by itself", change: change(workflow.ChangePreparing, plan(&workflow.Job{ID: "job", State: "succeeded", NoChange: true})),
			want: workflow.Decision{Do: workflow.DoNoChange, StepID: "s", ChangeID: "chg"}},
		{name: "plan only shows and stops", change: change(workflow.ChangePreparing, plan(job("succeeded", "succeeded"))),
			state: func(s *workflow.State) { s.PlanOnly = true },
			want:  workflow.Decision{Do: workflow.DoPlanned, StepID: "s", ChangeID: "chg"}},
		{name: "a plan whose order came too late is made again", change: change(workflow.ChangePreparing, plan(job("failed", "stale"))),
			want: workflow.Decision{Do: workflow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: workflow.ChangeStale, Error: "the plan failed"}},
		{name: "nothing is ordered of a runner that never enrolled", state: func(s *workflow.State) { s.NoMachine = true },
			want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", Wait: workflow.Wait{Reason: "runner", On: "rnr_1", Deadline: now.Add(time.Hour)}}},
		{name: "no grant is given without a machine", change: change(workflow.ChangeApproved), state: func(s *workflow.State) { s.NoMachine = true },
			want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", Wait: workflow.Wait{Reason: "runner", On: "rnr_1", Deadline: now.Add(time.Hour)}}},
		{name: "a wait for the machine is told once", state: func(s *workflow.State) {
			s.NoMachine = true
			s.Steps[0].State, s.Steps[0].WaitReason, s.Steps[0].WaitDeadline = workflow.StepWaiting, "runner", now.Add(time.Minute)
		}, want: workflow.Decision{Do: workflow.DoNothing, StepID: "s", WorkflowState: workflow.WorkflowWaiting}},
		{name: "and ends in vain", state: func(s *workflow.State) {
			s.NoMachine = true
			s.Steps[0].State, s.Steps[0].WaitReason, s.Steps[0].WaitDeadline = workflow.StepWaiting, "runner", now
		}, want: workflow.Decision{Do: workflow.DoFailStep, StepID: "s", Error: "the runner did not come", Remedy: "see `berth runners` and the runner's own log, then retry the step"}},
		{name: "the machine came", state: func(s *workflow.State) {
			s.Steps[0].State, s.Steps[0].WaitReason, s.Steps[0].WaitDeadline = workflow.StepWaiting, "runner", now
		}, want: workflow.Decision{Do: workflow.DoPlan, StepID: "s"}},
		{name: "a failed plan fails the change", change: change(workflow.ChangePreparing, plan(job("failed", "failed"))),
			want: workflow.Decision{Do: workflow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: workflow.ChangeFailed, Error: "the plan failed"}},
		{name: "a proposal waits for a decision", change: change(workflow.ChangeProposed),
			want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: workflow.Wait{Reason: "decision", On: "chg", Deadline: now.Add(time.Hour)}}},
		{name: "approve all answers", change: change(workflow.ChangeProposed), state: func(s *workflow.State) { s.ApproveAll = true },
			want: workflow.Decision{Do: workflow.DoApprove, StepID: "s", ChangeID: "chg", Rule: "approve_all"}},
		{name: "the same effect keeps its approval", change: change(workflow.ChangeProposed, approved("sha256:a")),
			want: workflow.Decision{Do: workflow.DoApprove, StepID: "s", ChangeID: "chg", Rule: "kept"}},
		{name: "another effect voids the approval", change: change(workflow.ChangeProposed, approved("sha256:b")),
			want: workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: workflow.Wait{Reason: "decision", On: "chg", Deadline: now.Add(time.Hour)}}},
		{name: "no decision in time is a no", change: change(workflow.ChangeProposed, func(c *workflow.Change) { c.Deadline = now }),
			want: workflow.Decision{Do: workflow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: workflow.ChangeDenied, Error: "no decision came in time"}},
		{name: "an approved change executes", change: change(workflow.ChangeApproved),
			want: workflow.Decision{Do: workflow.DoExecute, StepID: "s", ChangeID: "chg"}},
		{name: "a lock of another change is waited for", change: change(workflow.ChangeApproved),
			state: func(s *workflow.State) { s.LockedBy["res_api"] = "chg_other" },
			want:  workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: workflow.Wait{Reason: "lock", On: "chg_other", Deadline: now.Add(24 * time.Hour)}}},
		{name: "the sandbox excludes its components", change: change(workflow.ChangeApproved),
			state: func(s *workflow.State) { s.SandboxID, s.LockedBy["res_sb"] = "res_sb", "chg_sb" },
			want:  workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: workflow.Wait{Reason: "lock", On: "chg_sb", Deadline: now.Add(24 * time.Hour)}}},
		{name: "other components do not exclude", change: change(workflow.ChangeApproved),
			state: func(s *workflow.State) { s.SandboxID, s.LockedBy["res_db"] = "res_sb", "chg_db" },
			want:  workflow.Decision{Do: workflow.DoExecute, StepID: "s", ChangeID: "chg"}},
		{name: "a component excludes the sandbox", change: change(workflow.ChangeApproved),
			state: func(s *workflow.State) { s.SandboxID, s.LockedBy["res_db"] = "res_api", "chg_db" },
			want:  workflow.Decision{Do: workflow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: workflow.Wait{Reason: "lock", On: "chg_db", Deadline: now.Add(24 * time.Hour)}}},
		{name: "an apply that came out well is applied", change: change(workflow.ChangeExecuting, apply(job("succeeded", "succeeded"))),
			want: workflow.Decision{Do: workflow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: workflow.ChangeApplied}},
		{name: "an unknown outcome is uncertain", change: change(workflow.ChangeExecuting, apply(job("failed", "uncertain"))),
			want: workflow.Decision{Do: workflow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: workflow.ChangeUncertain}},
		{name: "a moved live state is stale", change: change(workflow.ChangeExecuting, apply(job("failed", "stale"))),
			want: workflow.Decision{Do: workflow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: workflow.ChangeStale}},
		{name: "a refusal is refused", change: change(workflow.ChangeExecuting, apply(job("refused", "refused"))),
			want: workflow.Decision{Do: workflow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: workflow.ChangeRefused}},
		{name: "applied ends the step", change: change(workflow.ChangeApplied),
			want: workflow.Decision{Do: workflow.DoSucceedStep, StepID: "s", ChangeID: "chg"}},
		{name: "uncertain is looked at by a plan, never blindly run again", change: change(workflow.ChangeUncertain),
			want: workflow.Decision{Do: workflow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "stale plans anew", change: change(workflow.ChangeStale),
			want: workflow.Decision{Do: workflow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "stale again and again fails the step, with the last reason", change: change(workflow.ChangeStale, func(c *workflow.Change) { c.Error = "field x moved" }),
			state: func(s *workflow.State) { s.Steps[0].Stale = 3 },
			want:  workflow.Decision{Do: workflow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "had to be planned anew 3 times in a row; the last time: field x moved", Remedy: "find out what else changes it, then retry the step"}},
		{name: "failed without retries fails the step", change: change(workflow.ChangeFailed, func(c *workflow.Change) { c.Error = "boom" }),
			want: workflow.Decision{Do: workflow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "boom", Remedy: "read its log, mend the cause, then retry the step: it plans anew"}},
		{name: "denied fails the step", change: change(workflow.ChangeDenied, func(c *workflow.Change) { c.Error = "denied by ada" }),
			want: workflow.Decision{Do: workflow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "denied by ada"}},
		{name: "cancel asks a leased job to stop", change: change(workflow.ChangeExecuting, apply(job("leased", ""))),
			state: func(s *workflow.State) { s.CancelRequested = true },
			want:  workflow.Decision{Do: workflow.DoCancelJob, StepID: "s", JobID: "job"}},
		{name: "cancel settles what ended before the step ends", change: change(workflow.ChangeExecuting, apply(job("succeeded", "succeeded"))),
			state: func(s *workflow.State) { s.CancelRequested = true },
			want:  workflow.Decision{Do: workflow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: workflow.ChangeApplied}},
		{name: "cancel ends a step that waits for a decision", change: change(workflow.ChangeProposed),
			state: func(s *workflow.State) { s.CancelRequested = true },
			want:  workflow.Decision{Do: workflow.DoCancelStep, StepID: "s", ChangeID: "chg"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(deploy(tt.change))
			if tt.state != nil {
				tt.state(&s)
			}
			if diff := cmp.Diff(tt.want, workflow.Next(s)); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextOfManySteps(t *testing.T) {
	t.Parallel()
	step := func(name, state string, needs ...string) workflow.Step {
		return workflow.Step{ID: name, Name: name, Kind: workflow.StepDeploy, ResourceID: "res_" + name, State: state, Needs: needs}
	}
	busy := func(name string) workflow.Step {
		s := step(name, workflow.StepRunning)
		s.Change = change(workflow.ChangePreparing, func(c *workflow.Change) { c.Plan = job("leased", "") })
		return s
	}
	tests := []struct {
		name  string
		state workflow.State
		want  workflow.Decision
	}{
		{name: "a queued workflow starts", state: workflow.State{WorkflowState: workflow.WorkflowQueued}, want: workflow.Decision{Do: workflow.DoStartWorkflow}},
		{name: "what needs nothing starts beside what runs", state: running(busy("a"), step("b", workflow.StepPending)),
			want: workflow.Decision{Do: workflow.DoStartStep, StepID: "b"}},
		{name: "a dependent waits", state: running(busy("a"), step("b", workflow.StepPending, "a")),
			want: workflow.Decision{Do: workflow.DoNothing, WorkflowState: workflow.WorkflowRunning}},
		{name: "a dependent starts once its need is there", state: running(step("a", workflow.StepSucceeded), step("b", workflow.StepPending, "a")),
			want: workflow.Decision{Do: workflow.DoStartStep, StepID: "b"}},
		{name: "after a failure nothing new begins and what runs goes on", state: running(step("a", workflow.StepFailed), busy("b"), step("c", workflow.StepPending)),
			want: workflow.Decision{Do: workflow.DoNothing, WorkflowState: workflow.WorkflowRunning}},
		{name: "a failure ends the workflow; the rest was not attempted", state: running(step("a", workflow.StepFailed), step("c", workflow.StepPending, "a")),
			want: workflow.Decision{Do: workflow.DoFinishWorkflow, WorkflowState: workflow.WorkflowFailed, Error: "step a failed"}},
		{name: "all done is success", state: running(step("a", workflow.StepSucceeded), step("b", workflow.StepSkipped)),
			want: workflow.Decision{Do: workflow.DoFinishWorkflow, WorkflowState: workflow.WorkflowSucceeded}},
		{name: "a workflow that only waits says so", state: running(workflow.Step{ID: "w", Name: "runner", Kind: workflow.StepAwaitRunner, State: workflow.StepSucceeded}, func() workflow.Step {
			s := step("a", workflow.StepWaiting)
			s.WaitReason, s.WaitOn, s.Change = "decision", "chg", change(workflow.ChangeProposed)
			return s
		}()), want: workflow.Decision{Do: workflow.DoNothing, WorkflowState: workflow.WorkflowWaiting, StepID: "a"}},
		{name: "cancel before the start ends it", state: workflow.State{WorkflowState: workflow.WorkflowQueued, CancelRequested: true, Steps: []workflow.Step{step("a", workflow.StepPending)}},
			want: workflow.Decision{Do: workflow.DoCancelStep, StepID: "a"}},
		{name: "a runner that does not come fails the step", state: func() workflow.State {
			s := running(workflow.Step{ID: "r", Name: "runner", Kind: workflow.StepAwaitRunner, State: workflow.StepWaiting})
			s.RunnerActive, s.RunnerDeadline = false, now
			return s
		}(), want: workflow.Decision{Do: workflow.DoFailStep, StepID: "r", Error: "the runner did not come", Remedy: "see `berth runners` and the runner's own log, then retry the step"}},
		{name: "a finished workflow stays", state: workflow.State{WorkflowState: workflow.WorkflowFailed}, want: workflow.Decision{Do: workflow.DoNothing, WorkflowState: workflow.WorkflowFailed}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, workflow.Next(tt.state)); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}
