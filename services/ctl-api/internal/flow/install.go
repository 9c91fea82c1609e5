package flow

import "github.com/berth-dev/berth/services/internal/model"

// Ended is a workflow that has ended, with what it left of its install.
type Ended struct {
	Kind  Kind
	State model.WorkflowState
	// Was is what the install was when the workflow ended.
	Was model.InstallState
	// Whole: the sandbox and every component that is on are live.
	Whole bool
	// Busy: another workflow still provisions or removes the install.
	Busy bool
}

// InstallAfter says what an install is once a workflow has ended. A provision
// that failed, or a removal that was given up, leaves the install as it was during
// the workflow; it is live again as soon as a later workflow finds or makes it whole.
func InstallAfter(e Ended) model.InstallState {
	done := e.State == model.WorkflowSucceeded
	switch e.Kind {
	case KindProvision:
		if done {
			return model.InstallLive
		}
	case KindDeprovision, KindDeprovisionSandbox:
		if done {
			return model.InstallDeprovisioned
		}
	case KindDeploy, KindReprovision, KindReprovisionSandbox, KindInputUpdate, KindRollback, KindToggle:
	default:
		return e.Was
	}
	between := e.Was == model.InstallProvisioning || e.Was == model.InstallDeprovisioning
	if between && e.Whole && !e.Busy {
		return model.InstallLive
	}
	return e.Was
}
