// Package diffview shows people what differs between two configs or two
// releases.
package diffview

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Text shows all differences, for a person.
func Text(what string, diff *ctlapi.Diff, color bool) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s %d → %d\n", visible.Row(diff.App.Name), what, diff.From.Number, diff.To.Number)
	if len(diff.Changes) == 0 {
		text.WriteString("no differences\n")
	}
	for _, o := range diff.Changes {
		text.WriteString(Object(o, color))
	}
	return text.String()
}

// Object shows one object that differs, with a line for each field.
func Object(o ctlapi.DiffObject, color bool) string {
	title := strings.TrimSpace(strings.ReplaceAll(string(o.Kind), "_", " ") + " " + o.Name)
	mark, style := "~", output.Notice
	switch o.Change {
	case ctlapi.DiffObjectChangeAdded:
		mark, style = "+", output.Good
	case ctlapi.DiffObjectChangeRemoved:
		mark, style = "-", output.Bad
	}
	line := output.Paint(color, style, mark+" "+title)
	if o.Change == ctlapi.DiffObjectChangeChanged {
		var why []string
		if o.Build {
			why = append(why, "built from something else")
		}
		if o.Deploy {
			why = append(why, "deployed with other settings")
		}
		if len(why) > 0 {
			line += "  (" + strings.Join(why, ", ") + ")"
		}
	}
	line = visible.Row(line) + "\n"
	for _, f := range o.Fields {
		line += "    " + visible.Row(changedField(f)) + "\n"
	}
	return line
}

// changedField shows a field: its old and its new value, or of long texts the
// first line that differs.
func changedField(f ctlapi.FieldChange) string {
	was, now := textOf(f.Before), textOf(f.After)
	switch {
	case f.Before == hiddenValue && f.After == hiddenValue:
		return f.Path + ": changed, and not shown"
	case f.Before == "":
		return f.Path + ": " + brief(f.After, now) + " is new"
	case f.After == "":
		return f.Path + ": " + brief(f.Before, was) + " is gone"
	case !strings.Contains(was, "\n") && !strings.Contains(now, "\n"):
		return f.Path + ": " + brief(f.Before, was) + " → " + brief(f.After, now)
	}
	old, fresh := strings.Split(was, "\n"), strings.Split(now, "\n")
	n := 0
	for n < len(old) && n < len(fresh) && old[n] == fresh[n] {
		n++
	}
	line := func(lines []string) string {
		if n >= len(lines) {
			return "nothing"
		}
		return brief(strconv.Quote(lines[n]), lines[n])
	}
	return fmt.Sprintf("%s: line %d: %s → %s (%d lines → %d)", f.Path, n+1, line(old), line(fresh), lineCount(old), lineCount(fresh))
}

// lineCount does not count what follows the last newline when it is empty.
func lineCount(lines []string) int {
	if lines[len(lines)-1] == "" {
		return len(lines) - 1
	}
	return len(lines)
}

// textOf is the text of a JSON string, and anything else as it is.
func textOf(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) != nil {
		return value
	}
	return text
}

// hiddenValue is what the control plane answers for what nobody may see.
const hiddenValue = "(sensitive)"

// maxShown is how much of a value one line shows; -o json has all of it.
const maxShown = 80

// brief cuts a value where it would fill the screen.
func brief(value, text string) string {
	if strings.HasPrefix(text, "sha256:") {
		return output.ShortDigest(text)
	}
	if strings.Contains(text, "\n") {
		return fmt.Sprintf("a text of %d lines", lineCount(strings.Split(text, "\n")))
	}
	if runes := []rune(value); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return value
}
