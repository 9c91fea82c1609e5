package apps

import (
	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/services/internal/fault"
)

// checkCLI refuses a command line that is older than the oldest that this
// control plane takes syncs from. A client that names no version, or one that
// is not of a release, is let in: the folder is checked here all the same.
func checkCLI(version, oldest string) error {
	if version == "" || oldest == "" {
		return nil
	}
	have, err := semver.NewVersion(version)
	if err != nil {
		return nil //nolint:nilerr // no release: built by hand
	}
	least, err := semver.NewVersion(oldest)
	// 1.4.0-3-gabcdef0 is what came three changes after 1.4.0, not before it.
	if core, coreErr := have.SetPrerelease(""); err != nil || coreErr != nil || core.LessThan(least) {
		return fault.With(fault.Newf(fault.ErrInvalid, "this sync comes from `berth` %s, and this control plane needs %s or newer", version, oldest),
			fault.Code("cli_outdated"), fault.Remedy("install `berth` %s or newer and sync again", oldest))
	}
	return nil
}
