package flow

import "github.com/berth-dev/berth/services/internal/model"

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
// that it only waits. held is false for a step that may continue.
//
// Once the acceptance has failed, what was planned next to it is put off: the
// workflow ends, and a retry of the acceptance begins it again.
func (s State) holdBack(step Step) (_ Decision, held bool) {
	accept := s.accept()
	if accept == nil || accept.ID == step.ID || step.Kind == StepAwaitStack || step.Kind == StepAwaitRunner {
		return Decision{}, false
	}
	switch accept.State {
	case model.StepSucceeded, model.StepSkipped:
		return Decision{}, false
	case model.StepFailed, model.StepCancelled:
		return putOff(step)
	}
	c := step.Change
	switch {
	case step.Kind == StepCheck:
	case c == nil:
		return Decision{}, false
	case c.State == model.ChangeApproved, c.State == model.ChangePreparing && c.Plan.ended() && c.Plan.State == model.JobSucceeded && c.Plan.NoChange && !s.PlanOnly:
	default:
		return Decision{}, false
	}
	return s.awaitRelease(step, accept), true
}

// awaitRelease is a step that waits for the acceptance, as long as that waits itself.
func (s State) awaitRelease(step Step, accept *Step) Decision {
	on := orElse(accept.changeID(), accept.ID)
	waits := step.State == model.StepWaiting && step.WaitReason == model.WaitRelease && step.WaitOn == on && s.Now.Before(step.WaitDeadline)
	deadline := s.Now.Add(ApprovalTime)
	if accept.Change != nil && accept.Change.Deadline.After(s.Now) { // the proposal's own
		deadline = accept.Change.Deadline
		waits = waits && step.WaitDeadline.Equal(deadline)
	}
	if waits {
		return Decision{}
	}
	return Decision{Do: DoWaitStep, ChangeID: step.changeID(), Wait: Wait{Reason: model.WaitRelease, On: on, Deadline: deadline}}
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
