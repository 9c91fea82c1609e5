package check

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
)

// Lint is lint.toml. It changes what is said of a folder and never what the
// folder means, so it is no part of an app, and the control plane never sees it.
// Other tools have rules of their own in the same file: what is not understood
// is left alone.
type Lint struct {
	// Checks are executables of the folder. Nothing here runs them.
	Checks []LintCheck

	rules map[string]lintRule // by code, or by the name of a check
}

// LintCheck is an executable that looks at the config.
type LintCheck struct {
	Name    string
	Command string // a file, relative to the app folder
	At      place.Place
}

// lintRule is what a folder says of one code.
type lintRule struct {
	at       place.Place
	pos      place.Position
	off      bool
	severity place.Severity // "" leaves it as it is
}

// customPrefix begins the codes of what checks of a folder say.
const customPrefix = "custom/"

// CustomCode is the code of what a check of lint.toml says.
func CustomCode(check string) place.Code { return place.Code(customPrefix + check) }

// maxLintChecks is how many executables a folder may have run.
const maxLintChecks = 50

// ReadLint reads lint.toml, which need not be there. The diagnostics say what of
// it has no effect.
func ReadLint(fsys fs.FS) (Lint, []place.Diagnostic) {
	in := folder.New(fsys)
	lint := Lint{rules: map[string]lintRule{}}
	if !in.Exists(appconfig.LintFile) {
		return lint, nil
	}
	data, err := in.Read(appconfig.LintFile)
	if err != nil {
		return lint, []place.Diagnostic{{Severity: place.Warning, Code: folder.Code(err), File: appconfig.LintFile, Message: err.Error()}}
	}
	doc, problem := syntax.Parse(appconfig.LintFile, data)
	if problem != nil {
		problem.Severity = place.Warning // the app is none the worse
		return lint, []place.Diagnostic{*problem}
	}
	origin := place.Origin{Positions: map[string]place.Position{}}
	for key, pos := range doc.Positions {
		origin.Positions[place.Place{File: appconfig.LintFile, Key: key}.ID()] = pos
	}
	r := lintReader{Report: place.Report{Origin: &origin}, folder: in, lint: &lint}
	r.checks(doc.Values["custom"])
	r.rules(doc.Values["rules"])
	return lint, place.Sort(r.Diags)
}

type lintReader struct {
	place.Report
	folder *folder.Reader
	lint   *Lint
}

// unknown notes what is not ours.
func (r *lintReader) unknown(at place.Place, format string, args ...any) {
	r.Add(place.Note, place.CodeUnchecked, at, "%s, so it has no effect here", fmt.Sprintf(format, args...))
}

