package flow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// running is a workflow at work with these steps.
func running(steps ...flow.Step) flow.State {
	return flow.State{
		Now: now, WorkflowState: model.WorkflowRunning, StackActive: true, RunnerActive: true, RunnerID: "rnr_1",
		StackDeadline: now.Add(time.Hour), RunnerDeadline: now.Add(time.Hour), Locks: flow.Locks{By: map[string]string{}}, Steps: steps,
	}
}

// deploy is a running deploy step that is at this change.
func deploy(c *flow.Change) flow.Step {
	s := flow.Step{ID: "s", Name: "component/api", Kind: flow.StepDeploy, ResourceID: "res_api", State: model.StepRunning, Change: c}
	if c == nil {
		return s
	}
	switch c.State {
	case model.ChangeFailed:
		s.Failed = 1
	case model.ChangeUncertain:
		s.Uncertain = 1
	case model.ChangeStale:
		s.Stale = 1
	}
	return s
}

func change(state model.ChangeState, edit ...func(*flow.Change)) *flow.Change {
	c := &flow.Change{ID: "chg", State: state, EffectDigest: "sha256:a", Deadline: now.Add(time.Hour)}
	for _, e := range edit {
		e(c)
	}
	return c
}

func job(state model.JobState, outcome string) *flow.Job {
	return &flow.Job{ID: "job", State: state, Outcome: outcome}
}

