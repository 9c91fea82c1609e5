package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Unsupported tells what of a config this version cannot deploy (errors), reads
// without effect (warnings) or does not show (notes), by the table of [NotYets].
// It says nothing about what is right or wrong: a folder without a word from
// loading and [Validate] may still not be deployable today. Errors are told at
// each of their places, anything else once. What files below installs/ say is not
// part of a sync: see [UnsupportedOfInstalls].
func Unsupported(app *appconfig.App) []place.Diagnostic {
	r := place.Report{Origin: &app.Origin}
	inSync := func(u use) bool { return !strings.HasPrefix(u.at.File, "installs/") }
	tellAll(&r, app, notYets, inSync)
	sealedInstalls(&r, app)
	return place.Sort(r.Diags)
}

// UnsupportedOfInstalls tells what the installs of a folder say without effect,
// wherever they stand, by the same table.
func UnsupportedOfInstalls(app *appconfig.App) []place.Diagnostic {
	r := place.Report{Origin: &app.Origin}
	ofInstalls := slices.DeleteFunc(NotYets(), func(row NotYet) bool {
		return !strings.HasPrefix(row.Keys[0], "install") || strings.HasPrefix(row.Keys[0], "installer")
	})
	tellAll(&r, app, ofInstalls, func(use) bool { return true })
	return place.Sort(r.Diags)
}

// tellAll adds what rows say of an app's uses that count. Rows with the same words,
// such as those of a key that sandbox, components and actions have, are reported as one.
func tellAll(r *place.Report, app *appconfig.App, rows []NotYet, counts func(use) bool) {
	type words struct {
		what, waitsFor string
		severity       place.Severity
	}
	first := map[words]int{}
	uses := make([][]use, len(rows))
	for i, row := range rows {
		said := words{row.What, row.WaitsFor, row.Severity}
		if _, there := first[said]; !there {
			first[said] = i
		}
		for _, u := range row.find(app) {
			if counts(u) {
				uses[first[said]] = append(uses[first[said]], u)
			}
		}
	}
	for i, row := range rows {
		row.tell(r, uses[i])
	}
}

// tell adds what a row says of the places that it was found at.
func (n NotYet) tell(r *place.Report, uses []use) {
	severity := cmp.Or(n.Severity, place.Warning)
	others := map[string]int{} // what is told, to the places that it is not told of
	at := map[string]place.Place{}
	for _, u := range uses {
		message := n.What
		if u.value != "" {
			message = fmt.Sprintf(n.What, u.value)
		}
		message += " not supported yet by this version"
		if severity == place.Error {
			r.Diags = append(r.Diags, r.At(severity, place.CodeUnsupported, u.at, "%s; it waits for %s", message, n.WaitsFor))
			continue
		}
		if _, told := at[message]; told {
			others[message]++
			continue
		}
		at[message] = u.at
	}
	for _, message := range slices.Sorted(maps.Keys(at)) {
		said := message + " and has no effect"
		switch others[message] {
		case 0:
		case 1:
			said += ", here and in one more place"
		default:
			said += fmt.Sprintf(", here and in %d more places", others[message])
		}
		r.Diags = append(r.Diags, r.At(severity, place.CodeUnsupported, at[message], "%s; it waits for %s", said, n.WaitsFor))
	}
}

// Obstacle is a use of the format for which this version refuses to deploy an app.
type Obstacle struct {
	At  place.Place
	Why string // `component type "job" is not supported yet`
}

// Obstacles lists the rows of [NotYets] that refuse an app, at each of their places:
// what `berth rehearse` shows as not planned instead of refusing.
func Obstacles(app *appconfig.App) (all []Obstacle) {
	for _, row := range notYets {
		if row.Severity != place.Error {
			continue
		}
		for _, u := range row.find(app) {
			what := row.What
			if u.value != "" {
				what = fmt.Sprintf(what, u.value)
			}
			all = append(all, Obstacle{At: u.at, Why: what + " not supported yet"})
		}
	}
	return all
}

// Waiting lists what this version reads without effect or refuses, at each of its
// places: a key, or a whole file (Key is "").
func Waiting(app *appconfig.App) (all []Obstacle) {
	for _, row := range notYets {
		if row.Severity == place.Note {
			continue
		}
		for _, u := range row.find(app) {
			what := row.What
			if u.value != "" {
				what = fmt.Sprintf(what, u.value)
			}
			all = append(all, Obstacle{At: u.at, Why: what + " not supported yet by this version; it waits for " + row.WaitsFor})
		}
	}
	return all
}

// sealedInstalls refuses values that nobody but the install may know in a file
// that is uploaded with the app. Files below installs/ are not.
func sealedInstalls(r *place.Report, app *appconfig.App) {
	sensitive := map[string]bool{}
	for _, in := range app.Inputs {
		sensitive[in.Name] = in.Sensitive
	}
	for _, in := range app.Installs {
		if strings.HasPrefix(in.At.File, "installs/") {
			continue
		}
		for _, values := range in.Inputs {
			for _, name := range slices.Sorted(maps.Keys(values)) {
				if sensitive[name] {
					r.Add(place.Error, place.CodeUnsupported, in.At.Below("inputs"), "install %q sets the sensitive input %q in a file that is uploaded: move the install into installs/, or set it with `berth installs inputs`", in.Name, name)
				}
			}
		}
	}
}

// Deployable is Unsupported for those who ask whether a folder can be deployed: it
// also says what no check of it has looked at.
func Deployable(app *appconfig.App) []place.Diagnostic {
	found := Unsupported(app)
	for i := range app.Policies {
		if p := &app.Policies[i]; p.Contents.Contents != "" {
			return place.Sort(append(found, app.Origin.Diagnose(place.Note, place.CodeUnchecked, place.Place{File: p.At.File},
				"the rules of policies are not run here; only that they are YAML of Kyverno or a Rego package is checked")))
		}
	}
	return found
}
