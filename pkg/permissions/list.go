package permissions

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// List is what an app needs in a cluster.
type List struct {
	// Namespaces are those that components are installed into, and those that the
	// app describes itself. Who applies the list makes them.
	Namespaces []string `json:"namespaces"`
	Rules      []Rule   `json:"rules"`
	// Unknown is what could not be found out: rules may be missing for it.
	Unknown []Note `json:"unknown"`
	// Withheld is what the app would need and was not given, because it would let
	// the account widen its own rights.
	Withheld []Note `json:"withheld"`
}

// Rule allows verbs on the objects of one kind.
type Rule struct {
	// Namespace is where; "" is the whole cluster, or objects outside of namespaces.
	Namespace string `json:"namespace,omitempty"`
	Group     string `json:"group"`    // "" is the core group
	Resource  string `json:"resource"` // "pods", "pods/log"
	// Names limits the rule to these objects; none means all.
	Names []string `json:"names,omitempty"`
	// URLs are paths outside of resources; then Group and Resource are empty.
	URLs  []string `json:"urls,omitempty"`
	Verbs []string `json:"verbs"`
	// Reasons say what it is for, and From where the app asks for it.
	Reasons []string `json:"reasons"`
	From    []string `json:"from"`
}

// Note is something to know about a part of the app.
type Note struct {
	From string `json:"from"` // a component, a file, a line
	Text string `json:"text"`
}

// The verbs with which an account can get more than it was given.
const (
	VerbEscalate    = "escalate"    // write a role with rights that one does not have
	VerbBind        = "bind"        // give somebody a role with such rights
	VerbImpersonate = "impersonate" // act as somebody else
)

// Escalating are these verbs.
func Escalating() []string { return []string{VerbBind, VerbEscalate, VerbImpersonate} }

// Escalates says which of the escalating verbs a rule has, also by wildcards.
func (r Rule) Escalates() []string {
	var found []string
	for _, verb := range Escalating() {
		if slices.Contains(r.Verbs, verb) || slices.Contains(r.Verbs, "*") && r.reaches(verb) {
			found = append(found, verb)
		}
	}
	return found
}

// reaches tells whether the verb means something for the rule's kind.
func (r Rule) reaches(verb string) bool {
	group := func(names ...string) bool { return r.Group == "*" || slices.Contains(names, r.Group) }
	resource := func(names ...string) bool {
		return r.Resource == "*" || slices.Contains(names, strings.Split(r.Resource, "/")[0])
	}
	if verb == VerbImpersonate {
		return group("", "authentication.k8s.io") && resource("users", "groups", "serviceaccounts", "uids", "userextras")
	}
	return group(groupRBAC) && resource("roles", "clusterroles")
}

var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// word is a group, a resource, a verb or a name; nothing that YAML could take
	// for something else once it is quoted.
	word = regexp.MustCompile(`^(\*|[A-Za-z0-9]([-A-Za-z0-9._:/]*[A-Za-z0-9*])?)$`)
)

// Check says everything that is wrong with a list that came from elsewhere.
// allowed are the escalating verbs that are agreed to.
func (l List) Check(allowed []string) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(l.Rules) == 0 {
		wrong("it has no rules")
	}
	for _, name := range l.Namespaces {
		if !namespaceName.MatchString(name) {
			wrong("%q is not the name of a namespace", name)
		}
	}
	for _, r := range l.Rules {
		if r.Namespace != "" && !namespaceName.MatchString(r.Namespace) {
			wrong("%q is not the name of a namespace", r.Namespace)
		}
		words := slices.Concat(r.Verbs, r.Names)
		if len(r.URLs) == 0 {
			words = append(words, r.Resource)
		}
		if r.Group != "" {
			words = append(words, r.Group)
		}
		for _, w := range words {
			if !word.MatchString(w) {
				wrong("a rule says %q", w)
			}
		}
		if len(r.Verbs) == 0 {
			wrong("the rule for %s has no verbs", r.Resource)
		}
		for _, verb := range r.Escalates() {
			if !slices.Contains(allowed, verb) {
				wrong("the rule for %s lets engines %s: with it they can get rights that are not in the list", r.Resource, verb)
			}
		}
	}
	return errors.Join(errs...)
}

// String is the rule in one line.
func (r Rule) String() string {
	what := r.Resource
	if r.Group != "" {
		what += "." + r.Group
	}
	if len(r.URLs) > 0 {
		what = strings.Join(r.URLs, ", ")
	}
	if len(r.Names) > 0 {
		what += " " + strings.Join(r.Names, ", ")
	}
	return what + ": " + strings.Join(r.Verbs, ", ")
}