func TestNextOfOneChange(t *testing.T) {
	t.Parallel()
	plan := func(j *flow.Job) func(*flow.Change) { return func(c *flow.Change) { c.Plan = j } }
	apply := func(j *flow.Job) func(*flow.Change) { return func(c *flow.Change) { c.Apply = j } }
	ended := job("failed", "uncertain")
	ended.Reason = string(jobspec.ReasonHostEnded)
	elsewhere := job("failed", "stale")
	elsewhere.Reason = string(jobspec.ReasonMachineReplaced)
	withReason := func(reason jobspec.Reason) *flow.Job {
		j := job("failed", "failed")
		j.Reason = string(reason)
		return j
	}
	approved := func(digest string) func(*flow.Change) {
		return func(c *flow.Change) { c.ApprovedDigest = digest }
	}
	consent := func(state model.ConsentState, text string) func(*flow.Change) {
		return func(c *flow.Change) { c.Consent, c.ConsentText = state, text }
	}
	tests := []struct {
		name   string
		change *flow.Change
		state  func(*flow.State)
		want   flow.Decision
	}{
		{name: "a step without a change plans", want: flow.Decision{Do: flow.DoPlan, StepID: "s"}},
		{name: "a plan in hand is waited for", change: change(model.ChangePreparing, plan(job("leased", ""))),
			want: flow.Decision{Do: flow.DoNothing, WorkflowState: model.WorkflowRunning}},
		{name: "a plan with changes is proposed", change: change(model.ChangePreparing, plan(job("succeeded", "succeeded"))),
			want: flow.Decision{Do: flow.DoPropose, StepID: "s", ChangeID: "chg"}},
		{name: "an empty plan passes by itself", change: change(model.ChangePreparing, plan(&flow.Job{ID: "job", State: "succeeded", NoChange: true})),
			want: flow.Decision{Do: flow.DoNoChange, StepID: "s", ChangeID: "chg"}},
		{name: "plan only shows and stops", change: change(model.ChangePreparing, plan(job("succeeded", "succeeded"))),
			state: func(s *flow.State) { s.PlanOnly = true },
			want:  flow.Decision{Do: flow.DoPlanned, StepID: "s", ChangeID: "chg"}},
		{name: "a plan whose order came too late is made again", change: change(model.ChangePreparing, plan(job("failed", "stale"))),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeStale, Error: "the plan failed"}},
		{name: "nothing is ordered of a runner that never enrolled", state: func(s *flow.State) { s.NoMachine = true },
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", Wait: flow.Wait{Reason: "runner", On: "rnr_1", Deadline: now.Add(time.Hour)}}},
		{name: "no grant is given without a machine", change: change(model.ChangeApproved), state: func(s *flow.State) { s.NoMachine = true },
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", Wait: flow.Wait{Reason: "runner", On: "rnr_1", Deadline: now.Add(time.Hour)}}},
		{name: "a wait for the machine is told once", state: func(s *flow.State) {
			s.NoMachine = true
			s.Steps[0].State, s.Steps[0].WaitReason, s.Steps[0].WaitDeadline = model.StepWaiting, "runner", now.Add(time.Minute)
		}, want: flow.Decision{Do: flow.DoNothing, StepID: "s", WorkflowState: model.WorkflowWaiting}},
		{name: "and ends in vain", state: func(s *flow.State) {
			s.NoMachine = true
			s.Steps[0].State, s.Steps[0].WaitReason, s.Steps[0].WaitDeadline = model.StepWaiting, "runner", now
		}, want: flow.Decision{Do: flow.DoFailStep, StepID: "s", Error: "no runner came back in time", Remedy: "see `berth runners` and the runner's own log, then retry the step"}},
		{name: "the machine came", state: func(s *flow.State) {
			s.Steps[0].State, s.Steps[0].WaitReason, s.Steps[0].WaitDeadline = model.StepWaiting, "runner", now
		}, want: flow.Decision{Do: flow.DoPlan, StepID: "s"}},
		{name: "a failed plan fails the change", change: change(model.ChangePreparing, plan(job("failed", "failed"))),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeFailed, Error: "the plan failed"}},
		{name: "a plan that policies deny is not proposed", change: change(model.ChangePreparing, plan(&flow.Job{ID: "job", State: "succeeded", PolicyDenies: "no-privileged denies Pod a/b"})),
			want: flow.Decision{Do: flow.DoDenyPlan, StepID: "s", ChangeID: "chg", Error: "no-privileged denies Pod a/b", EndedBy: flow.ByPolicies,
				Remedy: "change what the policy names and sync, or have an admin override it: berth policies override chg --reason TEXT"}},
		{name: "nor when everything is approved ahead", change: change(model.ChangePreparing, plan(&flow.Job{ID: "job", State: "succeeded", PolicyDenies: "no"})),
			state: func(s *flow.State) { s.ApproveAll = true },
			want: flow.Decision{Do: flow.DoDenyPlan, StepID: "s", ChangeID: "chg", Error: "no", EndedBy: flow.ByPolicies,
				Remedy: "change what the policy names and sync, or have an admin override it: berth policies override chg --reason TEXT"}},
		{name: "a plan that is only shown is shown whatever policies say", change: change(model.ChangePreparing, plan(&flow.Job{ID: "job", State: "succeeded", PolicyDenies: "no"})),
			state: func(s *flow.State) { s.PlanOnly = true }, want: flow.Decision{Do: flow.DoPlanned, StepID: "s", ChangeID: "chg"}},
		{name: "nothing to do is nothing to deny", change: change(model.ChangePreparing, plan(&flow.Job{ID: "job", State: "succeeded", NoChange: true, PolicyDenies: "no"})),
			want: flow.Decision{Do: flow.DoNoChange, StepID: "s", ChangeID: "chg"}},
		{name: "a denied plan fails its step, which nobody is to blame for", change: change(model.ChangeDenied, func(c *flow.Change) { c.Error, c.Remedy, c.DeniedBy = "no", "ask", flow.ByPolicies }),
			want: flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "no", Remedy: "ask", Ended: model.EndedDenied, EndedBy: flow.ByPolicies}},
		{name: "an approved change waits for the customer's consent", change: change(model.ChangeApproved, approved("sha256:a"), consent(model.ConsentNeeded, "guardrail data asks")),
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg",
				Wait: flow.Wait{Reason: model.WaitConsent, On: "customer", Deadline: now.Add(flow.PauseTime), RetryAt: now.Add(15 * time.Minute)}}},
		{name: "and goes on when it is there", change: change(model.ChangeApproved, approved("sha256:a"), consent(model.ConsentGiven, "")),
			want: flow.Decision{Do: flow.DoExecute, StepID: "s", ChangeID: "chg"}},
		{name: "a month later its plan is too old", change: change(model.ChangeApproved, approved("sha256:a"), consent(model.ConsentNeeded, "")),
			state: func(s *flow.State) {
				s.Steps[0].State, s.Steps[0].WaitReason, s.Steps[0].WaitOn, s.Steps[0].WaitDeadline = model.StepWaiting, model.WaitConsent, "customer", now
			}, want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeStale, Error: "it waited 30 days for the customer's consent"}},
		{name: "the customer denies what was approved", change: change(model.ChangeApproved, approved("sha256:a"), consent(model.ConsentDenied, "ada denied it: not now")),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeDenied, EndedBy: flow.ByCustomer, Error: "ada denied it: not now",
				Remedy: "talk to the customer, then retry the step, which makes a new plan"}},
		{name: "and what is only proposed, no matter who approves it", change: change(model.ChangeProposed, consent(model.ConsentDenied, "")), state: func(s *flow.State) { s.ApproveAll = true },
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeDenied, EndedBy: flow.ByCustomer, Error: "the customer denied it",
				Remedy: "talk to the customer, then retry the step, which makes a new plan"}},
		{name: "a proposal waits for a decision, whether the customer agrees or not", change: change(model.ChangeProposed, consent(model.ConsentGiven, "")),
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: flow.Wait{Reason: "decision", On: "chg", Deadline: now.Add(time.Hour)}}},
		{name: "a proposal waits for a decision", change: change(model.ChangeProposed),
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: flow.Wait{Reason: "decision", On: "chg", Deadline: now.Add(time.Hour)}}},
		{name: "approve all answers", change: change(model.ChangeProposed), state: func(s *flow.State) { s.ApproveAll = true },
			want: flow.Decision{Do: flow.DoApprove, StepID: "s", ChangeID: "chg", Rule: "approve_all"}},
		{name: "the same effect keeps its approval", change: change(model.ChangeProposed, approved("sha256:a")),
			want: flow.Decision{Do: flow.DoApprove, StepID: "s", ChangeID: "chg", Rule: "kept"}},
		{name: "another effect voids the approval", change: change(model.ChangeProposed, approved("sha256:b")),
			want: flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: flow.Wait{Reason: "decision", On: "chg", Deadline: now.Add(time.Hour)}}},
		{name: "no decision in time is a no", change: change(model.ChangeProposed, func(c *flow.Change) { c.Deadline = now }),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeDenied, Error: "nobody decided in time"}},
		{name: "an approved change executes", change: change(model.ChangeApproved),
			want: flow.Decision{Do: flow.DoExecute, StepID: "s", ChangeID: "chg"}},
		{name: "a lock of another change is waited for", change: change(model.ChangeApproved),
			state: func(s *flow.State) { s.Locks.By["res_api"] = "chg_other" },
			want:  flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: flow.Wait{Reason: "lock", On: "chg_other", Deadline: now.Add(24 * time.Hour), RetryAt: now.Add(15 * time.Minute)}}},
		{name: "the sandbox excludes its components", change: change(model.ChangeApproved),
			state: func(s *flow.State) { s.Locks.SandboxID, s.Locks.By["res_sb"] = "res_sb", "chg_sb" },
			want:  flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: flow.Wait{Reason: "lock", On: "chg_sb", Deadline: now.Add(24 * time.Hour), RetryAt: now.Add(15 * time.Minute)}}},
		{name: "other components do not exclude", change: change(model.ChangeApproved),
			state: func(s *flow.State) { s.Locks.SandboxID, s.Locks.By["res_db"] = "res_sb", "chg_db" },
			want:  flow.Decision{Do: flow.DoExecute, StepID: "s", ChangeID: "chg"}},
		{name: "a component excludes the sandbox", change: change(model.ChangeApproved),
			state: func(s *flow.State) { s.Locks.SandboxID, s.Locks.By["res_db"] = "res_api", "chg_db" },
			want:  flow.Decision{Do: flow.DoWaitStep, StepID: "s", ChangeID: "chg", Wait: flow.Wait{Reason: "lock", On: "chg_db", Deadline: now.Add(24 * time.Hour), RetryAt: now.Add(15 * time.Minute)}}},
		{name: "an apply that came out well is applied", change: change(model.ChangeExecuting, apply(job("succeeded", "succeeded"))),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeApplied}},
		{name: "an unknown outcome is uncertain", change: change(model.ChangeExecuting, apply(job("failed", "uncertain"))),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeUncertain}},
		{name: "a moved live state is stale", change: change(model.ChangeExecuting, apply(job("failed", "stale"))),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeStale}},
		{name: "a refusal is refused", change: change(model.ChangeExecuting, apply(job("refused", "refused"))),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeRefused}},
		{name: "applied ends the step", change: change(model.ChangeApplied),
			want: flow.Decision{Do: flow.DoSucceedStep, StepID: "s", ChangeID: "chg"}},
		{name: "uncertain is looked at by a plan, never blindly run again", change: change(model.ChangeUncertain),
			want: flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "stale is planned again", change: change(model.ChangeStale),
			want: flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "stale again and again fails the step, with the last reason", change: change(model.ChangeStale, func(c *flow.Change) { c.Error = "field x moved" }),
			state: func(s *flow.State) { s.Steps[0].Stale = 3 },
			want:  flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "the plan went stale 3 times in a row; most recently: field x moved", Remedy: "find out what else is changing it, then retry the step"}},
		{name: "a plan that met a value of the machine before is stale, not failed", change: change(model.ChangePreparing, plan(elsewhere)),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeStale, Error: "the plan failed"}},
		{name: "and is made again", change: change(model.ChangeStale, plan(elsewhere)),
			want: flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "a value that never opens here fails the step, with the runner's remedy", change: change(model.ChangeStale, plan(elsewhere), func(c *flow.Change) { c.Error, c.Remedy = "sealed for another", "deploy it" }),
			state: func(s *flow.State) { s.Steps[0].Stale = 3 },
			want:  flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "the plan went stale 3 times in a row; most recently: sealed for another", Remedy: "deploy it"}},
		{name: "a host that ended in an apply has it planned again", change: change(model.ChangeUncertain, apply(ended)),
			state: func(s *flow.State) { s.Steps[0].Uncertain, s.Steps[0].HostEnded = 3, 2 },
			want:  flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "also before it did anything", change: change(model.ChangeStale, apply(ended)),
			state: func(s *flow.State) { s.Steps[0].Stale, s.Steps[0].HostEnded = 3, 2 },
			want:  flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "the runner's end in an apply is uncertain, as it reports", change: change(model.ChangeExecuting, apply(ended)),
			want: flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeUncertain}},
		{name: "a host that ends each time fails the step", change: change(model.ChangeUncertain, apply(ended), func(c *flow.Change) { c.Error = "the pod was deleted" }),
			state: func(s *flow.State) { s.Steps[0].HostEnded = 3 },
			want: flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "the runner's host ended 3 times in the middle of this; most recently: the pod was deleted",
				Remedy: "find out what ends the runner's process, pod or machine (its log, its memory, drains), then retry the step, which makes a new plan"}},
		{name: "earlier ends of the host do not count for a plan that went stale", change: change(model.ChangeStale, apply(job("failed", "stale"))),
			state: func(s *flow.State) { s.Steps[0].HostEnded = 3 },
			want:  flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "a person's cancel is not planned again", change: change(model.ChangeExecuting, apply(ended)),
			state: func(s *flow.State) { s.CancelRequested = true },
			want:  flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeUncertain}},
		{name: "nor when the host ended after it", change: change(model.ChangeUncertain, apply(ended)),
			state: func(s *flow.State) { s.CancelRequested = true },
			want:  flow.Decision{Do: flow.DoCancelStep, StepID: "s", ChangeID: "chg"}},
		{name: "failed without retries fails the step", change: change(model.ChangeFailed, func(c *flow.Change) { c.Error = "boom" }),
			want: flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "boom", Remedy: "fix the cause, then retry the step, which makes a new plan"}},
		{name: "failed with a retry left plans again", change: change(model.ChangeFailed), state: func(s *flow.State) { s.Steps[0].MaxRetries = 1 },
			want: flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "failed once more than it may be retried fails the step", change: change(model.ChangeFailed, func(c *flow.Change) { c.Error = "boom" }),
			state: func(s *flow.State) { s.Steps[0].MaxRetries, s.Steps[0].Failed = 1, 2 },
			want:  flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "boom", Remedy: "fix the cause, then retry the step, which makes a new plan"}},
		{name: "what fails until something is changed is not retried", change: change(model.ChangeFailed, plan(withReason("needs_change")), func(c *flow.Change) { c.Error, c.Remedy = "no variable x", "declare it" }),
			state: func(s *flow.State) { s.Steps[0].MaxRetries = 5 },
			want:  flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "no variable x", Remedy: "declare it"}},
		{name: "also when its apply says so", change: change(model.ChangeFailed, plan(job("succeeded", "succeeded")), apply(withReason("needs_change")), func(c *flow.Change) { c.Error = "AccessDenied" }),
			state: func(s *flow.State) { s.Steps[0].MaxRetries = 5 },
			want:  flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "AccessDenied", Remedy: "fix the cause, then retry the step, which makes a new plan"}},
		{name: "but a person's retry plans it again", change: change(model.ChangeFailed, plan(withReason("needs_change"))),
			state: func(s *flow.State) { s.Steps[0].Failed = 0 },
			want:  flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "a reason of a newer runner is none", change: change(model.ChangeFailed, plan(withReason("moon_phase"))),
			state: func(s *flow.State) { s.Steps[0].MaxRetries = 1 },
			want:  flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "a shown plan ends the step", change: change(model.ChangePlanned), state: func(s *flow.State) { s.PlanOnly = true },
			want: flow.Decision{Do: flow.DoSucceedStep, StepID: "s", ChangeID: "chg"}},
		{name: "a plan shown before there was that state does too", change: change(model.ChangeSuperseded), state: func(s *flow.State) { s.PlanOnly = true },
			want: flow.Decision{Do: flow.DoSucceedStep, StepID: "s", ChangeID: "chg"}},
		{name: "what was withdrawn is planned again", change: change(model.ChangeWithdrawn),
			want: flow.Decision{Do: flow.DoPlan, StepID: "s", ChangeID: "chg"}},
		{name: "denied ends the step", change: change(model.ChangeDenied, func(c *flow.Change) { c.Error, c.DeniedBy = "denied by ada", "ada" }),
			want: flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "denied by ada", Ended: model.EndedDenied, EndedBy: "ada"}},
		{name: "denied and skipped", change: change(model.ChangeDenied, func(c *flow.Change) {
			c.Error, c.DeniedBy, c.Then = "denied by ada", "ada", model.ThenSkip
		}), want: flow.Decision{Do: flow.DoSkipStep, StepID: "s", ChangeID: "chg", Error: "denied by ada"}},
		{name: "nobody decided in time", change: change(model.ChangeDenied, func(c *flow.Change) { c.Error = "nobody decided in time" }),
			want: flow.Decision{Do: flow.DoFailStep, StepID: "s", ChangeID: "chg", Error: "nobody decided in time", Ended: model.EndedExpired}},
		{name: "cancel asks a leased job to stop", change: change(model.ChangeExecuting, apply(job("leased", ""))),
			state: func(s *flow.State) { s.CancelRequested = true },
			want:  flow.Decision{Do: flow.DoCancelJob, StepID: "s", JobID: "job"}},
		{name: "cancel settles what ended before the step ends", change: change(model.ChangeExecuting, apply(job("succeeded", "succeeded"))),
			state: func(s *flow.State) { s.CancelRequested = true },
			want:  flow.Decision{Do: flow.DoSettleChange, StepID: "s", ChangeID: "chg", ChangeState: model.ChangeApplied}},
		{name: "cancel ends a step that waits for a decision", change: change(model.ChangeProposed),
			state: func(s *flow.State) { s.CancelRequested = true },
			want:  flow.Decision{Do: flow.DoCancelStep, StepID: "s", ChangeID: "chg"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(deploy(tt.change))
			if tt.state != nil {
				tt.state(&s)
			}
			if diff := cmp.Diff(tt.want, flow.Next(s)); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextOfManySteps(t *testing.T) {
	t.Parallel()
	step := func(name string, state model.StepState, needs ...string) flow.Step {
		return flow.Step{ID: name, Name: name, Kind: flow.StepDeploy, ResourceID: "res_" + name, State: state, Needs: needs}
	}
	busy := func(name string) flow.Step {
		s := step(name, model.StepRunning)
		s.Change = change(model.ChangePreparing, func(c *flow.Change) { c.Plan = job("leased", "") })
		return s
	}
	denied := func(name string, then model.DeniedThen) flow.Step {
		s := step(name, model.StepSkipped)
		s.Change = change(model.ChangeDenied, func(c *flow.Change) { c.Then = then })
		return s
	}
	tests := []struct {
		name  string
		state flow.State
		want  flow.Decision
	}{
		{name: "a queued workflow starts", state: flow.State{WorkflowState: model.WorkflowQueued}, want: flow.Decision{Do: flow.DoStartWorkflow}},
		{name: "what needs nothing starts next to what runs", state: running(busy("a"), step("b", model.StepPending)),
			want: flow.Decision{Do: flow.DoStartStep, StepID: "b"}},
		{name: "a dependent waits", state: running(busy("a"), step("b", model.StepPending, "a")),
			want: flow.Decision{Do: flow.DoNothing, WorkflowState: model.WorkflowRunning}},
		{name: "a dependent starts once its need is there", state: running(step("a", model.StepSucceeded), step("b", model.StepPending, "a")),
			want: flow.Decision{Do: flow.DoStartStep, StepID: "b"}},
		{name: "after a failure nothing new begins and what runs goes on", state: running(step("a", model.StepFailed), busy("b"), step("c", model.StepPending)),
			want: flow.Decision{Do: flow.DoNothing, WorkflowState: model.WorkflowRunning}},
		{name: "a failure ends the workflow; the rest was not attempted", state: running(step("a", model.StepFailed), step("c", model.StepPending, "a")),
			want: flow.Decision{Do: flow.DoFinishWorkflow, WorkflowState: model.WorkflowFailed, Error: "step a failed"}},
		{name: "a workflow names every step that failed", state: running(step("a", model.StepFailed), step("b", model.StepFailed), step("c", model.StepPending, "a")),
			want: flow.Decision{Do: flow.DoFinishWorkflow, WorkflowState: model.WorkflowFailed, Error: "steps a, b failed"}},
		{name: "what needs a step that was denied and skipped goes on", state: running(denied("a", model.ThenSkip), step("b", model.StepPending, "a")),
			want: flow.Decision{Do: flow.DoStartStep, StepID: "b"}},
		{name: "a toggle drops nothing", state: running(step("a", model.StepSkipped), step("b", model.StepPending, "a")),
			want: flow.Decision{Do: flow.DoStartStep, StepID: "b"}},
		{name: "all done is success", state: running(step("a", model.StepSucceeded), step("b", model.StepSkipped)),
			want: flow.Decision{Do: flow.DoFinishWorkflow, WorkflowState: model.WorkflowSucceeded}},
		{name: "a workflow that only waits says so", state: running(flow.Step{ID: "w", Name: "runner", Kind: flow.StepAwaitRunner, State: model.StepSucceeded}, func() flow.Step {
			s := step("a", model.StepWaiting)
			s.WaitReason, s.WaitOn, s.Change = "decision", "chg", change(model.ChangeProposed)
			return s
		}()), want: flow.Decision{Do: flow.DoNothing, WorkflowState: model.WorkflowWaiting, StepID: "a"}},
		{name: "cancel before the start ends it", state: flow.State{WorkflowState: model.WorkflowQueued, CancelRequested: true, Steps: []flow.Step{step("a", model.StepPending)}},
			want: flow.Decision{Do: flow.DoCancelStep, StepID: "a"}},
		{name: "a runner that does not come fails the step", state: func() flow.State {
			s := running(flow.Step{ID: "r", Name: "runner", Kind: flow.StepAwaitRunner, State: model.StepWaiting})
			s.RunnerActive, s.RunnerDeadline = false, now
			return s
		}(), want: flow.Decision{Do: flow.DoFailStep, StepID: "r", Error: "no runner came back in time", Remedy: "see `berth runners` and the runner's own log, then retry the step"}},
		{name: "a finished workflow stays", state: flow.State{WorkflowState: model.WorkflowFailed}, want: flow.Decision{Do: flow.DoNothing, WorkflowState: model.WorkflowFailed}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, flow.Next(tt.state)); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A check is run once for each time that somebody asks for it. Only one that did
// not begin, because its machine was replaced, is run again by itself.
func TestNextOfCheck(t *testing.T) {
	t.Parallel()
	check := func(run *flow.Job) flow.Step {
		return flow.Step{ID: "s", Name: "check/up", Kind: flow.StepCheck, State: model.StepRunning, Run: run, MaxRetries: 3}
	}
	failed := job("failed", "failed")
	failed.Error, failed.Remedy = "exit code 1", "look at the page"
	before := job("failed", "stale")
	before.Reason, before.Error, before.Remedy = string(jobspec.ReasonMachineReplaced), "the machine was replaced", "retry the step"
	tests := []struct {
		name     string
		run      *flow.Job
		replaced int
		want     flow.Decision
	}{
		{name: "it is run", want: flow.Decision{Do: flow.DoRunCheck, StepID: "s"}},
		{name: "its run is waited for", run: job("leased", ""), want: flow.Decision{Do: flow.DoNothing, WorkflowState: model.WorkflowRunning}},
		{name: "a good one ends the step", run: job("succeeded", "succeeded"), want: flow.Decision{Do: flow.DoSucceedStep, StepID: "s"}},
		{name: "a bad one fails the step at once, also with retries", run: failed,
			want: flow.Decision{Do: flow.DoFailStep, StepID: "s", Error: "exit code 1", Remedy: "look at the page"}},
		{name: "one for a machine of before is run on that of now", run: before, replaced: 2, want: flow.Decision{Do: flow.DoRunCheck, StepID: "s"}},
		{name: "but not for ever", run: before, replaced: 3,
			want: flow.Decision{Do: flow.DoFailStep, StepID: "s", Error: "the machine was replaced", Remedy: "retry the step"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			step := check(tt.run)
			step.Replaced = tt.replaced
			if diff := cmp.Diff(tt.want, flow.Next(running(step))); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApprovalDeadline(t *testing.T) {
	t.Parallel()
	for hours, want := range map[int]time.Duration{0: flow.ApprovalTime, -1: flow.ApprovalTime, 1: time.Hour, 8760: 8760 * time.Hour} {
		if got := flow.ApprovalDeadline(now, hours).Sub(now); got != want {
			t.Errorf("%d hours: a change waits %s, want %s", hours, got, want)
		}
	}
}
