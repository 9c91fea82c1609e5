package terraform

import (
	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/runner/engine/job"
)

// versionVariable is the version of the executable, where the agent knows it.
const versionVariable = "BERTH_TERRAFORM_VERSION"

// matchVariable is set to matchMinor where the operator lets another patch stand in for
// an exact version.
const (
	matchVariable = "BERTH_TERRAFORM_MATCH"
	matchMinor    = "minor"
)

// standsIn tells whether another patch of the wanted version will do, and is one.
func standsIn(want, have, match string) bool {
	w, err := semver.StrictNewVersion(want)
	if err != nil || match != matchMinor || want == have {
		return false
	}
	h, err := semver.StrictNewVersion(have)
	return err == nil && h.Major() == w.Major() && h.Minor() == w.Minor()
}

// checkVersion compares the version that a component asks for, an exact one or
// a range, with the one that the runner has. "" takes any. needs is how the error
// begins, such as "component api needs opentofu".
func checkVersion(want, have, needs string) error {
	if want == "" {
		return nil
	}
	allowed, err := semver.NewConstraint(want)
	if err != nil {
		return job.Refusef(`write an exact version such as "1.11.4", or a range such as ">= 1.9, < 2"`,
			"%s terraform_version %q, which is neither a version nor a range", needs, want)
	}
	v, err := semver.NewVersion(have)
	if err != nil {
		return err
	}
	if allowed.Check(v) {
		return nil
	}
	return job.Refusef("give the runner that version (BERTH_TERRAFORM), or change terraform_version",
		"%s %s, the runner has %s", needs, want, have).
		Differing("terraform_version", want, have)
}
