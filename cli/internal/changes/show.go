// Package changes shows what a change would do, whole, as the person who decides
// on it reads it: what is done with each object, field by field, each script, and
// what the tool itself says. Nothing is cut, and text that comes from elsewhere
// is visible (package visible) and never looks like a line of ours: it stays on
// its line, or stands behind a bar.
package changes

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/visible"
)

// Options say how a change is shown.
type Options struct {
	Color bool
	// Text adds what the tool itself says of its plan.
	Text bool
}

// Counts says how much a plan changes: "1 to create, 2 to update".
func Counts(kind ctlapi.ChangeKind, c *ctlapi.PlanCounts) string {
	if c == nil {
		return "not planned yet"
	}
	counts := jobspec.Counts{
		NoChange: c.NoChange, Create: c.Create, Update: c.Update, Replace: c.Replace, Delete: c.Delete, Run: c.Run, Outputs: c.Outputs, Other: c.Other,
	}
	if kind == ctlapi.ChangeKindScript {
		return visible.Line(counts.OfScripts())
	}
	return visible.Line(counts.String())
}

// Title names a change: "component api of acme: 1 to create".
func Title(c ctlapi.Change) string {
	what := subject(c)
	if c.Resource != nil && c.Kind == ctlapi.ChangeKindTeardown {
		what = "removal of " + what
	}
	switch c.Kind {
	case ctlapi.ChangeKindAccept:
		what = "scripts of the release"
		if c.Release != nil {
			what = fmt.Sprintf("scripts of release %d", c.Release.Number)
		}
	case ctlapi.ChangeKindRunnerUpdate:
		what = "update of the runner"
	case ctlapi.ChangeKindForget:
		what = "accepted scripts"
	}
	planned := "not planned yet"
	if c.Plan != nil {
		planned = summary(*c.Plan).Title()
	}
	return visible.Line(fmt.Sprintf("%s of %s: %s", what, c.Install.Name, planned))
}

// subject is what a change is about: "component api".
func subject(c ctlapi.Change) string {
	if c.Resource == nil {
		return string(c.Kind)
	}
	what := string(c.Resource.Kind)
	if c.Resource.Name != what {
		what += " " + c.Resource.Name
	}
	return what
}

// summary is the plan as the runner sent it.
func summary(p ctlapi.PlanSummary) jobspec.PlanSummary {
	s := jobspec.PlanSummary{
		NoChange: p.NoChange, Create: p.Create, Update: p.Update, Replace: p.Replace, Delete: p.Delete, Text: p.Text,
		Outputs: fieldsOf(p.Outputs), NotShownBytes: p.NotShownBytes,
	}
	for _, o := range p.Objects {
		s.Objects = append(s.Objects, jobspec.ObjectChange{Address: o.Address, Action: o.Action, Reason: o.Reason, Fields: fieldsOf(o.Fields)})
	}
	return s
}

func fieldsOf(fields []ctlapi.FieldChange) []jobspec.FieldChange {
	var out []jobspec.FieldChange
	for _, f := range fields {
		out = append(out, jobspec.FieldChange{Path: f.Path, Before: f.Before, After: f.After})
	}
	return out
}

// Brief is what has to be in sight when somebody decides: what the change is,
// whether something of it was not shown, and the digest that is approved.
func Brief(c ctlapi.Change) []string {
	return append([]string{fmt.Sprintf("%s  %s", visible.Line(c.ID), Title(c))}, ending(c)...)
}

func ending(c ctlapi.Change) []string {
	var lines []string
	if c.Plan != nil && c.Plan.NotShownBytes > 0 {
		lines = append(lines, fmt.Sprintf("  ! %d bytes of this plan are not shown, but the digest below covers them; the whole plan is in plans/%s.summary "+
			"in the runner's data directory", c.Plan.NotShownBytes, visible.Line(c.ID)))
	}
	lines = append(lines, goingBack(c)...)
	if c.Plan != nil && c.Plan.Footprint != nil {
		for _, line := range c.Plan.Footprint.Lines() {
			lines = append(lines, "  "+line)
		}
	}
	lines = append(lines, rules(c)...)
	if c.EffectDigest != nil {
		lines = append(lines, "  effect "+visible.Line(*c.EffectDigest))
	}
	return lines
}

// classes are what going back costs, in words.
var classes = map[ctlapi.ReversalClass]string{
	ctlapi.ReversalClassReversible: "reversible", ctlapi.ReversalClassUnknown: "unknown", ctlapi.ReversalClassDataLoss: "reversible, and loses data",
	ctlapi.ReversalClassIrreversible: "not reversible",
}

// goingBack says what going back from a plan costs, and why; nothing for a plan that
// does nothing, or that does not say.
func goingBack(c ctlapi.Change) []string {
	if c.Plan == nil || c.Plan.NoChange || c.Plan.Reversal == nil {
		return nil
	}
	word, known := classes[c.Plan.Reversal.Class]
	if !known {
		word = string(c.Plan.Reversal.Class)
	}
	lines := []string{"  going back: " + visible.Line(word)}
	for _, why := range c.Plan.Reversal.Why {
		lines = append(lines, "    "+visible.Line(why))
	}
	return lines
}

