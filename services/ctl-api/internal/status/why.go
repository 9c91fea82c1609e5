package status

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Settled is an install in which nothing is at work, and what is known about it.
type Settled struct {
	Install ctldb.Install
	Status  Status
	// Release and Newest are numbers, 0 for none.
	Release, Newest int
	// Missing are the parts of the newest release that are not live, by name.
	Missing []string
	// LastFailed: its last workflow failed, which says more than its standing.
	LastFailed bool
	Runner     *ctldb.Runner
}

// Why explains what keeps an install from being where it should be while no
// workflow is at work in it.
func Why(s Settled) []why.Reason {
	name := s.Install.Name
	about := func(code why.Code, reason, unblock string) why.Reason {
		return why.Reason{
			What: "install " + name, ID: s.Install.ID, Code: code, Reason: reason, Who: why.Operator, On: "operator", WokenBy: why.WakeRequest, Unblock: unblock,
		}
	}
	var out []why.Reason
	switch s.Status.Standing {
	case NotProvisioned:
		out = append(out, about(why.CodeNotProvisioned, "it was never provisioned", "berth installs provision "+name))
	case Deprovisioned:
		out = append(out, about(why.CodeDeprovisioned, "it is deprovisioned: nothing of it is left", "berth installs provision "+name))
	case ProvisionFailed:
		if !s.LastFailed {
			out = append(out, about(why.CodeNotLive, "its provision did not succeed; not live: "+strings.Join(s.Missing, ", "), "berth installs provision "+name))
		}
	case DeprovisionFailed:
		if !s.LastFailed {
			out = append(out, about(why.CodeNotRemoved, "its removal did not succeed", "berth installs deprovision "+name))
		}
	case Provisioning, Live, Deprovisioning, Forgotten:
	}
	for _, p := range s.Status.Pending {
		deploy := "berth deploy " + name
		switch p {
		case Release:
			out = append(out, about(why.CodeBehind, fmt.Sprintf("it is on release %d, and %d is the newest", s.Release, s.Newest), deploy))
		case Inputs:
			out = append(out, about(why.CodeBehind, "inputs were set and are not deployed", deploy))
		case Toggles:
			out = append(out, about(why.CodeBehind, "components were switched on or off, and that is not deployed", deploy))
		}
	}
	if s.Install.PausedAt != nil {
		reason := fmt.Sprintf("%s paused it: %s", optional.Value(s.Install.PausedBy), optional.Value(s.Install.PauseReason))
		out = append(out, about(why.CodePaused, reason, "berth installs resume "+name))
	}
	if s.Runner != nil && s.Runner.State == model.RunnerActive {
		if text := why.SwitchText(*s.Runner); text != "" {
			out = append(out, why.Reason{
				What: "runner of " + name, ID: s.Runner.ID, Code: why.CodeSwitch, Reason: text, Who: why.Customer, On: "the customer", WokenBy: why.WakeCustomer, Unblock: "ask the customer to set the runner's switch to run",
			})
		}
	}
	return out
}
