package version

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
)

// OldestBehind is how many minor versions a runner may be behind its control plane.
const OldestBehind = 2

// Newer reports whether version a comes after b. One that cannot be read, that of a
// build between releases, comes before every release and after nothing.
func Newer(a, b string) bool {
	x, err := semver.NewVersion(a)
	if err != nil {
		return false
	}
	y, err := semver.NewVersion(b)
	return err != nil || x.GreaterThan(y)
}

// Released reports whether a version is one that releases have: 1.4.0.
func Released(v string) bool {
	_, err := semver.StrictNewVersion(v)
	return err == nil
}

// Skew says why a runner of one version cannot work for a control plane of another:
// it may be of the same minor version, or of one of the OldestBehind before. Builds
// between releases, whose versions cannot be read, fit all.
func Skew(controlPlane, runner string) error {
	c, err := semver.NewVersion(controlPlane)
	if err != nil {
		return nil //nolint:nilerr // not a release
	}
	r, err := semver.NewVersion(runner)
	if err != nil {
		return nil //nolint:nilerr // not a release
	}
	switch {
	case r.Major() != c.Major():
		return fmt.Errorf("runner %s and control plane %s are of different major versions", runner, controlPlane)
	case r.Minor() > c.Minor():
		return fmt.Errorf("runner %s is newer than control plane %s: update the control plane first", runner, controlPlane)
	case r.Minor()+OldestBehind < c.Minor():
		return fmt.Errorf("runner %s is more than %d minor versions behind control plane %s", runner, OldestBehind, controlPlane)
	}
	return nil
}
