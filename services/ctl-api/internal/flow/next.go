package flow

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/model"
)

// Next decides, from rows alone, the one thing to do now. It does no I/O. Doing
// it changes the rows, so that the same decision is not made twice.
func Next(s State) Decision {
	switch s.WorkflowState {
	case model.WorkflowSucceeded, model.WorkflowFailed, model.WorkflowCancelled:
		return Decision{Do: DoNothing, WorkflowState: s.WorkflowState}
	case model.WorkflowQueued:
		if !s.CancelRequested {
			return Decision{Do: DoStartWorkflow}
		}
	}
	if s.CancelRequested {
		return nextCancel(s)
	}
	failed := s.failedStep()
	for _, step := range s.Steps {
		if failed != nil && step.State == model.StepPending && !s.goesOn(step) {
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
	others := s.anyGoesOn() // than the acceptance wait
	for i, step := range s.Steps {
		switch step.State {
		case model.StepRunning:
			return Decision{Do: DoNothing, WorkflowState: model.WorkflowRunning}
		case model.StepWaiting:
			if waiting == nil {
				waiting = &s.Steps[i]
			}
			others = others || step.Kind != StepAccept
		}
	}
	switch {
	case waiting != nil && failed != nil && !others && waiting.Change != nil && waiting.Change.State == model.ChangeProposed:
		// Nothing is left that the release would be accepted for.
		return Decision{Do: DoPutOff, StepID: waiting.ID, ChangeID: waiting.changeID(), Error: s.failure()}
	case waiting != nil:
		return Decision{Do: DoNothing, WorkflowState: model.WorkflowWaiting, StepID: waiting.ID}
	case failed != nil:
		how, by := s.ended()
		return Decision{Do: DoFinishWorkflow, WorkflowState: model.WorkflowFailed, Error: s.failure(), Ended: how, EndedBy: by}
	default:
		return Decision{Do: DoFinishWorkflow, WorkflowState: model.WorkflowSucceeded}
	}
}

// nextCancel stops what runs, then ends every step, then the workflow.
func nextCancel(s State) Decision {
	stopping := false
	for _, step := range s.Steps {
		switch step.State {
		case model.StepSucceeded, model.StepSkipped, model.StepFailed, model.StepCancelled:
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
		return Decision{Do: DoNothing, WorkflowState: model.WorkflowRunning}
	}
	return Decision{Do: DoFinishWorkflow, WorkflowState: model.WorkflowCancelled, Error: "cancelled"}
}

// nextOfStep says what a step needs; false when it only waits or is done.
func nextOfStep(s State, step Step) (Decision, bool) {
	switch step.State {
	case model.StepPending:
		switch {
		case s.met(step.Needs) && step.Unwanted != "":
			return Decision{Do: DoSkipStep, Error: step.Unwanted}, true
		case s.met(step.Needs):
			return Decision{Do: DoStartStep}, true
		}
		return Decision{}, false
	case model.StepRunning, model.StepWaiting:
	default:
		return Decision{}, false
	}
	if d, held := s.holdBack(step); held {
		return d, d.Do != ""
	}
	switch step.Kind {
	case StepAwaitStack:
		return await(s, step, s.StackActive)
	case StepAwaitRunner:
		return await(s, step, s.RunnerActive)
	case StepSecrets:
		return awaitSecrets(s, step)
	case StepGate:
		return nextOfGate(s, step)
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

// noRunner fails a step that waited for the runner in vain.
var noRunner = Decision{Do: DoFailStep, Error: "no runner came back in time", Remedy: "see `berth runners` and the runner's own log, then retry the step"}

// awaitMachine is a step whose job cannot be ordered: an order names the key of
// the machine that it is for, and nobody has enrolled.
func awaitMachine(s State, step Step) (Decision, bool) {
	if step.State != model.StepWaiting || step.WaitReason != model.WaitRunner {
		return Decision{Do: DoWaitStep, Wait: Wait{Reason: model.WaitRunner, On: s.RunnerID, Deadline: s.Now.Add(RunnerTime)}}, true
	}
	if s.Now.Before(step.WaitDeadline) {
		return Decision{}, false
	}
	return noRunner, true
}

// await is a step that ends when something outside has happened: the stack or
// the runner is there.
func await(s State, step Step, there bool) (Decision, bool) {
	w, late := Wait{Reason: model.WaitStack, On: "customer", Deadline: s.StackDeadline}, Decision{
		Do: DoFailStep, Error: "the stack was not applied in time", Remedy: "make a new stack version, then retry the step",
	}
	if step.Kind == StepAwaitRunner {
		w, late = Wait{Reason: model.WaitRunner, On: s.RunnerID, Deadline: s.RunnerDeadline}, noRunner
	}
	switch {
	case there:
		return Decision{Do: DoSucceedStep}, true
	case !s.Now.Before(w.Deadline):
		return late, true
	case step.State != model.StepWaiting:
		return Decision{Do: DoWaitStep, Wait: w}, true
	}
	return Decision{}, false
}

// nextOfCheck runs a check once. A check that failed is not run again by
// itself: the person who fixed the cause retries the step. One that was made for a
// machine of before did not run.
func nextOfCheck(_ State, step Step) (Decision, bool) {
	switch {
	case step.Run == nil:
		return Decision{Do: DoRunCheck}, true
	case !step.Run.ended():
		return Decision{}, false
	case jobspec.Reason(step.Run.Reason) == jobspec.ReasonMachineReplaced && step.Replaced < maxReplaced:
		return Decision{Do: DoRunCheck}, true
	case step.Run.State == model.JobSucceeded:
		return Decision{Do: DoSucceedStep}, true
	}
	return Decision{Do: DoFailStep, Error: orElse(step.Run.Error, "the check failed"), Remedy: orElse(step.Run.Remedy, "fix the cause, then retry the step")}, true
}

// met says whether every named step has come out well.
func (s State) met(needs []string) bool {
	for _, need := range needs {
		i := slices.IndexFunc(s.Steps, func(x Step) bool { return x.Name == need })
		if i < 0 || s.Steps[i].State != model.StepSucceeded && s.Steps[i].State != model.StepSkipped {
			return false
		}
	}
	return true
}

func (s State) failedStep() *Step {
	for i := range s.Steps {
		if s.Steps[i].State == model.StepFailed {
			return &s.Steps[i]
		}
	}
	return nil
}

// failure names every step that failed; when a denial is all there is, the first
// step that was denied, and why.
func (s State) failure() string {
	if how, _ := s.ended(); how != "" {
		for _, step := range s.Steps {
			if stepHow, _ := step.Change.ended(); step.State == model.StepFailed && stepHow == how {
				return step.Name + " was not done: " + orElse(step.Change.Error, "the change was denied")
			}
		}
	}
	var names []string
	for _, step := range s.Steps {
		if step.State == model.StepFailed {
			names = append(names, step.Name)
		}
	}
	if len(names) == 1 {
		return "step " + names[0] + " failed"
	}
	return "steps " + strings.Join(names, ", ") + " failed"
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
