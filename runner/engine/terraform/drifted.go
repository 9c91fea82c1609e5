package terraform

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Why a difference is what it is.
const (
	whyGone        = "it was deleted outside of Terraform"
	whyGoneUnasked = "it was deleted outside of Terraform, and the module does not ask for it"
	whyChanged     = "it was changed outside of Terraform"
	whyUnset       = "it was changed outside of Terraform, and the module does not set it"
	whyNotOutside  = "nothing was changed outside of Terraform, and yet a plan with the same inputs would %s it%s: the module, or its provider, gives another value each time"
	whyFollows     = "a plan would %s it%s, which may follow from what was changed outside of Terraform"
)

// drifted explains what a plan of what is live, with the inputs it was made with, says of
// the world. It does no I/O.
//
//	resource_drift   planned action   class
//	yes              yes              real: what the plan takes back
//	yes              no               defaulted: the module does not set it
//	no               yes              unknown
//
// Of a resource that is changed in place, the fields that its plan leaves alone are
// defaulted too. Values that either side marks as sensitive are not in the report.
func drifted(plan *tfjson.Plan) drift.Report {
	outside := map[string]*tfjson.ResourceChange{}
	for _, r := range plan.ResourceDrift {
		outside[driftKey(r)] = r
	}
	var report drift.Report
	for _, r := range plan.ResourceChanges {
		if r.Mode != tfjson.ManagedResourceMode {
			continue
		}
		f := finding(r)
		was := outside[driftKey(r)]
		delete(outside, driftKey(r))
		act := action(r)
		if was != nil {
			f.Differences = changedOutside(was.Change, r.Change, act != "")
		}
		if act != "" && len(f.Differences) == 0 {
			why := whyNotOutside
			if len(plan.ResourceDrift) > 0 {
				why = whyFollows
			}
			f.Differences = []drift.Difference{{Path: drift.WholeObject, What: drift.Changed, Class: drift.Unknown, Why: fmt.Sprintf(why, act, in(r.Change))}}
		}
		report.Findings = append(report.Findings, f)
	}
	for _, key := range slices.Sorted(maps.Keys(outside)) { // the module says nothing of them
		f := finding(outside[key])
		f.Differences = changedOutside(outside[key].Change, nil, false)
		report.Findings = append(report.Findings, f)
	}
	return report
}

func driftKey(r *tfjson.ResourceChange) string { return r.Address + "\x00" + r.DeposedKey }

func finding(r *tfjson.ResourceChange) drift.Finding {
	f := drift.Finding{Object: kube.Ref{Kind: r.Type, Name: r.Name}, Named: r.Address}
	if r.DeposedKey != "" {
		f.Named += " (deposed " + r.DeposedKey + ")"
	}
	return f
}

// changedOutside are the differences of a resource that was changed outside. planned says
// whether the plan does something about it.
func changedOutside(outside, plan *tfjson.Change, planned bool) []drift.Difference {
	if outside.After == nil {
		d := drift.Difference{Path: drift.WholeObject, What: drift.Gone, Class: drift.Real, Why: whyGone}
		if !planned {
			d.Class, d.Why = drift.Defaulted, whyGoneUnasked
		}
		return []drift.Difference{d}
	}
	var back []string // the fields that the plan takes back
	if planned {
		for _, f := range (differ{}).fields(plan) {
			back = append(back, f.Path)
		}
	}
	found := outsideFields(outside)
	takes := func(f jobspec.FieldChange) bool {
		return slices.ContainsFunc(back, func(path string) bool { return within(f.Path, path) || within(path, f.Path) })
	}
	// A plan that takes back none of them, and yet does something, is about all of them.
	all := planned && !slices.ContainsFunc(found, takes)
	var list []drift.Difference
	for _, f := range found {
		d := drift.Difference{Path: drift.Text(f.Path), What: drift.Changed, Want: drift.Text(f.Before), Have: drift.Text(f.After), Class: drift.Defaulted, Why: whyUnset}
		switch {
		case f.Before == "":
			d.What = drift.Added
		case f.After == "":
			d.What = drift.Removed
		}
		if all || planned && takes(f) {
			d.Class, d.Why = drift.Real, whyChanged
		}
		list = append(list, d)
	}
	return list
}

// outsideFields are the fields of a resource whose value differs. The marks of the two
// sides come from the state and from the provider: what one of them hides is hidden.
func outsideFields(c *tfjson.Change) []jobspec.FieldChange {
	hidden := either(c.BeforeSensitive, c.AfterSensitive)
	d := differ{}
	d.compare("", side{c.Before, hidden, nil}, side{c.After, hidden, nil})
	return d.found
}

// either are the marks that one of both has.
func either(a, b any) any {
	if a == true || b == true {
		return true
	}
	x, isMap := a.(map[string]any)
	y, alsoMap := b.(map[string]any)
	if isMap && alsoMap {
		both := maps.Clone(x)
		if both == nil {
			both = map[string]any{}
		}
		for key, mark := range y {
			both[key] = either(x[key], mark)
		}
		return both
	}
	m, isList := a.([]any)
	n, alsoList := b.([]any)
	if isList && alsoList {
		both := make([]any, max(len(m), len(n)))
		for i := range both {
			both[i] = either(at(m, i), at(n, i))
		}
		return both
	}
	switch {
	case !marked(a):
		return b
	case !marked(b) || reflect.DeepEqual(a, b):
		return a
	}
	return true // marks of two shapes: all of it is hidden
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// within tells whether a path is another one or below it.
func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (of == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// in names some of the fields that a plan changes.
func in(c *tfjson.Change) string {
	const most = 5
	var paths []string
	for _, f := range (differ{}).fields(c) {
		paths = append(paths, drift.Text(f.Path))
	}
	switch {
	case len(paths) == 0 || c.Before == nil || c.After == nil:
		return ""
	case len(paths) > most:
		paths = append(paths[:most], "…")
	}
	return " (" + strings.Join(paths, ", ") + ")"
}
