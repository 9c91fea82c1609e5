package flow

import (
	"slices"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// goesOn tells whether a pending step may begin although another one has failed. When
// a failure stops its workflow, what runs finishes and nothing new begins. Otherwise
// everything begins that does not need what failed, also over others; but nothing
// without an accepted release, and no check or gate: these look at the whole install.
func (s State) goesOn(step Step) bool {
	if s.OnFailure != model.FailureContinues || step.Kind == StepCheck || step.Kind == StepGate {
		return false
	}
	if accept := s.accept(); accept != nil && (accept.State == model.StepFailed || accept.State == model.StepCancelled) {
		return false
	}
	return !s.lost(step.Needs, nil)
}

// lost tells whether one of the named steps, or what they need, has failed or is not
// there. seen guards against a cycle, which Plan never makes.
func (s State) lost(needs, seen []string) bool {
	return slices.ContainsFunc(needs, func(need string) bool {
		i := slices.IndexFunc(s.Steps, func(x Step) bool { return x.Name == need })
		if i < 0 || s.Steps[i].State == model.StepFailed || s.Steps[i].State == model.StepCancelled {
			return true
		}
		return !slices.Contains(seen, need) && s.lost(s.Steps[i].Needs, append(seen, need))
	})
}

// anyGoesOn tells whether after a failure something is still to begin.
func (s State) anyGoesOn() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.State == model.StepPending && s.goesOn(step) })
}

// Retried names the steps that begin again when a person retries one, or all that can
// be for "". A cancelled workflow is taken up where it stopped: every step that was
// cancelled begins again with the one that is named.
//
// Errors: ErrConflict when the step, or none of them, has failed or was cancelled.
func Retried(steps []Step, name string) (names []string, err error) {
	for _, s := range steps {
		if s.Name == name && s.State != model.StepFailed && s.State != model.StepCancelled {
			return nil, fault.Newf(fault.ErrConflict, "step %q is %s; only a failed or cancelled step can be retried", s.Name, s.State)
		}
	}
	for _, s := range steps {
		if s.State == model.StepCancelled || s.State == model.StepFailed && (name == "" || s.Name == name) {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return nil, fault.Newf(fault.ErrConflict, "no step of this workflow has failed or was cancelled")
	}
	return names, nil
}
