package apps

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/services/internal/model"
)

// Actions of an ItemDecision.
const (
	ActionBuild = "build" // a new build
	ActionReuse = "reuse" // an earlier build, or one that is under way
)

// build is what decide knows of an earlier build.
type build struct {
	ID          string
	BuildDigest string
	State       model.BuildState
	Source      Source
	Repository  string // where what it made is, once it has succeeded
	Artifact    string // its digest
}

// previous is what the newest config says of a component.
type previous struct {
	RevisionID   string
	BuildDigest  string
	DeployDigest string
	Source       Source
}

// history is what decide knows of a component that was there before.
type history struct {
	ID         string // of its row
	Kind       model.ResourceKind
	Name       string
	Tombstoned bool
	Builds     []build   // the newest of each build digest
	Previous   *previous // nil when the newest config does not have it
}

func (h history) key() string { return string(h.Kind) + "/" + h.Name }

// ItemDecision says what becomes of one item.
type ItemDecision struct {
	item
	ComponentID   string // of its row; empty when that is made, or made again
	RevisionID    string // of that in the newest config, when it is the same
	Action        string
	Reason        string
	BuildID       string           // ActionReuse: the build that stands for it
	BuildState    model.BuildState // ActionReuse: its state
	Repository    string           // ActionReuse: where what it made is; empty until then
	Artifact      string           // ActionReuse: its digest
	DeployChanged bool
}

// Decision is what a sync does.
type Decision struct {
	Items   []ItemDecision
	Removed []string // components that the folder no longer has
}

// released says whether every item stands on a build that has succeeded.
func (d Decision) released() bool {
	return !slices.ContainsFunc(d.Items, func(i ItemDecision) bool { return i.Action != ActionReuse || i.BuildState != model.BuildSucceeded })
}

// decide says, from rows alone, what must be built for a config, what can be
// reused, and what is gone. When it is the newest config (again), only builds that
// came to nothing are tried again. It does no I/O.
func decide(items []item, before []history, again bool) Decision {
	known := map[string]history{}
	for _, h := range before {
		known[h.key()] = h
	}
	var d Decision
	here := map[string]bool{}
	for _, it := range items {
		here[it.key()] = true
		d.Items = append(d.Items, decideItem(it, known[it.key()], again))
	}
	for _, h := range before {
		if !here[h.key()] && !h.Tombstoned && h.Kind != model.KindScripts { // scripts are nothing that installs have
			d.Removed = append(d.Removed, h.Name)
		}
	}
	slices.Sort(d.Removed)
	return d
}

func decideItem(it item, h history, again bool) ItemDecision {
	d := ItemDecision{item: it, Action: ActionBuild}
	d.DeployChanged = h.Previous == nil || h.Previous.DeployDigest != it.DeployDigest || h.Previous.BuildDigest != it.BuildDigest
	if !d.DeployChanged {
		d.RevisionID = h.Previous.RevisionID
	}
	if !h.Tombstoned {
		d.ComponentID = h.ID
	}
	i := slices.IndexFunc(h.Builds, func(b build) bool { return b.BuildDigest == it.BuildDigest })
	switch {
	case i < 0 && len(h.Builds) == 0:
		d.Reason = "new"
	case i < 0 && h.Previous != nil && h.Previous.Source != it.Source:
		d.Reason = "source changed"
	case i < 0:
		d.Reason = "build settings changed"
	case h.Builds[i].State == model.BuildFailed || h.Builds[i].State == model.BuildCancelled:
		d.Reason = "the build before " + map[model.BuildState]string{model.BuildFailed: "failed", model.BuildCancelled: "was cancelled"}[h.Builds[i].State]
	case !again && it.Source.moves() && h.Builds[i].State == model.BuildSucceeded:
		d.Reason = "the git ref may have moved"
	default:
		d.Action, d.BuildID, d.BuildState = ActionReuse, h.Builds[i].ID, h.Builds[i].State
		d.Repository, d.Artifact = h.Builds[i].Repository, h.Builds[i].Artifact
		d.Reason = "unchanged"
		if d.BuildState != model.BuildSucceeded {
			d.Reason = "is being built"
		}
	}
	return d
}

func compareText(a, b string) int { return cmp.Compare(a, b) }
