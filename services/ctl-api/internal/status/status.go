// Package status says in a few words how an install stands: what its state means
// now, and what a deploy would bring. It decides from rows that others have read.
package status

import "github.com/berth-dev/berth/services/internal/model"

// Standing is what the state of an install means now.
type Standing string

// The standings.
const (
	NotProvisioned    Standing = "not_provisioned"    // nothing was ever asked for
	Provisioning      Standing = "provisioning"       // a workflow provisions it
	ProvisionFailed   Standing = "provision_failed"   // none does any more, and it is not live
	Live              Standing = "live"               // provisioned once
	Rehearsed         Standing = "rehearsed"          // provisioned once, as a rehearsal
	Deprovisioning    Standing = "deprovisioning"     // a workflow removes it
	DeprovisionFailed Standing = "deprovision_failed" // none does any more, and it is not gone
	Deprovisioned     Standing = "deprovisioned"      // nothing of it is left
	Forgotten         Standing = "forgotten"          // its record is deleted
)

// Pending is one thing that a deploy would bring.
type Pending string

// What can be pending.
const (
	Release Pending = "release" // another release is the newest
	Inputs  Pending = "inputs"  // set, and taken by no workflow yet
	Toggles Pending = "toggles" // set, and taken by no workflow yet
)

// Facts are what the status of an install is made from.
type Facts struct {
	State model.InstallState
	// Doing is the kind of the newest unfinished workflow that is to change the
	// install, empty for none.
	Doing string
	// Release and Newest are ids, empty for none.
	Release, Newest string
	// Inputs and Toggles: set, and taken by no workflow yet.
	Inputs, Toggles bool
	// Rehearsal: it is never live.
	Rehearsal bool
}

// Status is how an install stands.
type Status struct {
	Standing Standing
	Pending  []Pending
}

// Of makes the status of an install.
func Of(f Facts) Status {
	s := Status{Standing: standing(f)}
	switch s.Standing {
	case Live, ProvisionFailed:
	default:
		return s // the next provision brings everything, and a removal nothing
	}
	if f.Release != "" && f.Newest != "" && f.Release != f.Newest {
		s.Pending = append(s.Pending, Release)
	}
	if f.Inputs {
		s.Pending = append(s.Pending, Inputs)
	}
	if f.Toggles {
		s.Pending = append(s.Pending, Toggles)
	}
	if f.Rehearsal && s.Standing == Live {
		s.Standing = Rehearsed
	}
	return s
}

func standing(f Facts) Standing {
	const provision, deprovision = "provision", "deprovision"
	switch f.State {
	case model.InstallNew:
		if f.Doing == provision { // it is about to begin
			return Provisioning
		}
		return NotProvisioned
	case model.InstallProvisioning:
		if f.Doing == provision {
			return Provisioning
		}
		return ProvisionFailed
	case model.InstallDeprovisioning:
		if f.Doing == deprovision {
			return Deprovisioning
		}
		return DeprovisionFailed
	case model.InstallDeprovisioned:
		return Deprovisioned
	case model.InstallForgotten:
		return Forgotten
	}
	return Live
}
