package permissions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// App is what is known of an app.
type App struct {
	Components []Component
	// Copies are the Secrets that secrets are copied to, nil for none.
	Copies *Copies
	// Grants are rules that somebody adds by hand, for scripts above all, in each
	// namespace of the app.
	Grants []Rule
	// Kinds are those that neither Kubernetes nor the app defines.
	Kinds []Kind
	// Allowed are the escalating verbs that are agreed to.
	Allowed []string
}

// Kind is how objects of a kind are served, as somebody says.
type Kind struct {
	Group, Kind, Resource string
	Namespaced            bool
}

// Component is what one component applies.
type Component struct {
	Name string
	// Namespace is where the component is installed.
	Namespace string
	// Storage is the kind of object in which Helm keeps the release, "configmaps" or
	// "secrets"; "" for a component without Helm.
	Storage string
	Objects []RenderedObject
	// Exec are the namespaces in which probes of the component run commands in pods.
	Exec []string
}

// Copies are the Secrets that the customer's secrets are copied to.
type Copies struct {
	// Inventory is the namespace in which the list of them is kept.
	Inventory string
	Secrets   []Copy
}

// Copy is one Secret.
type Copy struct{ Namespace, Name string }

// Verbs of an engine: what it plans with, writes with and takes away with.
var (
	verbsOfObjects = []string{"create", "delete", "get", "patch"}
	verbsOfRecords = []string{"create", "delete", "get", "list", "update"}
)

// Compute gives the rules that an engine needs to install, change, watch and
// remove the app. It does no I/O.
func Compute(app App) List {
	c := computing{app: app, kinds: maps.Clone(builtIn), rules: map[string]*Rule{}}
	c.list = List{Namespaces: []string{}, Rules: []Rule{}, Unknown: []Note{}, Withheld: []Note{}}
	for _, k := range app.Kinds {
		c.kinds[groupKind{k.Group, k.Kind}] = kind{resource: k.Resource, namespaced: k.Namespaced}
	}
	for _, component := range app.Components {
		for _, o := range component.Objects {
			c.define(o)
		}
	}
	for _, component := range app.Components {
		c.component(component)
	}
	if app.Copies != nil {
		c.copies(*app.Copies)
	}
	slices.Sort(c.list.Namespaces)
	c.list.Namespaces = slices.Compact(c.list.Namespaces)
	for _, rule := range app.Grants {
		for _, rule.Namespace = range c.list.Namespaces {
			c.hold(rule)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.rules)) {
		c.list.Rules = append(c.list.Rules, *c.rules[key])
	}
	return c.list
}

type computing struct {
	app   App
	kinds map[groupKind]kind
	rules map[string]*Rule
	list  List
}

// define takes the kind that an object of the app defines.
func (c *computing) define(o RenderedObject) {
	if text(o.Body, "kind") != "CustomResourceDefinition" {
		return
	}
	names := child(o.Body, "spec", "names")
	c.kinds[groupKind{text(child(o.Body, "spec"), "group"), text(names, "kind")}] = kind{
		resource: text(names, "plural"), namespaced: text(child(o.Body, "spec"), "scope") != "Cluster",
	}
}

func (c *computing) component(component Component) {
	at := component.Namespace
	if !namespaceName.MatchString(at) {
		c.unknown(component.Name, fmt.Sprintf("its namespace is only known in an install (%s)", at))
		at = ""
	} else {
		c.list.Namespaces = append(c.list.Namespaces, at)
		own := Rule{Namespace: at, From: []string{component.Name}}
		c.add(own, "", "namespaces", []string{at}, []string{"get"}, "look whether the namespace is there")
		c.add(own, "", "configmaps", nil, verbsOfRecords, "the record of the component's objects, with its fence")
		c.add(own, "", "pods", nil, []string{"get", "list"}, "readiness and health: say what pods wait for")
		c.add(own, "", "events", nil, []string{"list"}, "say why an object waits")
		c.add(own, "", "pods/log", nil, []string{"get"}, "show why a hook or a pod failed")
		if component.Storage != "" {
			c.add(own, "", component.Storage, nil, verbsOfRecords, "Helm keeps its releases there")
		}
	}
	for _, namespace := range component.Exec {
		if !namespaceName.MatchString(namespace) {
			c.unknown(component.Name, fmt.Sprintf("the namespace of a probe is only known in an install (%s)", namespace))
			continue
		}
		c.list.Namespaces = append(c.list.Namespaces, namespace)
		probe := Rule{Namespace: namespace, From: []string{component.Name}}
		c.add(probe, "", "pods/exec", nil, []string{"create", "get"}, "probes of type exec: run a command in a pod")
		c.add(probe, "", "pods", nil, []string{"get", "list"}, "probes of type exec: find the pod")
		for _, kind := range []string{"deployments", "statefulsets", "daemonsets"} {
			c.add(probe, "apps", kind, nil, []string{"get"}, "probes of type exec: find the pods of a workload")
		}
	}
	for _, o := range component.Objects {
		c.object(component, o, at)
	}
}

