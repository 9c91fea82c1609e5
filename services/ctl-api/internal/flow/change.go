package flow

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/model"
)

// Limits on what Berth repeats without asking.
const (
	// maxInspections: how often in a row a new plan checks an uncertain outcome
	// before we ask a person.
	maxInspections = 3
	// maxStale: how often in a row a plan that went stale is made again.
	maxStale = 3
	// maxHostEnded: how often a change is planned again because the runner's host
	// ended in the middle of it. A host that ends every time needs a person.
	maxHostEnded = 3
	// maxReplaced: how often the run of a check is made again because the runner's
	// machine was replaced before it began.
	maxReplaced = 3
)

// nextOfChange leads a step that mutates from plan over decision to apply.
func nextOfChange(s State, step Step) (Decision, bool) {
	c := step.Change
	if c == nil {
		return Decision{Do: DoPlan}, true
	}
	if d, ok := settleChange(step); ok {
		return d, true
	}
	var d Decision
	switch c.State {
	case model.ChangePreparing:
		d = nextOfPlan(s, c)
	case model.ChangeProposed:
		d = nextOfProposal(s, step)
	case model.ChangeApproved:
		d = nextOfApproved(s, step)
	case model.ChangeApplied, model.ChangeNoChange, model.ChangePlanned:
		d.Do = DoSucceedStep
	case model.ChangeUncertain, model.ChangeStale, model.ChangeFailed, model.ChangeWithdrawn:
		d = planAgain(step)
	case model.ChangeRefused, model.ChangeDenied, model.ChangeSuperseded:
		d = nextOfGivenUp(s, c)
	}
	d.ChangeID = c.ID
	return d, d.Do != ""
}

// nextOfPlan says what is done with a plan that has ended well. A zero Decision
// here and below says that there is nothing to do but wait.
func nextOfPlan(s State, c *Change) Decision {
	switch {
	case !c.Plan.ended():
		return Decision{}
	case c.Plan.NoChange:
		return Decision{Do: DoNoChange}
	case s.PlanOnly:
		return Decision{Do: DoPlanned}
	case c.Plan.PolicyDenies != "":
		return deniedByPolicy(c)
	}
	return Decision{Do: DoPropose}
}

// nextOfProposal answers a proposal by a rule, or has it wait for a person.
func nextOfProposal(s State, step Step) Decision {
	c := step.Change
	switch {
	case c.ReadOnly:
		return Decision{Do: DoApprove, Rule: model.RuleReadOnly}
	case c.Consent == model.ConsentDenied:
		return deniedByCustomer(c)
	case c.Enough() && (c.Votes > 0 || c.kept()):
		return Decision{Do: DoApprove, Rule: model.RuleKept}
	case s.ApproveAll && !s.PeopleDecide:
		return Decision{Do: DoApprove, Rule: model.RuleApproveAll}
	case !s.Now.Before(c.Deadline):
		return Decision{Do: DoSettleChange, ChangeState: model.ChangeDenied, Error: "nobody decided in time"}
	case step.State != model.StepWaiting || step.WaitReason != model.WaitDecision:
		return Decision{Do: DoWaitStep, Wait: Wait{Reason: model.WaitDecision, On: c.ID, Deadline: c.Deadline}}
	}
	return Decision{}
}

// nextOfApproved grants the change its resource, or has it wait: until it may be
// carried out, then for the lock. Approvals are counted again before that.
func nextOfApproved(s State, step Step) Decision {
	if c := step.Change; !c.ReadOnly {
		if !c.Enough() {
			return reopen(c)
		}
		if c.Consent == model.ConsentDenied {
			return deniedByCustomer(c)
		}
		if hold := s.holdOf(step); hold != nil {
			return hold.next(s.Now, step)
		}
	}
	holder := s.Locks.Before(Turn{ChangeID: step.Change.ID, Resource: step.ResourceID, RequestedAt: s.RequestedAt})
	switch {
	case holder == "" || step.Change.ReadOnly:
		return Decision{Do: DoExecute}
	case step.State == model.StepWaiting && step.WaitReason == model.WaitLock && step.WaitOn == holder:
		return stillLocked(s, step)
	}
	return Decision{Do: DoWaitStep, Wait: Wait{Reason: model.WaitLock, On: holder, Deadline: s.Now.Add(lockWait), RetryAt: s.Now.Add(lockRetry)}}
}

// stillLocked is a step that waits for the same change as before: at the deadline its plan
// has become too old, until then it looks again from time to time.
func stillLocked(s State, step Step) Decision {
	switch {
	case !s.Now.Before(step.WaitDeadline):
		return Decision{Do: DoSettleChange, ChangeState: model.ChangeStale, Error: fmt.Sprintf("it waited %d hours for change %s", int(lockWait.Hours()), step.WaitOn)}
	case !s.Now.Before(step.WaitRetryAt):
		return Decision{Do: DoLookAgain, Wait: Wait{Reason: model.WaitLock, On: step.WaitOn, Deadline: step.WaitDeadline, RetryAt: s.Now.Add(lockRetry)}}
	}
	return Decision{}
}

