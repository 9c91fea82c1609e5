package flow

import (
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// Skippable says whether a step may be skipped by denying its change: without its
// scripts a release does nothing, and what is removed in an order is not skipped
// while what it stands on goes.
func Skippable(of Kind, change model.ChangeKind, then model.DeniedThen) error {
	removes := of == KindDeprovision || of == KindDeprovisionSandbox || of == KindTeardownAll
	switch {
	case then == "":
		return nil
	case change == model.ChangeAccept || change == model.ChangeForget:
		return fault.With(fault.Newf(fault.ErrInvalid, "the scripts of a release cannot be skipped: every step after them needs the runner's acceptance"),
			fault.Remedy("deny without skipping, or approve"))
	case then == model.ThenSkip && change == model.ChangeTeardown && removes:
		return fault.With(fault.Newf(fault.ErrInvalid, "a removal cannot be skipped alone in a workflow that removes what it stands on"),
			fault.Remedy("deny it, or skip it with all that needs it"))
	}
	return nil
}

// ended is how the failed steps ended when nothing went wrong in any of them: a
// change was denied, at best by a person. What gave way to a newer request does not
// count.
func (s State) ended() (how model.Ended, by string) {
	for _, step := range s.Steps {
		if step.State != model.StepFailed {
			continue
		}
		stepHow, stepBy := step.Change.ended()
		switch {
		case step.Change != nil && step.Change.State == model.ChangeSuperseded:
		case stepHow == "":
			return "", ""
		case how == "" || how == model.EndedExpired && stepHow == model.EndedDenied:
			how, by = stepHow, stepBy
		}
	}
	return how, by
}

// ended is how a step ends whose change was denied.
func (c *Change) ended() (how model.Ended, by string) {
	switch {
	case c == nil || c.State != model.ChangeDenied:
		return "", ""
	case c.DeniedBy == "":
		return model.EndedExpired, ""
	}
	return model.EndedDenied, c.DeniedBy
}
