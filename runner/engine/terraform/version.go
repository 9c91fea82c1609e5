package terraform

import (
	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/runner/engine/job"
)

// checkVersion compares the version that a component asks for, an exact one or
// a range, with the one that the runner has. "" takes any.
func checkVersion(want, have, subject string) error {
	if want == "" {
		return nil
	}
	allowed, err := semver.NewConstraint(want)
	if err != nil {
		return job.Refusef(`write an exact version such as "1.11.4", or a range such as ">= 1.9, < 2"`,
			"%s: terraform_version %q is neither a version nor a range", subject, want)
	}
	v, err := semver.NewVersion(have)
	if err != nil {
		return err
	}
	if allowed.Check(v) {
		return nil
	}
	return job.Refusef("give the runner that version (BERTH_TERRAFORM), or change terraform_version",
		"%s needs terraform %s, the runner has %s", subject, want, have).
		Differing("terraform_version", want, have)
}