// planAgain makes a new plan after an apply that did not come out, as long as
// that was not tried too often and can come out differently.
func planAgain(step Step) Decision {
	c := step.Change
	if maybeRan(step) {
		return looksFirst(c)
	}
	if c.hostEnded() {
		if step.HostEnded >= maxHostEnded {
			return Decision{
				Do: DoFailStep, Error: fmt.Sprintf("the runner's host ended %d times in the middle of this; most recently: %s", step.HostEnded, orElse(c.Error, "it left no word")),
				Remedy: "find out what ends the runner's process, pod or machine (its log, its memory, drains), then retry the step, which makes a new plan",
			}
		}
		return Decision{Do: DoPlan}
	}
	switch c.State {
	case model.ChangeUncertain:
		if step.Uncertain >= maxInspections {
			return Decision{Do: DoFailStep, Error: fmt.Sprintf("the outcome stayed uncertain %d times", step.Uncertain), Remedy: "look at the resource itself, then retry the step, which makes a new plan"}
		}
	case model.ChangeStale:
		if step.Stale >= maxStale {
			remedy := "find out what else is changing it, then retry the step"
			if c.reason() == jobspec.ReasonMachineReplaced {
				remedy = orElse(c.Remedy, remedy)
			}
			return Decision{
				Do: DoFailStep, Error: fmt.Sprintf("the plan went stale %d times in a row; most recently: %s", step.Stale, orElse(c.Error, "the live state changed after the plan")),
				Remedy: remedy,
			}
		}
	case model.ChangeFailed:
		// A person's retry sets the count to 0: something was changed.
		hopeless := step.Failed > 0 && c.reason() == jobspec.ReasonNeedsChange
		if step.Failed > step.MaxRetries || hopeless {
			return Decision{Do: DoFailStep, Error: orElse(c.Error, "the change failed"), Remedy: orElse(c.Remedy, "fix the cause, then retry the step, which makes a new plan")}
		}
	}
	return Decision{Do: DoPlan}
}

// hostEnded says whether the runner's host ended in the middle of the change,
// which nobody wanted.
func (c *Change) hostEnded() bool {
	open := c.State == model.ChangeStale || c.State == model.ChangeUncertain
	return open && c.reason() == jobspec.ReasonHostEnded
}

// reason is why the change's last job ended so, "" for nothing to add.
func (c *Change) reason() jobspec.Reason {
	switch {
	case c.Apply != nil:
		return jobspec.Reason(c.Apply.Reason)
	case c.Plan != nil:
		return jobspec.Reason(c.Plan.Reason)
	}
	return ""
}

// nextOfGivenUp ends a step whose change nobody goes on with.
func nextOfGivenUp(s State, c *Change) Decision {
	switch {
	case c.State == model.ChangeRefused:
		return Decision{Do: DoFailStep, Error: orElse(c.Error, "the runner refused the change"), Remedy: orElse(c.Remedy, "retry the step, which makes a new plan")}
	case c.State == model.ChangeDenied && c.Then != "":
		return Decision{Do: DoSkipStep, Error: orElse(c.Error, "the change was denied")}
	case c.State == model.ChangeDenied:
		how, by := c.ended()
		return Decision{Do: DoFailStep, Error: orElse(c.Error, "the change was denied"), Remedy: c.Remedy, Ended: how, EndedBy: by}
	case s.PlanOnly: // planned, by a control plane older than that state
		return Decision{Do: DoSucceedStep}
	}
	return Decision{Do: DoFailStep, Error: orElse(c.Error, "superseded by a newer change to the same resource")}
}

// settleChange takes over into the change what came of its jobs.
func settleChange(step Step) (Decision, bool) {
	c := step.Change
	if c == nil {
		return Decision{}, false
	}
	d := Decision{Do: DoSettleChange, ChangeID: c.ID}
	switch c.State {
	case model.ChangePreparing:
		if !c.Plan.ended() || c.Plan.State == model.JobSucceeded {
			return Decision{}, false
		}
		d.Error, d.Remedy = orElse(c.Plan.Error, "the plan failed"), c.Plan.Remedy
		switch {
		case jobspec.Outcome(c.Plan.Outcome) == jobspec.OutcomeStale: // its order came too late
			d.ChangeState = model.ChangeStale
		case c.Plan.State == model.JobRefused:
			d.ChangeState = model.ChangeRefused
		default:
			d.ChangeState = model.ChangeFailed
		}
		return d, true
	case model.ChangeExecuting:
		if !c.Apply.ended() {
			return Decision{}, false
		}
		d.Error, d.Remedy = c.Apply.Error, c.Apply.Remedy
		d.ChangeState = afterApply(c.Apply)
		return d, true
	}
	return Decision{}, false
}

// afterApply says what a change is once its apply has ended.
func afterApply(j *Job) model.ChangeState {
	switch jobspec.Outcome(j.Outcome) {
	case jobspec.OutcomeSucceeded:
		return model.ChangeApplied
	case jobspec.OutcomeStale:
		return model.ChangeStale
	case jobspec.OutcomeRefused:
		return model.ChangeRefused
	case jobspec.OutcomeUncertain:
		return model.ChangeUncertain
	}
	if j.State == model.JobRefused {
		return model.ChangeRefused
	}
	return model.ChangeFailed
}
