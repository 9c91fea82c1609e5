package drift

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// How much of a report leaves the machine.
const (
	maxObjects  = 200
	maxOfObject = 20 // of an object
	maxListed   = jobspec.MaxDrift - 8<<10
)

// Result is the report as the control plane gets it. What it has no room for is counted.
// Of an object with nothing but defaults and what controllers own nothing is listed.
func (r Report) Result(change string) jobspec.Drift {
	out := jobspec.Drift{Change: change, Looked: len(r.Findings), Digest: r.Digest(), Counts: map[string]int{}}
	worst := len(classes)
	var listed []Finding
	for _, f := range r.Findings {
		shown := false
		for _, d := range f.Differences {
			if d.Accepted != nil {
				out.Counts[jobspec.DriftAccepted]++
			} else {
				out.Counts[string(d.Class)]++
			}
			shown = shown || d.Alerts() || d.Accepted != nil
			if !d.Drifts() {
				continue
			}
			out.AtOnce = out.AtOnce || d.Path == WholeObject && (d.What == Gone || d.What == Extra || d.What == Recreated)
			if rank := slices.Index(classes, d.Class); rank < worst {
				worst, out.Class = rank, string(d.Class)
			}
		}
		if shown {
			listed = append(listed, f)
		} else {
			out.More += len(f.Differences)
		}
	}
	slices.SortStableFunc(listed, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.Address(), b.Address()))
	})
	room := maxListed
	for _, f := range listed {
		object := f.result()
		raw, err := json.Marshal(object)
		if room -= len(raw) + 1; err != nil || room < 0 || len(out.Objects) == maxObjects {
			out.More += len(f.Differences)
			continue
		}
		out.More += len(f.Differences) - len(object.Differences)
		out.Objects = append(out.Objects, object)
	}
	return out
}

// rank is how bad the worst of what alerts is; objects in which nothing does come last.
func (f Finding) rank() int {
	if worst := f.Worst(); worst != "" {
		return slices.Index(classes, worst)
	}
	return len(classes)
}

// result is the finding with the worst of its differences.
func (f Finding) result() jobspec.DriftObject {
	rank := func(d Difference) int {
		if d.Alerts() {
			return slices.Index(classes, d.Class)
		}
		if d.Accepted != nil {
			return len(classes)
		}
		return len(classes) + 1
	}
	sorted := slices.Clone(f.Differences)
	slices.SortStableFunc(sorted, func(a, b Difference) int { return cmp.Compare(rank(a), rank(b)) })
	object := jobspec.DriftObject{Address: f.Address(), Differences: []jobspec.DriftDifference{}}
	for _, d := range sorted[:min(len(sorted), maxOfObject)] {
		object.Drifted = object.Drifted || d.Drifts()
		object.Differences = append(object.Differences, jobspec.DriftDifference{
			Path: d.Path, What: string(d.What), Want: d.Want, Have: d.Have, Class: string(d.Class),
			Manager: d.Manager, Time: d.Time, Why: d.Why,
			Accepted: (*jobspec.DriftRule)(d.Accepted), Lapsed: (*jobspec.DriftRule)(d.Lapsed),
		})
	}
	return object
}
