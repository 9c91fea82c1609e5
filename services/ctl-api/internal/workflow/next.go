package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Limits of what is done again without being asked.
const (
	// maxInspections: how often in a row an uncertain outcome is looked at by a
	// new plan before a person is asked.
	maxInspections = 3
	// maxStale: how often in a row a plan that went stale is made again.
	maxStale = 3
	// lockWait bounds a wait for another change of the same resource.
	lockWait = 24 * time.Hour
	// waitRelease: what was approved waits for the release to be accepted.
	waitRelease = "release"
)

// Do names the one thing to do.
type Do string

// What Next can ask for.
const (
	// DoNothing: everything that could be done is; Decision.WorkflowState and
	// the wait say what the workflow row shall read.
	DoNothing        Do = "nothing"
	DoStartWorkflow  Do = "start_workflow"
	DoFinishWorkflow Do = "finish_workflow" // to WorkflowState, with Error
	DoStartStep      Do = "start_step"
	DoWaitStep       Do = "wait_step" // with Wait
	DoSucceedStep    Do = "succeed_step"
	DoFailStep       Do = "fail_step" // with Error and Remedy
	DoCancelStep     Do = "cancel_step"
	DoPlan           Do = "plan"          // a new change for the step, with its plan job; replaces the present one
	DoRunCheck       Do = "run_check"     // a job that runs the check once
	DoPropose        Do = "propose"       // the plan is there: ask for a decision
	DoNoChange       Do = "no_change"     // the plan is empty
	DoPlanned        Do = "planned"       // plan only: shown, not done
	DoApprove        Do = "approve"       // by Rule, without asking
	DoExecute        Do = "execute"       // lock, fence, capsule, apply job
	DoSettleChange   Do = "settle_change" // the jobs ended: the change becomes ChangeState
	DoCancelJob      Do = "cancel_job"    // ask the runner to stop JobID
	DoPutOff         Do = "put_off"       // the step is pending again, its change is superseded, because of Error
)

// Wait is what a waiting row says.
type Wait struct {
	Reason   string
	On       string
	Deadline time.Time
}

// Decision is the one thing to do now.
type Decision struct {
	Do            Do
	StepID        string
	ChangeID      string
	JobID         string
	ChangeState   string // DoSettleChange
	WorkflowState string // DoNothing, DoFinishWorkflow
	Rule          string // DoApprove: approve_all, kept or read_only
	Wait          Wait
	Error         string
	Remedy        string
}

// Next decides, from rows alone, the one thing to do now. It does no I/O. Doing
// it changes the rows, so that the same decision is not made twice.
func Next(s State) Decision {
	switch s.WorkflowState {
	case WorkflowSucceeded, WorkflowFailed, WorkflowCancelled:
		return Decision{Do: DoNothing, WorkflowState: s.WorkflowState}
	case WorkflowQueued:
		if !s.CancelRequested {
			return Decision{Do: DoStartWorkflow}
		}
	}
	if s.CancelRequested {
		return nextCancel(s)
	}
	failed := s.failedStep()
	for _, step := range s.Steps {
		// After a failure, what runs goes on to its end and nothing new begins.
		if failed != nil && step.State == StepPending {
			continue
		}
		if d, ok := nextOfStep(s, step); ok {
			d.StepID = step.ID
			return d
		}
	}
	return s.settle(failed)
}

// settle says what the workflow row shall read when no step has anything to do.
func (s State) settle(failed *Step) Decision {
	var waiting *Step
	others := false // than the acceptance wait
	for i, step := range s.Steps {
		switch step.State {
		case StepRunning:
			return Decision{Do: DoNothing, WorkflowState: WorkflowRunning}
		case StepWaiting:
			if waiting == nil {
				waiting = &s.Steps[i]
			}
			others = others || step.Kind != StepAccept
		}
	}
	switch {
	case waiting != nil && failed != nil && !others && waiting.Change != nil && waiting.Change.State == ChangeProposed:
		// Nothing is left that the release would be accepted for.
		return Decision{Do: DoPutOff, StepID: waiting.ID, ChangeID: waiting.changeID(), Error: "step " + failed.Name + " failed"}
	case waiting != nil:
		return Decision{Do: DoNothing, WorkflowState: WorkflowWaiting, StepID: waiting.ID}
	case failed != nil:
		return Decision{Do: DoFinishWorkflow, WorkflowState: WorkflowFailed, Error: "step " + failed.Name + " failed"}
	default:
		return Decision{Do: DoFinishWorkflow, WorkflowState: WorkflowSucceeded}
	}
}

