package flow

import "github.com/berth-dev/berth/services/internal/model"

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
