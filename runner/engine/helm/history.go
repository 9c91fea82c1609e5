package helm

import (
	"cmp"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/release"
)

// standing is where a release stands: what an apply starts from, also when the
// last one was killed.
type standing struct {
	// Base is the revision that was deployed last, whose objects the next one
	// follows. nil: nothing is deployed, so the next one is an install.
	Base *release.Release
	// After are newer than Base, oldest first: attempts that failed or were left
	// unfinished. What they wrote may be there.
	After []*release.Release
	// Last is the highest revision of all, nil when there is no history.
	Last *release.Release
}

// replaced is what Helm writes into a revision that an install took the name of.
const replaced = "superseded by new release"

// stand finds out where a release stands, from its history, oldest first.
//
// Mostly one revision is deployed. There is none before the first success,
// after an uninstall, and when an upgrade was killed in the moment between
// marking the old revision superseded and its own deployed. Going down from the
// top tells the last case from the others: attempts at an upgrade lie over what
// was deployed, an install has nothing below it that counts.
func stand(history []*release.Release) standing {
	var s standing
	if len(history) == 0 {
		return s
	}
	s.Last = history[len(history)-1]
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Info.Status == release.StatusDeployed {
			s.Base, s.After = history[i], history[i+1:]
			return s
		}
	}
	for i := len(history) - 1; i >= 0; i-- {
		r := history[i]
		if r.Info.Status == release.StatusSuperseded && r.Info.Description != replaced {
			s.Base, s.After = r, history[i+1:]
			return s
		}
		if beginsAnew(r) {
			break
		}
	}
	// Nothing below an install counts, but whatever bears the name of the
	// release may still be there.
	s.After = afterUninstall(history)
	return s
}

// beginsAnew tells whether what lies below a revision is of no concern to it.
func beginsAnew(r *release.Release) bool {
	switch r.Info.Status {
	case release.StatusPendingInstall, release.StatusUninstalled, release.StatusUninstalling:
		return true
	}
	return r.Info.Description == replaced
}

func afterUninstall(history []*release.Release) []*release.Release {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Info.Status == release.StatusUninstalled {
			return history[i+1:]
		}
	}
	return history
}

// unfinished tells whether an action on the release began and did not end.
func unfinished(r *release.Release) bool {
	return r != nil && (r.Info.Status.IsPending() || r.Info.Status == release.StatusUninstalling)
}

// live is the revision that people approve a change of; 0 for none. Attempts do
// not count: after a killed one the plan is the same again.
func (s standing) live() int {
	if s.Base == nil {
		return 0
	}
	return s.Base.Version
}

// last is the highest revision, 0 for none.
func (s standing) last() int {
	if s.Last == nil {
		return 0
	}
	return s.Last.Version
}

// lastStatus is the one of the highest revision, "" for none.
func (s standing) lastStatus() release.Status {
	if s.Last == nil {
		return ""
	}
	return s.Last.Info.Status
}

// describe says what is out of the ordinary, "" for nothing.
func (s standing) describe() string {
	switch {
	case s.Last == nil || s.lastStatus() == release.StatusDeployed:
		return ""
	case unfinished(s.Last) && s.Base != nil:
		return fmt.Sprintf("revision %d was left %s; the apply marks it failed and goes on from revision %d, which was deployed last",
			s.Last.Version, s.lastStatus(), s.Base.Version)
	case unfinished(s.Last):
		return fmt.Sprintf("revision %d was left %s and nothing was ever deployed; the apply marks it failed and installs again",
			s.Last.Version, s.lastStatus())
	case s.lastStatus() == release.StatusFailed && s.Base != nil:
		return fmt.Sprintf("revision %d failed; the apply goes on from revision %d, which was deployed last", s.Last.Version, s.Base.Version)
	case s.lastStatus() == release.StatusFailed:
		return fmt.Sprintf("revision %d failed and nothing was ever deployed; the apply installs again", s.Last.Version)
	}
	return fmt.Sprintf("revision %d is %s", s.Last.Version, s.lastStatus())
}

func sortRevisions(list []*release.Release) {
	slices.SortFunc(list, func(a, b *release.Release) int { return cmp.Compare(a.Version, b.Version) })
}