// nextCancel stops what runs, then ends every step, then the workflow.
func nextCancel(s State) Decision {
	stopping := false
	for _, step := range s.Steps {
		switch step.State {
		case StepSucceeded, StepSkipped, StepFailed, StepCancelled:
			continue
		}
		if job := step.openJob(); job != nil {
			if !job.CancelRequested {
				return Decision{Do: DoCancelJob, StepID: step.ID, JobID: job.ID}
			}
			stopping = true
			continue
		}
		if d, ok := settleChange(step); ok {
			d.StepID = step.ID
			return d
		}
		return Decision{Do: DoCancelStep, StepID: step.ID, ChangeID: step.changeID()}
	}
	if stopping {
		return Decision{Do: DoNothing, WorkflowState: WorkflowRunning}
	}
	return Decision{Do: DoFinishWorkflow, WorkflowState: WorkflowCancelled, Error: "cancelled"}
}

// nextOfStep says what a step needs; false when it only waits or is done.
func nextOfStep(s State, step Step) (Decision, bool) {
	switch step.State {
	case StepPending:
		if s.met(step.Needs) {
			return Decision{Do: DoStartStep}, true
		}
		return Decision{}, false
	case StepRunning, StepWaiting:
	default:
		return Decision{}, false
	}
	if d, held := s.holdBack(step); held {
		return d, d.Do != ""
	}
	switch step.Kind {
	case StepAwaitStack:
		return await(step, s.StackActive, s.Now, Wait{Reason: "stack", On: "customer", Deadline: s.StackDeadline},
			"the stack was not applied in time", "make a new stack version, then retry the step")
	case StepAwaitRunner:
		return await(step, s.RunnerActive, s.Now, Wait{Reason: "runner", On: s.RunnerID, Deadline: s.RunnerDeadline},
			"the runner did not come", "see `berth runners` and the runner's own log, then retry the step")
	}
	next := nextOfChange
	if step.Kind == StepCheck {
		next = nextOfCheck
	}
	d, ok := next(s, step)
	if !ok || !s.NoMachine || d.Do != DoPlan && d.Do != DoRunCheck && d.Do != DoExecute {
		return d, ok
	}
	return awaitMachine(s, step)
}

// awaitMachine is a step whose job cannot be ordered: an order names the key of
// the machine that it is for, and nobody has enrolled.
func awaitMachine(s State, step Step) (Decision, bool) {
	if step.State != StepWaiting || step.WaitReason != "runner" {
		return Decision{Do: DoWaitStep, Wait: Wait{Reason: "runner", On: s.RunnerID, Deadline: s.Now.Add(runnerTime)}}, true
	}
	if s.Now.Before(step.WaitDeadline) {
		return Decision{}, false
	}
	return Decision{Do: DoFailStep, Error: "the runner did not come", Remedy: "see `berth runners` and the runner's own log, then retry the step"}, true
}

// accept is the step that accepts the workflow's release; nil for a workflow that
// brings none, or that is older than such steps.
func (s State) accept() *Step {
	for i := range s.Steps {
		if s.Steps[i].Kind == StepAccept {
			return &s.Steps[i]
		}
	}
	return nil
}

// holdBack says what a step does while its workflow's release is not accepted:
// it may plan and ask for its own decision, nothing else. A zero Decision says
// that it only waits. held is false for a step that may go on.
//
// Once the acceptance has failed, what was planned next to it is put off: the
// workflow ends, and a retry of the acceptance begins it again.
func (s State) holdBack(step Step) (_ Decision, held bool) {
	accept := s.accept()
	if accept == nil || accept.ID == step.ID || step.Kind == StepAwaitStack || step.Kind == StepAwaitRunner {
		return Decision{}, false
	}
	switch accept.State {
	case StepSucceeded, StepSkipped:
		return Decision{}, false
	case StepFailed, StepCancelled:
		return putOff(step)
	}
	c := step.Change
	switch {
	case step.Kind == StepCheck:
	case c == nil:
		return Decision{}, false
	case c.State == ChangeApproved, c.State == ChangePreparing && c.Plan.ended() && c.Plan.State == JobSucceeded && c.Plan.NoChange && !s.PlanOnly:
	default:
		return Decision{}, false
	}
	on := orElse(accept.changeID(), accept.ID)
	if step.State == StepWaiting && step.WaitReason == waitRelease && step.WaitOn == on {
		return Decision{}, true
	}
	deadline := s.Now.Add(approvalTime)
	if accept.Change != nil && accept.Change.Deadline.After(s.Now) {
		deadline = accept.Change.Deadline
	}
	return Decision{Do: DoWaitStep, ChangeID: step.changeID(), Wait: Wait{Reason: waitRelease, On: on, Deadline: deadline}}, true
}

