package follow

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Verdict is how a workflow stands once it is followed no further.
type Verdict int

// The verdicts.
const (
	Done    Verdict = iota // succeeded; a plan found nothing to do
	Changes                // a plan found changes
	Waits                  // not finished: it waits for decisions
	Refused                // the runner refused a change
	Failed                 // it failed, was cancelled, or somebody denied a change
)

// Judge decides how a workflow stands, and what to tell a person about it: what
// failed, and what to do next. A line that begins with spaces belongs to the one
// above it.
func Judge(w ctlapi.Workflow) (Verdict, []string) {
	var lines []string
	if !Finished(w.State) {
		for _, question := range Questions(w) {
			lines = append(lines, "berth approve "+toApprove(w, question))
		}
		return Waits, lines
	}
	lines = Failures(w)
	verdict := Done
	for _, s := range w.Steps {
		switch {
		case s.Change != nil && s.Change.State == ctlapi.ChangeStateRefused:
			verdict = Refused
		case w.PlanOnly && verdict == Done && mayChange(s):
			verdict = Changes
		}
	}
	if w.State == ctlapi.WorkflowStateCancelled && !w.PlanOnly {
		lines = append(lines, whatCancelled(w)...)
	}
	switch {
	case w.State != ctlapi.WorkflowStateSucceeded && verdict != Refused:
		verdict = Failed
	case w.PlanOnly && verdict == Done:
		lines = append(lines, "nothing to do")
	}
	return verdict, lines
}

// mayChange tells whether a preview found that a step would change something, or
// could not rule it out.
func mayChange(s ctlapi.Step) bool {
	return len(s.MayChange) > 0 || s.Change != nil && changesSomething(s.Change.Counts)
}

func changesSomething(counts *ctlapi.PlanCounts) bool { return counts != nil && !counts.NoChange }

// whatCancelled says what a workflow had applied when it was cancelled, what it was
// applying, and what it had not begun.
func whatCancelled(w ctlapi.Workflow) []string {
	var applied, partly, left []string
	for _, s := range w.Steps {
		switch {
		case s.Resource == nil && (s.Change == nil || s.Change.Kind != ctlapi.ChangeKindScript):
		case Applied(s):
			applied = append(applied, s.Name)
		case beganToApply(s):
			partly = append(partly, s.Name)
		case s.State == ctlapi.StepStateCancelled:
			left = append(left, s.Name)
		}
	}
	lines := []string{"cancelled; nothing was applied"}
	if len(applied) > 0 {
		lines = []string{"cancelled; applied before that, and still there: " + strings.Join(applied, ", ")}
	}
	if len(partly) > 0 {
		if len(applied) == 0 {
			lines = []string{"cancelled"}
		}
		lines = append(lines, "stopped while being applied, so part of it may be there: "+strings.Join(partly, ", "))
	}
	if len(left) > 0 {
		lines = append(lines, "not done: "+strings.Join(left, ", "))
	}
	return lines
}

// beganToApply tells whether a runner started to apply the change of a step.
func beganToApply(s ctlapi.Step) bool {
	return slices.ContainsFunc(s.Jobs, func(j ctlapi.Job) bool { return j.Operation == "apply" && j.StartedAt != nil })
}

// Applied tells whether the change of a step was applied, whatever became of the
// step.
func Applied(s ctlapi.Step) bool {
	return s.Change != nil && s.Change.State == ctlapi.ChangeStateApplied
}

// Superseded tells whether a step failed because a newer request took its place.
func Superseded(s ctlapi.Step) bool {
	return s.State == ctlapi.StepStateFailed && s.Change != nil && s.Change.State == ctlapi.ChangeStateSuperseded
}

// Denied tells whether a step failed because its change was denied: by a person, or
// by time, when nobody decided.
func Denied(s ctlapi.Step) bool {
	return s.State == ctlapi.StepStateFailed && s.Change != nil && s.Change.State == ctlapi.ChangeStateDenied
}