// copies adds the rules for copies of secrets: engines read and change those by their names,
// and no other Secret.
func (c *computing) copies(copies Copies) {
	const from = "secrets.toml"
	at := func(namespace string) Rule {
		if !slices.Contains(c.list.Namespaces, namespace) {
			c.list.Namespaces = append(c.list.Namespaces, namespace)
		}
		rule := Rule{Namespace: namespace, From: []string{from}}
		c.add(rule, "", "namespaces", []string{namespace}, []string{"get"}, "look whether the namespace is there")
		return rule
	}
	if !namespaceName.MatchString(copies.Inventory) {
		c.unknown(from, fmt.Sprintf("the namespace of the list of copies is only known in an install (%s)", copies.Inventory))
	} else {
		c.add(at(copies.Inventory), "", "configmaps", nil, verbsOfRecords, "the list of the copies of secrets, with its fence")
	}
	for _, secret := range copies.Secrets {
		if !namespaceName.MatchString(secret.Namespace) {
			c.unknown(from, fmt.Sprintf("the namespace of the copy %s is only known in an install (%s)", secret.Name, secret.Namespace))
			continue
		}
		rule := at(secret.Namespace)
		c.add(rule, "", "secrets", nil, []string{"create"}, "copy secrets of the customer")
		c.add(rule, "", "secrets", []string{secret.Name}, []string{"delete", "get", "update"}, "copy secrets of the customer")
	}
}

// object adds the rules for one object; at is the namespace of its component, ""
// when that is not known.
func (c *computing) object(component Component, o RenderedObject, at string) {
	group, _, found := strings.Cut(text(o.Body, "apiVersion"), "/")
	if !found {
		group = ""
	}
	name, kindName := text(child(o.Body, "metadata"), "name"), text(o.Body, "kind")
	from := component.Name
	if o.From != "" {
		from += " (" + o.From + ")"
	}
	k, known := c.kinds[groupKind{group, kindName}]
	if !known {
		c.unknown(from, fmt.Sprintf("kind %s of %s is neither of Kubernetes nor defined by the app: name its resource and scope with --kind", kindName, cmp.Or(group, "the core group")))
		return
	}
	rule := Rule{From: []string{from}}
	switch {
	case group == "" && kindName == "Namespace":
		c.namespace(rule, name)
		return
	case !k.namespaced:
		// Who may create cannot be limited to names.
		c.add(rule, group, k.resource, nil, []string{"create"}, "install "+kindName+" objects, which are in no namespace")
		c.add(rule, group, k.resource, []string{name}, []string{"delete", "get", "patch"}, "install "+kindName+" objects, which are in no namespace")
	default:
		rule.Namespace = cmp.Or(text(child(o.Body, "metadata"), "namespace"), at)
		if !namespaceName.MatchString(rule.Namespace) {
			c.unknown(from, fmt.Sprintf("the namespace of %s %s is not known", kindName, name))
			return
		}
		c.add(rule, group, k.resource, nil, verbsOfObjects, "install "+kindName+" objects")
	}
	if group == groupRBAC {
		c.grants(o, rule, kindName)
	}
}

// namespace is for a Namespace of the app. Who applies the list makes it, so
// that its rules can be limited to it.
func (c *computing) namespace(rule Rule, name string) {
	if !namespaceName.MatchString(name) {
		c.unknown(rule.From[0], "the name of a Namespace is not known")
		return
	}
	c.list.Namespaces = append(c.list.Namespaces, name)
	rule.Namespace = name
	c.add(rule, "", "namespaces", []string{name}, []string{"get", "patch"}, "the app describes this namespace; removing it stays with you")
}

