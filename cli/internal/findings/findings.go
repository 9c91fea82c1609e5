// Package findings shows people what is wrong with an app folder.
package findings

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Show prints what was found, file by file, and how much it is.
func Show(w io.Writer, found []place.Diagnostic, color bool) error {
	files, last := 0, ""
	for _, d := range found {
		if d.File != last {
			if files++; files > 1 {
				fmt.Fprintln(w)
			}
			last = d.File
		}
		output.Printf(w, "%s %s %s %s\n", pointsTo(d), output.Paint(color, severityStyles[d.Severity], string(d.Severity)), plain(d.Message),
			output.Paint(color, output.Dim, "["+string(d.Code)+"]"))
		if d.Remedy != "" {
			output.Printf(w, "  try: %s\n", plain(d.Remedy))
		}
	}
	if files > 0 {
		fmt.Fprintln(w)
	}
	_, err := output.Println(w, counts(found, files))
	return err
}

var severityStyles = map[place.Severity]output.Style{place.Error: output.Bad, place.Warning: output.Notice, place.Note: output.Dim}

// pointsTo is where a diagnostic points to, as editors and terminals know it.
func pointsTo(d place.Diagnostic) string {
	if d.Line == 0 {
		return output.Printable(d.File) + ":"
	}
	return fmt.Sprintf("%s:%d:%d:", output.Printable(d.File), d.Line, d.Column)
}

// plain keeps a message to one line without what could steer a terminal: it may
// quote anything from a file.
func plain(text string) string {
	return output.Printable(strings.Join(strings.Split(strings.TrimSpace(text), "\n"), " "))
}

// counts is the last line: "2 errors, 1 warning in 2 files".
func counts(found []place.Diagnostic, files int) string {
	var parts []string
	for _, severity := range []place.Severity{place.Error, place.Warning, place.Note} {
		if n := Count(found, severity); n > 0 {
			parts = append(parts, output.Plural(n, string(severity)))
		}
	}
	if len(parts) == 0 {
		return "no errors, no warnings"
	}
	return strings.Join(parts, ", ") + " in " + output.Plural(files, "file")
}

// Count counts the diagnostics of one severity.
func Count(found []place.Diagnostic, severity place.Severity) int {
	n := 0
	for _, d := range found {
		if d.Severity == severity {
			n++
		}
	}
	return n
}

// View is how programs get diagnostics.
func View() output.View[place.Diagnostic] {
	return output.View[place.Diagnostic]{Name: func(d place.Diagnostic) string { return strings.TrimSuffix(pointsTo(d), ":") }}
}

// Errors counts errors: "2 errors".
func Errors(diagnostics []place.Diagnostic) string {
	n := 0
	for _, d := range diagnostics {
		if d.Severity == place.Error {
			n++
		}
	}
	if n == 1 {
		return "1 error"
	}
	return fmt.Sprintf("%d errors", n)
}

// Said tells whether one of some diagnostics says the same of the same place.
func Said(others []place.Diagnostic, d place.Diagnostic) bool {
	return slices.ContainsFunc(others, func(o place.Diagnostic) bool {
		return o.Code == d.Code && o.File == d.File && o.Line == d.Line
	})
}
