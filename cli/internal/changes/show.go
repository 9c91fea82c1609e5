// Package changes shows what a change would do: the objects of its plan, field
// by field, as the person who decides on it reads them.
package changes

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// maxFields bounds how many fields of one object are shown; the whole plan is
// one command away.
const maxFields = 40

// Counts says how much a plan changes: "1 to create, 2 to update".
func Counts(c *ctlapi.PlanCounts) string {
	if c == nil {
		return "not planned yet"
	}
	return counts(c.NoChange, c.Create, c.Update, c.Replace, c.Delete)
}

func counts(noChange bool, create, update, replace, remove int) string {
	if noChange {
		return "no change"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{create, "to create"}, {update, "to update"}, {replace, "to replace"}, {remove, "to delete"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "only outputs change"
	}
	return strings.Join(parts, ", ")
}

// Title names a change: "component api of acme: 1 to create".
func Title(c ctlapi.Change) string {
	what := string(c.Kind)
	if c.Resource != nil {
		what = string(c.Resource.Kind)
		if c.Resource.Name != what {
			what += " " + c.Resource.Name
		}
		if c.Kind == ctlapi.ChangeKindTeardown {
			what = "removal of " + what
		}
	}
	switch c.Kind {
	case ctlapi.ChangeKindAccept:
		what = "scripts of the release"
		if c.Release != nil {
			what = fmt.Sprintf("scripts of release %d", c.Release.Number)
		}
	case ctlapi.ChangeKindForget:
		what = "accepted scripts"
	}
	planned := "not planned yet"
	if p := c.Plan; p != nil {
		planned = counts(p.NoChange, p.Create, p.Update, p.Replace, p.Delete)
	}
	return fmt.Sprintf("%s of %s: %s", what, c.Install.Name, planned)
}

// Lines are the change in full, for a terminal.
func Lines(c ctlapi.Change, color bool) []string {
	lines := []string{fmt.Sprintf("%s  %s", c.ID, Title(c))}
	if c.Plan == nil {
		return lines
	}
	for _, object := range c.Plan.Objects {
		lines = append(lines, "  "+objectLine(object, color))
		for i, field := range object.Fields {
			if i == maxFields {
				lines = append(lines, fmt.Sprintf("      … and %d more fields", len(object.Fields)-maxFields))
				break
			}
			lines = append(lines, "      "+fieldLine(field))
		}
	}
	for _, field := range c.Plan.Outputs {
		lines = append(lines, "  output "+fieldLine(field))
	}
	for _, d := range c.Differs {
		lines = append(lines, fmt.Sprintf("  %s differs: wanted %s, got %s", d.Field, d.Want, d.Got))
	}
	return lines
}

func objectLine(o ctlapi.ObjectChange, color bool) string {
	mark, style := "·", output.Plain
	switch o.Action {
	case "create":
		mark, style = "+", output.Good
	case "update":
		mark, style = "~", output.Notice
	case "replace":
		mark, style = "±", output.Bad
	case "delete":
		mark, style = "-", output.Bad
	case "run":
		mark, style = "▸", output.Notice
	}
	line := output.Paint(color, style, mark+" "+o.Address)
	if o.Reason != "" {
		line += "  (" + o.Reason + ")"
	}
	return line
}

func fieldLine(f ctlapi.FieldChange) string {
	switch {
	case f.Before == "" && f.After == "":
		return f.Path
	case f.Before == "":
		return fmt.Sprintf("%s: %s", f.Path, short(f.After))
	case f.After == "":
		return fmt.Sprintf("%s: %s → nothing", f.Path, short(f.Before))
	}
	return fmt.Sprintf("%s: %s → %s", f.Path, short(f.Before), short(f.After))
}

// short cuts a value where it would fill the screen.
func short(text string) string {
	const most = 200
	text = strings.ReplaceAll(text, "\n", "⏎")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