// grants adds what a role or a binding of the app gives away: Kubernetes lets
// nobody grant what he does not hold.
func (c *computing) grants(o RenderedObject, at Rule, kindName string) {
	const reason = "the app grants it, and nobody may grant what they do not hold"
	switch kindName {
	case "Role", "ClusterRole":
		if o.Body["aggregationRule"] != nil {
			c.unknown(at.From[0], "an aggregated role grants what other roles say, which only the cluster knows")
		}
		for _, raw := range list(o.Body, "rules") {
			for _, r := range expand(raw) {
				r.Namespace, r.From, r.Reasons = at.Namespace, at.From, []string{reason}
				c.hold(r)
			}
		}
	case "RoleBinding", "ClusterRoleBinding":
		ref := child(o.Body, "roleRef")
		refKind, name := text(ref, "kind"), text(ref, "name")
		if c.defines(refKind, name) {
			return // held because of that role
		}
		resource := c.kinds[groupKind{groupRBAC, refKind}].resource
		if !slices.Contains(c.app.Allowed, VerbBind) {
			c.withhold(at.From[0], fmt.Sprintf("%s binds %s %s, which is not in the app. Engines would need `bind` on it (--allow bind) or every rule that it has (--grant)", kindName, refKind, name))
			return
		}
		c.add(at, groupRBAC, resource, []string{name}, []string{VerbBind}, "the app binds this role, whatever it allows")
	}
}

func (c *computing) defines(kindName, name string) bool {
	for _, component := range c.app.Components {
		for _, o := range component.Objects {
			if text(o.Body, "kind") == kindName && text(child(o.Body, "metadata"), "name") == name {
				return true
			}
		}
	}
	return false
}

// hold adds a rule as it is, unless it lets engines widen their rights.
func (c *computing) hold(r Rule) {
	for _, verb := range r.Escalates() {
		if !slices.Contains(c.app.Allowed, verb) {
			c.withhold(strings.Join(r.From, ", "), fmt.Sprintf("it needs %s, which includes %s: with that, engines can get any right. Agree with --allow %s", r, verb, verb))
			return
		}
	}
	c.put(r)
}

func (c *computing) add(at Rule, group, resource string, names, verbs []string, reason string) {
	at.Group, at.Resource, at.Names, at.Verbs, at.Reasons = group, resource, names, slices.Clone(verbs), []string{reason}
	c.put(at)
}

// put joins a rule with one for the same objects.
func (c *computing) put(r Rule) {
	r.Names, r.Verbs, r.From = slices.Clone(r.Names), slices.Clone(r.Verbs), slices.Clone(r.From)
	// Names are joined for the same verbs only: else each name would get all verbs.
	key := strings.Join([]string{r.Namespace, r.Group, r.Resource, strings.Join(r.URLs, " ")}, "\x00")
	if len(r.Names) > 0 {
		slices.Sort(r.Verbs)
		key += "\x01" + strings.Join(r.Verbs, " ")
	}
	before, ok := c.rules[key]
	if !ok {
		slices.Sort(r.Verbs)
		c.rules[key] = &r
		return
	}
	before.Names = union(before.Names, r.Names)
	before.Verbs = union(before.Verbs, r.Verbs)
	before.Reasons = union(before.Reasons, r.Reasons)
	before.From = union(before.From, r.From)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *computing) unknown(from, text string) {
	c.list.Unknown = note(c.list.Unknown, Note{From: from, Text: text})
}

func (c *computing) withhold(from, text string) {
	c.list.Withheld = note(c.list.Withheld, Note{From: from, Text: text})
}

func note(all []Note, n Note) []Note {
	if slices.Contains(all, n) {
		return all
	}
	return append(all, n)
}

// expand makes of a rule of a role one rule per kind.
func expand(raw any) []Rule {
	body, _ := raw.(map[string]any)
	verbs, names := texts(body, "verbs"), texts(body, "resourceNames")
	var all []Rule
	if urls := texts(body, "nonResourceURLs"); len(urls) > 0 {
		all = append(all, Rule{URLs: urls, Verbs: verbs})
	}
	for _, group := range texts(body, "apiGroups") {
		for _, resource := range texts(body, "resources") {
			all = append(all, Rule{Group: group, Resource: resource, Names: names, Verbs: verbs})
		}
	}
	return all
}

func child(body map[string]any, path ...string) map[string]any {
	for _, key := range path {
		body, _ = body[key].(map[string]any)
	}
	return body
}

func text(body map[string]any, key string) string {
	s, _ := body[key].(string)
	return s
}

func list(body map[string]any, key string) []any {
	l, _ := body[key].([]any)
	return l
}

func texts(body map[string]any, key string) []string {
	var all []string
	for _, item := range list(body, key) {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