// Lines are the change in full.
func Lines(c ctlapi.Change, o Options) []string {
	lines := []string{fmt.Sprintf("%s  %s", visible.Line(c.ID), Title(c))}
	scripts := 0
	if c.Plan != nil {
		for _, object := range c.Plan.Objects {
			lines = append(lines, "  "+objectLine(object, o.Color))
			for _, field := range object.Fields {
				lines = append(lines, fieldLines("      ", field)...)
				if field.Path == jobspec.ScriptField {
					scripts++
				}
			}
		}
		for _, field := range c.Plan.Outputs {
			lines = append(lines, fieldLines("  output ", field)...)
		}
		// Of scripts the text only says again what they are.
		if said := scripts > 0 && scripts == len(c.Plan.Objects); o.Text && c.Plan.Text != "" && !said {
			lines = append(lines, fmt.Sprintf("  the tool's own output (%s):", size(c.Plan.Text)))
			lines = append(lines, block("  │ ", c.Plan.Text)...)
		}
	}
	for _, d := range c.Differs {
		lines = append(lines, fmt.Sprintf("  %s differs: expected %s, got %s", visible.Line(d.Field), visible.Line(d.Want), visible.Line(d.Got)))
	}
	return append(lines, ending(c)...)
}

// Destroyed lists what several changes would destroy together, replaced objects
// among it; nothing when they destroy nothing.
func Destroyed(all []ctlapi.Change) []string {
	var lines []string
	for _, c := range all {
		if c.Plan == nil || c.Resource == nil { // scripts are accepted or not, they are not there
			continue
		}
		for _, o := range c.Plan.Objects {
			if o.Action != "delete" && o.Action != "replace" {
				continue
			}
			line := "  - " + visible.Line(subject(c)+": "+o.Address)
			if o.Action == "replace" {
				line += "  (made again)"
			}
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return append([]string{fmt.Sprintf("would destroy %d:", len(lines))}, lines...)
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
	default:
		mark += " " + visible.Line(o.Action)
	}
	line := output.Paint(color, style, mark+" "+visible.Line(o.Address))
	if o.Reason != "" {
		line += "  (" + visible.Line(o.Reason) + ")"
	}
	return line
}

// fieldLines shows a field on one line, or with its values line by line behind
// bars.
func fieldLines(indent string, f ctlapi.FieldChange) []string {
	path := indent + visible.Line(f.Path)
	under := strings.Repeat(" ", len(indent)) + "  "
	switch {
	case f.Before == "" && f.After == "":
		return []string{path}
	case !manyLines(f.Before) && !manyLines(f.After):
		return []string{path + ": " + values(f)}
	case f.Before == "":
		return append([]string{fmt.Sprintf("%s (%s):", path, size(f.After))}, block(under+"│ ", f.After)...)
	}
	lines := []string{fmt.Sprintf("%s, before (%s):", path, size(f.Before))}
	lines = append(lines, block(under+"- │ ", f.Before)...)
	if f.After == "" {
		return append(lines, path+", after: nothing")
	}
	lines = append(lines, fmt.Sprintf("%s, after (%s):", path, size(f.After)))
	return append(lines, block(under+"+ │ ", f.After)...)
}

func values(f ctlapi.FieldChange) string {
	before, after := visible.Line(f.Before), visible.Line(f.After)
	switch {
	case f.Before == "":
		return after
	case f.After == "":
		return before + " → nothing"
	}
	return before + " → " + after
}

// longLine is from where a value with line feeds written as \n is easier to read
// line by line.
const longLine = 100

const escapedLineFeed = `\n`

func manyLines(value string) bool {
	return strings.Contains(value, "\n") || len(value) > longLine && strings.Contains(value, escapedLineFeed)
}

// block puts each line of a text behind a bar. A long line is broken after each
// \n that is written out in it, as JSON does; what continues such a line has a
// dotted bar.
func block(bar, text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		parts := []string{line}
		if manyLines(line) {
			parts = strings.SplitAfter(line, escapedLineFeed)
			if last := len(parts) - 1; parts[last] == `"` { // the end of the value needs no line of its own
				parts = append(parts[:last-1], parts[last-1]+parts[last])
			}
		}
		for i, part := range parts {
			bar := bar
			if i > 0 {
				bar = strings.Replace(bar, "│", "┆", 1)
			}
			lines = append(lines, bar+visible.Text(part))
		}
	}
	return lines
}

func size(text string) string {
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if lines == 1 {
		return fmt.Sprintf("1 line, %d bytes", len(text))
	}
	return fmt.Sprintf("%d lines, %d bytes", lines, len(text))
}
