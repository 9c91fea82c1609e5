package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a config can be used in spite of a diagnostic.
type Severity string

const (
	Error   Severity = "error"   // the config is refused
	Warning Severity = "warning" // the config is used; somebody should look
	Note    Severity = "note"    // nothing is wrong; this is what was not looked at
)

// Code names the rule behind a diagnostic. Codes are stable: scripts may match
// on them.
type Code string

const (
	CodeSyntax       Code = "syntax"         // not TOML
	CodeUnknownKey   Code = "unknown_key"    // a key that no version knows
	CodeUnknownFile  Code = "unknown_file"   // a TOML file that belongs to nothing
	CodeUnsupported  Code = "unsupported"    // known, but not by this version
	CodeMissing      Code = "missing"        // a required file or key
	CodeType         Code = "type"           // a value of the wrong type
	CodeValue        Code = "value"          // a value that is not allowed
	CodeExclusive    Code = "exclusive"      // two things that exclude each other
	CodeDuplicate    Code = "duplicate"      // a name used twice
	CodeReference    Code = "reference"      // something named that is not there
	CodeCycle        Code = "cycle"          // components that wait for each other, files that merge each other in
	CodeTemplate     Code = "template"       // a template that does not parse
	CodeUntraced     Code = "untraced"       // a template whose references cannot be known
	CodeFile         Code = "file"           // a file that cannot be read
	CodeFetch        Code = "fetch"          // something that stands elsewhere and is not there
	CodeLimit        Code = "limit"          // too many or too large files
	CodeOutsideOfApp Code = "outside_of_app" // a path that leaves the app folder
	CodeContents     Code = "contents"       // a text that is not what it claims to be
	CodePolicy       Code = "policy"         // a policy that its engine refuses
	CodeUndeclared   Code = "undeclared"     // a variable that a Terraform module does not have
	CodeUnset        Code = "unset"          // a variable that a Terraform module requires and nothing gives
	CodeUnchecked    Code = "unchecked"      // something that nothing here can check
)

// Diagnostic is one problem of an app folder, told so that its author can fix
// it without reading our source.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	File     string   `json:"file,omitempty"`   // relative to the app folder
	Line     int      `json:"line,omitempty"`   // from 1; 0 when the whole file is meant
	Column   int      `json:"column,omitempty"` // from 1, in bytes
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy,omitempty"` // what to do, when we know
}

// String renders one line: file:line:column severity message: remedy.
func (d Diagnostic) String() string { return d.line(string(d.Severity) + " ") }

// Unrated is String without the severity: file:line:column message: remedy.
func (d Diagnostic) Unrated() string { return d.line("") }

func (d Diagnostic) line(severity string) string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(d.File)
		if d.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", d.Line, d.Column)
		}
		b.WriteByte(' ')
	}
	b.WriteString(severity + d.Message)
	if d.Remedy != "" {
		fmt.Fprintf(&b, ": %s", d.Remedy)
	}
	return b.String()
}

// WithRemedy is d with what to do about it.
func (d Diagnostic) WithRemedy(format string, args ...any) Diagnostic {
	d.Remedy = fmt.Sprintf(format, args...)
	return d
}

// HasErrors tells whether any of the diagnostics refuses the config.
func HasErrors(diags []Diagnostic) bool {
	return slices.ContainsFunc(diags, func(d Diagnostic) bool { return d.Severity == Error })
}

// Strict returns the diagnostics with every warning made an error. Notes stay.
func Strict(diags []Diagnostic) []Diagnostic {
	out := slices.Clone(diags)
	for i := range out {
		if out[i].Severity == Warning {
			out[i].Severity = Error
		}
	}
	return out
}

// Sort orders by file, line and column, and drops repetitions.
func Sort(diags []Diagnostic) []Diagnostic {
	out := slices.Clone(diags)
	slices.SortStableFunc(out, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(out)
}
