package place

import (
	"slices"
	"strings"
)

// Report collects what is wrong in an app folder whose origin is known.
type Report struct {
	Origin  *Origin
	Diags   []Diagnostic
	guesses int // suggestions that were looked for
	unknown unknownKeys
}

// maxGuesses is how many suggestions are looked for in one folder: who has made
// more mistakes is not helped by more, and each is compared with every name.
const maxGuesses = 200

// Suggest adds the name that a misspelt one most likely means.
func (r *Report) Suggest(d Diagnostic, name string, defined []string) Diagnostic {
	if near := r.Near(name, defined); near != "" {
		return d.WithRemedy("did you mean %q?", near)
	}
	return d
}

// Near is the name that a misspelt one most likely means, "" when none is close
// or too many were looked for.
func (r *Report) Near(name string, defined []string) string {
	if r.guesses++; r.guesses > maxGuesses {
		return ""
	}
	return Nearest(name, defined)
}

// At makes a diagnostic that points at a place, without adding it.
func (r *Report) At(severity Severity, code Code, at Place, format string, args ...any) Diagnostic {
	return r.Origin.Diagnose(severity, code, at, format, args...)
}

// Add reports a problem at a place.
func (r *Report) Add(severity Severity, code Code, at Place, format string, args ...any) {
	r.Diags = append(r.Diags, r.At(severity, code, at, format, args...))
}

// OneOf accepts the empty string: a missing required key is reported elsewhere.
func (r *Report) OneOf(at Place, value string, allowed ...string) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	d := r.At(Error, CodeValue, at, "%s is %q; allowed: %s", at.Last(), value, strings.Join(allowed, ", "))
	if near := Nearest(value, allowed); near != "" {
		d = d.WithRemedy("did you mean %q?", near)
	}
	r.Diags = append(r.Diags, d)
}