// putOff takes a step back whose release was not accepted.
func putOff(step Step) (Decision, bool) {
	if job := step.openJob(); job != nil {
		if !job.CancelRequested {
			return Decision{Do: DoCancelJob, JobID: job.ID}, true
		}
		return Decision{}, true
	}
	if d, ok := settleChange(step); ok {
		return d, true
	}
	return Decision{Do: DoPutOff, ChangeID: step.changeID(), Error: "the release was not accepted"}, true
}

// await is a step that ends when something outside has happened.
func await(step Step, there bool, now time.Time, w Wait, late, remedy string) (Decision, bool) {
	switch {
	case there:
		return Decision{Do: DoSucceedStep}, true
	case !now.Before(w.Deadline):
		return Decision{Do: DoFailStep, Error: late, Remedy: remedy}, true
	case step.State != StepWaiting:
		return Decision{Do: DoWaitStep, Wait: w}, true
	}
	return Decision{}, false
}

func nextOfCheck(_ State, step Step) (Decision, bool) {
	switch {
	case step.Run == nil:
		return Decision{Do: DoRunCheck}, true
	case !step.Run.ended():
		return Decision{}, false
	case step.Run.State == JobSucceeded:
		return Decision{Do: DoSucceedStep}, true
	case step.Failed < step.MaxRetries:
		return Decision{Do: DoRunCheck}, true
	}
	return Decision{Do: DoFailStep, Error: orElse(step.Run.Error, "the check failed"), Remedy: orElse(step.Run.Remedy, "read its log, then retry the step")}, true
}

// nextOfChange leads a step that mutates from plan over decision to apply.
func nextOfChange(s State, step Step) (Decision, bool) {
	c := step.Change
	if c == nil {
		return Decision{Do: DoPlan}, true
	}
	if d, ok := settleChange(step); ok {
		return d, true
	}
	d := Decision{ChangeID: c.ID}
	switch c.State {
	case ChangePreparing:
		if !c.Plan.ended() {
			return Decision{}, false
		}
		switch {
		case c.Plan.NoChange:
			d.Do = DoNoChange
		case s.PlanOnly:
			d.Do = DoPlanned
		default:
			d.Do = DoPropose
		}
		return d, true
	case ChangeProposed:
		d.Do = DoApprove
		switch {
		case c.ReadOnly:
			d.Rule = "read_only"
		case c.ApprovedDigest != "" && c.ApprovedDigest == c.EffectDigest:
			d.Rule = "kept"
		case s.ApproveAll:
			d.Rule = "approve_all"
		case !s.Now.Before(c.Deadline):
			d.Do, d.ChangeState = DoSettleChange, ChangeDenied
			d.Error = "no decision came in time"
		case step.State != StepWaiting || step.WaitReason != "decision":
			d.Do, d.Wait = DoWaitStep, Wait{Reason: "decision", On: c.ID, Deadline: c.Deadline}
		default:
			return Decision{}, false
		}
		return d, true
	case ChangeApproved:
		if holder := s.holder(step.ResourceID); holder != "" && !c.ReadOnly {
			if step.State == StepWaiting && step.WaitReason == "lock" && step.WaitOn == holder {
				return Decision{}, false
			}
			d.Do, d.Wait = DoWaitStep, Wait{Reason: "lock", On: holder, Deadline: s.Now.Add(lockWait)}
			return d, true
		}
		d.Do = DoExecute
		return d, true
	case ChangeExecuting:
		return Decision{}, false
	case ChangeApplied, ChangeNoChange:
		d.Do = DoSucceedStep
		return d, true
	case ChangeUncertain:
		if step.Uncertain < maxInspections {
			d.Do = DoPlan
			return d, true
		}
		d.Do, d.Error, d.Remedy = DoFailStep, fmt.Sprintf("the outcome stayed uncertain %d times", step.Uncertain), "look at the resource itself, then retry the step: it plans anew"
		return d, true
	case ChangeStale:
		if step.Stale < maxStale {
			d.Do = DoPlan
			return d, true
		}
		d.Do, d.Error, d.Remedy = DoFailStep, fmt.Sprintf("had to be planned anew %d times in a row; the last time: %s", step.Stale, orElse(c.Error, "what is live moved after the plan")), "find out what else changes it, then retry the step"
		return d, true
	case ChangeFailed:
		if step.Failed <= step.MaxRetries {
			d.Do = DoPlan
			return d, true
		}
		d.Do, d.Error, d.Remedy = DoFailStep, orElse(c.Error, "the change failed"), orElse(c.Remedy, "read its log, mend the cause, then retry the step: it plans anew")
		return d, true
	case ChangeRefused:
		d.Do, d.Error, d.Remedy = DoFailStep, orElse(c.Error, "the runner refused the change"), orElse(c.Remedy, "retry the step: it plans anew")
		return d, true
	case ChangeDenied:
		d.Do, d.Error = DoFailStep, orElse(c.Error, "the change was denied")
		return d, true
	case ChangeSuperseded:
		if s.PlanOnly {
			d.Do = DoSucceedStep
			return d, true
		}
		d.Do, d.Error, d.Remedy = DoFailStep, "a newer change of the same resource took its place", "follow the newer one, or retry the step"
		return d, true
	}
	return Decision{}, false
}

