package flow

import (
	"slices"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// Skippable tells whether a workflow can go on without a step of a kind. What
// everything relies on cannot be left out, nor can a removal: what comes after it
// relies on it being gone.
func Skippable(kind StepKind) bool {
	switch kind {
	case StepDeploy, StepAction, StepCheck, StepGate:
		return true
	}
	return false
}

// SkippedWith names the steps that are skipped when a person skips one: itself, and
// what needs it, also over others, as far as that has not begun. It is false when one
// of them cannot be left out.
func SkippedWith(steps []Step, name string) (names []string, ok bool) {
	names = []string{name}
	for again := true; again; {
		again = false
		for _, s := range steps {
			needs := slices.ContainsFunc(s.Needs, func(n string) bool { return slices.Contains(names, n) })
			if needs && s.State == model.StepPending && !slices.Contains(names, s.Name) && s.Kind != StepCheck && s.Kind != StepGate {
				names, again = append(names, s.Name), true
			}
		}
	}
	for _, s := range steps {
		if slices.Contains(names, s.Name) && !Skippable(s.Kind) {
			return nil, false
		}
	}
	return names, true
}

// SkippedByDenial names the other steps that are skipped when somebody denies the
// change of one and wants its workflow to go on.
//
// Errors: ErrConflict with code not_skippable when the workflow makes no sense without
// the step, or without what needs it.
func SkippedByDenial(steps []Step, denied Step, then model.DeniedThen) (others []string, err error) {
	switch {
	case then == "":
		return nil, nil
	case then == model.ThenSkip && Skippable(denied.Kind) && denied.Name != sandboxName:
		return nil, nil
	case then == model.ThenSkipDependents:
		if names, ok := SkippedWith(steps, denied.Name); ok {
			return names[1:], nil
		}
	}
	return nil, fault.With(fault.Newf(fault.ErrConflict, "step %q cannot be skipped: what comes after it relies on it", denied.Name),
		fault.Code("not_skippable"), fault.Remedy("deny it without skipping"))
}
