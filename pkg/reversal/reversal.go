// Package reversal says, from a plan alone, what going back costs once it is applied:
// nothing, what was written since, or that it cannot be done. It knows types of
// resources by a table; what the table does not know is unknown where the plan takes
// it away. It does no I/O, and knows nothing of what a resource holds.
package reversal

import (
	"slices"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// mostWhy is how many reasons are given; people read no more.
const mostWhy = 8

// finding is what one thing of a plan costs.
type finding struct {
	class jobspec.ReversalClass
	why   string
}

// rank orders the classes, the worst last.
var rank = map[jobspec.ReversalClass]int{
	jobspec.Reversible: 1, jobspec.ReverseUnknown: 2, jobspec.ReverseLoses: 3, jobspec.Irreversible: 4,
}

// Worse is the worse of two classes. What is none of them counts as unknown, the
// empty one for nothing.
func Worse(a, b jobspec.ReversalClass) jobspec.ReversalClass {
	for _, c := range []*jobspec.ReversalClass{&a, &b} {
		if *c != "" && rank[*c] == 0 {
			*c = jobspec.ReverseUnknown
		}
	}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// Of is the class of a plan of a kind. said is what the app says of the resource, or
// the plugin that made the plan; it counts where it is worse.
func Of(kind jobspec.Kind, plan jobspec.PlanSummary, said jobspec.ReversalClass) jobspec.Reversal {
	if plan.NoChange {
		return jobspec.Reversal{Class: jobspec.Reversible}
	}
	var found []finding
	for _, o := range plan.Objects {
		if f := ofObject(kind, o); f.class != "" && f.class != jobspec.Reversible {
			found = append(found, f)
		}
	}
	if kind == jobspec.KindPlugin {
		found = append(found, finding{jobspec.ReverseUnknown, "a plugin's plan does not tell"})
	}
	if plan.Rehearsed != nil {
		found = append(found, finding{jobspec.ReverseUnknown, "this is a rehearsal: a stand-in was planned"})
	}
	if said != "" && rank[Worse(said, "")] > rank[worst(found)] {
		found = append(found, finding{Worse(said, ""), "the app says so"})
	}
	slices.SortStableFunc(found, func(a, b finding) int { return rank[b.class] - rank[a.class] })
	r := jobspec.Reversal{Class: worst(found), Backwards: kind == jobspec.KindHelmChart || kind == jobspec.KindKubernetesManifest}
	for _, f := range found {
		if len(r.Why) < mostWhy {
			r.Why = append(r.Why, f.why)
		}
	}
	return r
}

func worst(found []finding) jobspec.ReversalClass {
	class := jobspec.Reversible
	for _, f := range found {
		class = Worse(class, f.class)
	}
	return class
}

// ofObject is what one object of a plan costs.
func ofObject(kind jobspec.Kind, o jobspec.ObjectChange) finding {
	switch kind {
	case jobspec.KindTerraformModule:
		return ofTerraform(o)
	case jobspec.KindPulumi:
		return ofPulumi(o)
	case jobspec.KindHelmChart, jobspec.KindKubernetesManifest:
		return ofKubernetes(o)
	}
	return finding{}
}

// opposite is what undoes an action; one that is not in it undoes itself.
var opposite = map[string]string{"create": "delete", "delete": "create", "install": "uninstall", "uninstall": "install"}

// Reverse is the plan's objects backwards: what going back does, as far as the plan
// was shown. What nothing undoes, as a hook that ran, is left out.
func Reverse(objects []jobspec.ObjectChange) []jobspec.ObjectChange {
	var back []jobspec.ObjectChange
	for _, o := range slices.Backward(objects) {
		if o.Action == "run" || o.Action == "keep" || o.Action == "read" {
			continue
		}
		r := jobspec.ObjectChange{Address: o.Address, Action: o.Action}
		if other, ok := opposite[o.Action]; ok {
			r.Action = other
		}
		for _, f := range o.Fields {
			r.Fields = append(r.Fields, jobspec.FieldChange{Path: f.Path, Before: f.After, After: f.Before})
		}
		back = append(back, r)
	}
	return back
}