// settleChange takes over into the change what came of its jobs.
func settleChange(step Step) (Decision, bool) {
	c := step.Change
	if c == nil {
		return Decision{}, false
	}
	d := Decision{Do: DoSettleChange, ChangeID: c.ID}
	switch c.State {
	case ChangePreparing:
		if !c.Plan.ended() || c.Plan.State == JobSucceeded {
			return Decision{}, false
		}
		d.Error, d.Remedy = orElse(c.Plan.Error, "the plan failed"), c.Plan.Remedy
		switch {
		case jobspec.Outcome(c.Plan.Outcome) == jobspec.OutcomeStale: // its order came too late
			d.ChangeState = ChangeStale
		case c.Plan.State == JobRefused:
			d.ChangeState = ChangeRefused
		default:
			d.ChangeState = ChangeFailed
		}
		return d, true
	case ChangeExecuting:
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
func afterApply(j *Job) string {
	switch jobspec.Outcome(j.Outcome) {
	case jobspec.OutcomeSucceeded:
		return ChangeApplied
	case jobspec.OutcomeStale:
		return ChangeStale
	case jobspec.OutcomeRefused:
		return ChangeRefused
	case jobspec.OutcomeUncertain:
		return ChangeUncertain
	}
	if j.State == JobRefused {
		return ChangeRefused
	}
	return ChangeFailed
}

// holder names the change that keeps a resource from being changed; empty when
// it is free. The sandbox excludes every other resource of the install and is
// excluded by each.
func (s State) holder(resource string) string {
	if resource == "" {
		return ""
	}
	if by := s.LockedBy[resource]; by != "" {
		return by
	}
	if s.SandboxID == "" {
		return ""
	}
	if resource != s.SandboxID {
		return s.LockedBy[s.SandboxID]
	}
	var holders []string
	for _, by := range s.LockedBy {
		if by != "" {
			holders = append(holders, by)
		}
	}
	if len(holders) == 0 {
		return ""
	}
	return slices.Min(holders)
}

// met says whether every named step has come out well.
func (s State) met(needs []string) bool {
	for _, need := range needs {
		i := slices.IndexFunc(s.Steps, func(x Step) bool { return x.Name == need })
		if i < 0 || s.Steps[i].State != StepSucceeded && s.Steps[i].State != StepSkipped {
			return false
		}
	}
	return true
}

func (s State) failedStep() *Step {
	for i := range s.Steps {
		if s.Steps[i].State == StepFailed {
			return &s.Steps[i]
		}
	}
	return nil
}

// openJob is the job of the step that a runner may still work on.
func (s Step) openJob() *Job {
	if s.Run != nil && !s.Run.ended() {
		return s.Run
	}
	if s.Change == nil {
		return nil
	}
	for _, j := range []*Job{s.Change.Plan, s.Change.Apply} {
		if j != nil && !j.ended() {
			return j
		}
	}
	return nil
}

func (s Step) changeID() string {
	if s.Change == nil {
		return ""
	}
	return s.Change.ID
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
