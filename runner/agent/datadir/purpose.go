package datadir

import "github.com/berth-dev/berth/pkg/seal"

// PlanPurpose is what the pinned bytes of a change are sealed for.
func PlanPurpose(r Runner, change string) seal.Purpose {
	return seal.Purpose{OrgID: r.OrgID, InstallID: r.InstallID, Kind: seal.KindPlan, Resource: change}
}

// StatePurpose is what a Terraform state is sealed for. Serial and lineage are
// part of it: an older state does not pass for the present one.
func StatePurpose(r Runner, resource, lineage string, serial int64) seal.Purpose {
	return seal.Purpose{OrgID: r.OrgID, InstallID: r.InstallID, Kind: seal.KindState, Resource: resource, Lineage: lineage, Serial: serial}
}

// SaltPurpose is what the salt of an install is sealed for.
func SaltPurpose(r Runner) seal.Purpose {
	return seal.Purpose{OrgID: r.OrgID, InstallID: r.InstallID, Kind: seal.KindSalt}
}
