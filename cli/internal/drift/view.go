// Package drift shows people how what is live differs from what was deployed.
package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/visible"
)

// said is how people call a class.
var said = map[string]string{
	"real": "nobody explains it", "human_edit": "edited by hand", "unknown": "cannot be told", "controller": "owned by a controller", "defaulted": "a default",
}

// componentView shows the components of an install.
func componentView(now time.Time) output.View[ctlapi.ComponentDrift] {
	type component = ctlapi.ComponentDrift
	return output.View[component]{
		Name: func(c component) string { return c.Name },
		None: "nothing of this install can drift: runners look at the sandbox, and at charts, manifests and Terraform modules that are live",
		Columns: []output.Column[component]{
			{Head: "COMPONENT", Shrinks: true, Cell: func(c component) string { return c.Name }},
			{Head: "DRIFT", Cell: func(c component) string { return strings.ReplaceAll(string(c.State), "_", " ") }},
			{Head: "WHAT", Shrinks: true, Cell: what},
			{Head: "FOR", Cell: func(c component) string {
				if c.Episode == nil {
					return ""
				}
				return follow.Duration(now.Sub(c.Episode.OpenedAt))
			}},
			{Head: "LOOKED", Cell: func(c component) string {
				if c.LookedAt == nil {
					return "never"
				}
				return follow.Duration(now.Sub(*c.LookedAt)) + " ago"
			}},
			{Head: "SCHEDULE", Wide: true, Cell: func(c component) string { return api.Value(c.Schedule) }},
			{Head: "CHANGE", Wide: true, Cell: func(c component) string { return api.Value(c.ChangeID) }},
			{Head: "EPISODE", Wide: true, Cell: func(c component) string { return api.Value(c.Episode).ID }},
		},
	}
}

// what counts the objects that drifted, or says why nobody knows.
func what(c ctlapi.ComponentDrift) string {
	if why := api.Value(c.Why); why != "" && (c.State == ctlapi.ComponentDriftStateFailed || c.State == ctlapi.ComponentDriftStateNotLookedAt) {
		return why
	}
	if c.Found == nil {
		return ""
	}
	drifted := 0
	for _, o := range c.Found.Objects {
		if o.Drifted {
			drifted++
		}
	}
	var parts []string
	if drifted > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s", drifted, count(c.Found.Looked, "object")))
	} else {
		parts = append(parts, count(c.Found.Looked, "object"))
	}
	for _, class := range []string{"human_edit", "real", "unknown"} {
		if n := c.Found.Counts[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, said[class]))
		}
	}
	if n := c.Found.Counts[jobspec.DriftAccepted]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d accepted", n))
	}
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// maxLines is how many differences of a component people are shown.
const maxLines = 40

// differences are what was found, object by object. A component that was not asked for by
// name says nothing as long as it has not drifted.
func differences(components []ctlapi.ComponentDrift, now time.Time, named bool) (lines []string) {
	for _, c := range components {
		calm := c.State == ctlapi.ComponentDriftStateNone || c.State == ctlapi.ComponentDriftStateNotLookedAt
		if c.Found == nil || calm && !named || len(c.Found.Objects) == 0 {
			continue
		}
		lines = append(lines, "", visible.Line(c.Name)+", of change "+visible.Line(c.Found.Change)+":")
		more, shown := c.Found.More, 0
		for _, object := range c.Found.Objects {
			fits := min(maxLines-shown, len(object.Differences))
			more += len(object.Differences) - fits
			if fits == 0 {
				continue
			}
			shown += fits
			lines = append(lines, "  "+visible.Line(object.Address))
			for _, d := range object.Differences[:fits] {
				lines = append(lines, "    "+difference(d, now))
			}
		}
		if more > 0 {
			lines = append(lines, fmt.Sprintf("  and %s more", count(more, "difference")))
		}
	}
	return lines
}

const maxValue = 60

func difference(d ctlapi.DriftDifference, now time.Time) string {
	text := d.Path + " is " + short(d.Have) + ", deployed was " + short(d.Want)
	switch {
	case d.Path == ".":
		text = d.Why
	case d.Have == "":
		text = d.Path + " is missing, deployed was " + short(d.Want)
	case d.Want == "":
		text = d.Path + " is " + short(d.Have) + ", which was not deployed"
	}
	who := cmp.Or(said[d.Class], d.Class)
	if d.Manager != "" {
		who += " by " + d.Manager
	}
	if d.Time != nil {
		who += ", " + follow.Duration(now.Sub(*d.Time)) + " ago"
	}
	text += " (" + who + ")"
	if a := d.Accepted; a != nil {
		text += fmt.Sprintf("; accepted by %s until %s: %s", a.By, a.Until.UTC().Format("2006-01-02 15:04 UTC"), a.Reason)
	}
	if l := d.Lapsed; l != nil {
		text += fmt.Sprintf("; %s accepted it until %s", l.By, l.Until.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return visible.Line(text)
}

func short(text string) string {
	if runes := []rune(text); len(runes) > maxValue {
		return string(runes[:maxValue]) + "…"
	}
	return text
}

// nextSteps say what to do about the components that drifted.
func nextSteps(install string, components []ctlapi.ComponentDrift) []string {
	i := slices.IndexFunc(components, func(c ctlapi.ComponentDrift) bool { return c.State == ctlapi.ComponentDriftStateDrifted })
	if i < 0 {
		return nil
	}
	return []string{"", "to put back what was deployed, after a look at the plan: " + visible.Line(fmt.Sprintf("berth installs drift %s %s --reconcile --watch", install, components[i].Name))}
}

// episodeView shows drift in all installs.
func episodeView(now time.Time) output.View[ctlapi.DriftOfInstall] {
	type episode = ctlapi.DriftOfInstall
	return output.View[episode]{
		Name: func(e episode) string { return e.ID },
		None: "nothing that you may see has drifted",
		Columns: []output.Column[episode]{
			{Head: "INSTALL", Shrinks: true, Cell: func(e episode) string { return e.Install.Name }},
			{Head: "COMPONENT", Shrinks: true, Cell: func(e episode) string { return e.Component.Name }},
			{Head: "WHAT", Cell: func(e episode) string { return said[string(e.Class)] }},
			{Head: "SINCE", Cell: func(e episode) string { return follow.Duration(now.Sub(e.OpenedAt)) }},
			{Head: "SEEN", Cell: func(e episode) string { return follow.Duration(now.Sub(e.SeenAt)) + " ago" }},
			{Head: "ENDED", Cell: func(e episode) string {
				if e.ClosedAt == nil {
					return ""
				}
				return strings.ReplaceAll(string(api.Value(e.ClosedBy)), "_", " ") + ", " + follow.Duration(now.Sub(*e.ClosedAt)) + " ago"
			}},
			{Head: "APP", Wide: true, Cell: func(e episode) string { return e.App.Name }},
			{Head: "CUSTOMER", Wide: true, Cell: func(e episode) string { return e.Customer.Name }},
			{Head: "ID", Wide: true, Cell: func(e episode) string { return e.ID }},
		},
	}
}
