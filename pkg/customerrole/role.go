// Package customerrole has the words in which a runner and the control plane speak
// of the roles of an app that only the customer switches on: its break-glass roles
// and its own ones (type "custom"). Both find the role that an action names by the
// same rule, so that they agree on what is off.
//
// What switches a role is the business of runner/agent/roles. No identity stands
// behind one yet: what a role may do in a cloud has no effect.
package customerrole

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kind says what a role is for.
type Kind string

// The kinds that the customer switches.
const (
	BreakGlass Kind = "break_glass"
	Custom     Kind = "custom"
)

// Role is a role that a release declares.
type Role struct {
	// Name is what the role is called in one install: Written, rendered as far as
	// the install's state allows. Known: all of it was.
	Name  string `json:"name"`
	Known bool   `json:"known"`
	// Written is the name as the app writes it, in its canonical form. Only the app
	// decides it, so it is what identifies a role.
	Written     string `json:"written"`
	Kind        Kind   `json:"kind"`
	DisplayName string `json:"display_name,omitempty"`
	Description string `json:"description,omitempty"`
}

// Switch is one time that a role was switched.
type Switch struct {
	ID   string `json:"id"`   // "rsw_…"
	Role string `json:"role"` // Role.Written
	Name string `json:"name"` // Role.Name at that time
	On   bool   `json:"on"`
	// At is the runner's clock. Until is when a role that is on switches off by
	// itself; zero for never.
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"`
	// By is the user of the customer's machine, or ByRunner.
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// ByRunner is who switches a role off whose time is over, or that is no longer there.
const ByRunner = "berth-runner"

// Find finds the role that something names, by its text in the app: as it is
// declared, or as a declared role is called in this install. ok is false when none is
// meant, or more than one.
func Find(list []Role, written string) (role Role, ok bool) {
	written = Canonical(written)
	if i := slices.IndexFunc(list, func(r Role) bool { return r.Written == written }); i >= 0 {
		return list[i], true
	}
	for _, r := range list {
		if r.Known && r.Name == written {
			if ok {
				return Role{}, false
			}
			role, ok = r, true
		}
	}
	return role, ok
}

var (
	action   = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)
	samePath = strings.NewReplacer(".berth.install.id", ".nuon.id", ".nuon.install.id", ".nuon.id", ".berth.", ".nuon.") // the longest first
)

// Canonical writes names of roles that mean the same in the same way.
func Canonical(name string) string {
	return samePath.Replace(action.ReplaceAllString(name, "{{ $1 }}"))
}

// Plain is what of a name is the same in every install.
func Plain(name string) string {
	return strings.Trim(action.ReplaceAllString(name, ""), "-_. ")
}

// maxName is how long a rendered name may be.
const maxName = 200

// Named renders a name as far as it can be: what cannot be stays as it is written, and
// then known is false.
func Named(written string, render func(template string) (string, error)) (name string, known bool) {
	fits := func(text string, err error) bool {
		return err == nil && text != "" && len(text) <= maxName && !strings.ContainsAny(text, "\n\r\x00")
	}
	if text, err := render(written); fits(text, err) {
		return text, true
	}
	name = action.ReplaceAllStringFunc(written, func(part string) string {
		if text, err := render(part); fits(text, err) {
			return text
		}
		return part
	})
	return name, false
}
