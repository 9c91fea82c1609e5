package flow

import "github.com/berth-dev/berth/pkg/jobspec"

// Past is a time at which an install, or one of its resources, was brought to a
// release, or something of that was applied and did not come out.
type Past struct {
	WorkflowID    string
	ReleaseID     string
	Number        int32 // of the release
	InputsVersion int32
	Good          bool
	// Rollback: it was one itself.
	Rollback bool
}

// Back says to which state of before a rollback goes, and from which. past is the
// newest first. A rollback that did not come out counts for nothing: what it wanted
// to get away from is still there.
//
// With a release, it is the newest good state with it. Without, it is the newest good
// state of an earlier release than the newest one; after a failure also of the same
// release with earlier inputs, which were then what failed. It is false when there is
// none.
func Back(past []Past, releaseID string) (from, to Past, found bool) {
	for _, p := range past {
		if p.Rollback && !p.Good {
			continue
		}
		if from.ReleaseID == "" {
			from = p
			if releaseID == "" || !p.Good {
				continue
			}
		}
		switch {
		case !p.Good:
		case releaseID != "":
			if p.ReleaseID == releaseID {
				return from, p, true
			}
		case p.Number < from.Number, !from.Good && p.Number == from.Number && p.InputsVersion < from.InputsVersion:
			return from, p, true
		}
	}
	return from, Past{}, false
}

// Tried is a resource whose deploy a workflow has ended with.
type Tried struct {
	Name string // "sandbox" for the sandbox
	// Failed: it was applied, and did not come out.
	Failed bool
	// Asked: the app asks for a rollback when it fails.
	Asked bool
	Class jobspec.ReversalClass // of the plan that was applied
}

// ByItself names what goes back without being asked, after a workflow of a kind has
// failed: what failed, for which the app asks for that, when going back costs nothing.
// answered tells that the same failure had its rollback: there is no second one, and
// none for a rollback.
func ByItself(kind Kind, answered bool, tried []Tried) []string {
	var names []string
	switch kind {
	case KindProvision, KindReprovision, KindReprovisionSandbox, KindDeploy, KindInputUpdate:
	default:
		return nil
	}
	for _, t := range tried {
		if t.Failed && t.Asked && t.Class == jobspec.Reversible && !answered {
			names = append(names, t.Name)
		}
	}
	return names
}
