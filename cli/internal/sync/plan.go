package sync

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/diffview"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// WouldChange tells whether a sync would change anything: there is a config to
// make, or a build that came to nothing to be tried again.
func WouldChange(r *ctlapi.SyncResult) bool {
	for _, item := range r.Items {
		if item.Action == ctlapi.SyncItemActionBuild {
			return true
		}
	}
	return r.Created
}

// PlanText is the plan for a person: what differs from the newest config,
// what is built, what that means for the installs, and what would be left over.
func PlanText(r *ctlapi.SyncResult, prune, color bool) string {
	var text strings.Builder
	text.WriteString(visible.Row(planTitle(r)) + "\n")
	for _, o := range r.Changes {
		text.WriteString(diffview.Object(o, color))
	}
	if r.Created && r.Against != nil && len(r.Changes) == 0 {
		text.WriteString("no visible differences\n")
	}
	section(&text, "built", builtLines(r))
	section(&text, "only deployed again", namesOf(r, func(i ctlapi.SyncItem) bool {
		return i.Action == ctlapi.SyncItemActionReuse && i.DeployChanged
	}))
	section(&text, "unchanged", namesOf(r, func(i ctlapi.SyncItem) bool {
		return i.Action == ctlapi.SyncItemActionReuse && !i.DeployChanged
	}))
	section(&text, "installs, once you deploy this", installLines(r, color))
	section(&text, "no longer in the folder", orphanLines(r, prune))
	if !WouldChange(r) {
		text.WriteString("\nnothing to do\n")
	}
	return text.String()
}

func planTitle(r *ctlapi.SyncResult) string {
	switch {
	case r.Against == nil:
		return r.App.Name + ": its first config"
	case r.Created:
		return fmt.Sprintf("%s: a new config after %d", r.App.Name, r.Against.Number)
	case r.Config != nil && r.Config.Number != r.Against.Number:
		return fmt.Sprintf("%s: config %d already has this content, and config %d remains the newest", r.App.Name, r.Config.Number, r.Against.Number)
	}
	return fmt.Sprintf("%s: config %d already has this content", r.App.Name, r.Against.Number)
}

func section(text *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	text.WriteString("\n" + title + ":\n")
	for _, line := range lines {
		text.WriteString("  " + visible.Row(line) + "\n")
	}
}

func builtLines(r *ctlapi.SyncResult) []string {
	var lines []string
	for _, item := range r.Items {
		if item.Action == ctlapi.SyncItemActionBuild {
			lines = append(lines, fmt.Sprintf("%s (%s): %s", item.Component, item.Type, item.Reason))
		}
	}
	return lines
}

func namesOf(r *ctlapi.SyncResult, which func(ctlapi.SyncItem) bool) []string {
	var names []string
	for _, item := range r.Items {
		if which(item) {
			names = append(names, item.Component)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{strings.Join(names, ", ")}
}

func installLines(r *ctlapi.SyncResult, color bool) []string {
	var lines []string
	for _, i := range r.Installs {
		line := i.Install.Name
		if i.Release != nil {
			line += fmt.Sprintf(" (release %d)", i.Release.Number)
		}
		if len(i.Components) == 0 && len(i.Inputs) == 0 {
			line += ": nothing changes"
		}
		lines = append(lines, line)
		for _, in := range i.Inputs {
			lines = append(lines, "  "+output.Paint(color, output.Notice, "~ input "+in.Name)+": "+defaultLine(in))
		}
		for _, component := range i.Components {
			mark, style := "~", output.Notice
			switch component.Effect {
			case ctlapi.SyncInstallComponentEffectNew:
				mark, style = "+", output.Good
			case ctlapi.SyncInstallComponentEffectMayChange:
				mark, style = "?", output.Notice
			case ctlapi.SyncInstallComponentEffectOrphaned:
				mark, style = "!", output.Bad
			}
			lines = append(lines, "  "+output.Paint(color, style, mark+" "+component.Component)+": "+component.Reason)
		}
	}
	if more := api.Value(r.InstallsTotal) - len(r.Installs); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return lines
}

// defaultLine shows the old and the new default of an input that an install does
// not set.
func defaultLine(in ctlapi.SyncInstallInput) string {
	if in.Sensitive {
		return "its default changes (sensitive)"
	}
	shown := func(value *string) string {
		if value == nil {
			return "none"
		}
		return strconv.Quote(*value)
	}
	return "default " + shown(in.Before) + " → " + shown(in.After)
}

// orphanLines says what becomes of components that the folder no longer has.
// Absent never means delete.
func orphanLines(r *ctlapi.SyncResult, prune bool) []string {
	fate := "stays in the app; sync refuses to run without --prune, which removes it"
	switch {
	case !r.Created:
		fate = "stays in the app"
	case prune:
		fate = "is removed from the app"
	}
	var lines []string
	for _, name := range r.Removed {
		lines = append(lines, name+" "+fate)
	}
	return lines
}