func (r *lintReader) rules(value any) {
	top := place.Place{File: appconfig.LintFile, Key: "rules"}
	table, ok := value.(map[string]any)
	if !ok {
		if value != nil {
			r.unknown(top, "rules is no table")
		}
		return
	}
	names := knownCodes()
	for _, c := range r.lint.Checks {
		names = append(names, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		at := top.Below(name)
		if !slices.Contains(names, name) {
			if near := place.Nearest(name, names); near != "" {
				r.Diags = append(r.Diags, r.At(place.Warning, place.CodeReference, at, "there is no rule %q", name).WithRemedy("did you mean %q?", near))
			} else {
				r.unknown(at, "there is no rule %q", name)
			}
			continue
		}
		body, ok := table[name].(map[string]any)
		if !ok {
			r.unknown(at, "rule %q is no table", name)
			continue
		}
		r.lint.rules[name] = r.rule(at, body)
	}
}

func (r *lintReader) rule(at place.Place, body map[string]any) lintRule {
	rule := lintRule{at: at, pos: r.Origin.Position(at)}
	for _, key := range slices.Sorted(maps.Keys(body)) {
		switch value := body[key]; key {
		case "enabled":
			enabled, ok := value.(bool)
			if !ok {
				r.unknown(at.Below(key), "enabled is neither true nor false")
				continue
			}
			rule.off = !enabled
		case "severity":
			text, _ := value.(string)
			if s := place.Severity(text); s == place.Error || s == place.Warning || s == place.Note {
				rule.severity = s
				continue
			}
			r.unknown(at.Below(key), `severity is none of "error", "warning" and "note"`)
		default:
			d := r.At(place.Note, place.CodeUnchecked, at.Below(key), "a rule has no %q, so it has no effect here", key)
			r.Diags = append(r.Diags, r.Suggest(d, key, []string{"enabled", "severity"}))
		}
	}
	return rule
}

func (r *lintReader) checks(value any) {
	top := place.Place{File: appconfig.LintFile, Key: "custom"}
	list, ok := value.([]any)
	if !ok {
		if value != nil {
			r.unknown(top, "custom is no list of tables")
		}
		return
	}
	for i, item := range list {
		at := top.Item(i)
		table, _ := item.(map[string]any)
		name, _ := table["name"].(string)
		command, _ := table["command"].(string)
		switch {
		case name == "" || command == "":
			r.unknown(at, "a check has a name and a command, both texts")
		case !appconfig.IsName(name) || slices.Contains(knownCodes(), name):
			r.unknown(at, "%q cannot be the name of a check", shortened(name))
		case slices.ContainsFunc(r.lint.Checks, func(c LintCheck) bool { return c.Name == name }):
			r.unknown(at, "there are two checks called %q", name)
		case len(r.lint.Checks) == maxLintChecks:
			r.unknown(at, "there are more than %d checks", maxLintChecks)
		default:
			r.check(LintCheck{Name: name, Command: path.Clean(command), At: at})
		}
	}
}

// check takes an executable that is a file of the folder.
func (r *lintReader) check(c LintCheck) {
	at := c.At.Below("command")
	if err := r.folder.Allowed(c.Command); err != nil {
		r.unknown(at, "command %q %v", shortened(c.Command), err)
		return
	}
	info, err := fs.Stat(r.folder.FS, c.Command)
	switch {
	case err != nil || !info.Mode().IsRegular():
		r.unknown(at, "command %q is no file of the app folder", shortened(c.Command))
	case info.Mode().Perm()&0o111 == 0:
		r.unknown(at, "command %q is not executable", shortened(c.Command))
	default:
		r.lint.Checks = append(r.lint.Checks, c)
	}
}

// Apply gives findings the severities that the folder's authors want, and drops
// those that they do not want to see. Errors of the language stay: they say
// that a folder cannot be used. Trying to silence one is reported.
func (l Lint) Apply(found []place.Diagnostic) []place.Diagnostic {
	out := make([]place.Diagnostic, 0, len(found))
	kept := map[string]int{}
	for _, d := range found {
		name, custom := strings.CutPrefix(string(d.Code), customPrefix)
		rule, ok := l.rules[name]
		switch {
		case !ok:
		case d.Severity == place.Error && !custom:
			if rule.off || rule.severity == place.Warning || rule.severity == place.Note {
				kept[name]++
			}
		case rule.off:
			continue
		case rule.severity != "":
			d.Severity = rule.severity
		}
		out = append(out, d)
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		rule := l.rules[name]
		out = append(out, place.Diagnostic{
			Severity: place.Warning, Code: place.CodeValue, File: appconfig.LintFile, Line: rule.pos.Line, Column: rule.pos.Column,
			Message: fmt.Sprintf("rule %q silences warnings and notes, and %d of what it is about are errors, which stay", name, kept[name]),
			Remedy:  "correct them: a folder with errors cannot be used",
		})
	}
	return place.Sort(out)
}

// knownCodes lists the codes of all rules of the language.
func knownCodes() []string {
	return []string{
		string(place.CodeSyntax), string(place.CodeUnknownKey), string(place.CodeUnknownFile), string(place.CodeUnsupported), string(place.CodeMissing), string(place.CodeType),
		string(place.CodeValue), string(place.CodeExclusive), string(place.CodeDuplicate), string(place.CodeReference), string(place.CodeCycle), string(place.CodeTemplate),
		string(place.CodeUntraced), string(place.CodeFile), string(place.CodeLimit), string(place.CodeOutsideOfApp), string(place.CodeContents), string(place.CodePolicy), string(place.CodeUndeclared),
		string(place.CodeUnset), string(place.CodeFetch), string(place.CodeUnchecked),
	}
}
