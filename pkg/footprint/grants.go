package footprint

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const groupRBAC = "rbac.authorization.k8s.io"

// wholeCluster is the scope of what counts in every namespace.
const wholeCluster = "cluster"

// grantKey is what makes two grants the same, but for their actions.
type grantKey struct {
	in              Grantor
	to, what, scope string
}

// grant takes a grant in. Actions of the same grant come together.
func (f *facts) grant(g Grant) {
	key := grantKey{g.In, strings.Join(g.To, "\x00"), g.What, g.Scope}
	if had := f.grants[key]; had != nil {
		had.Actions = append(had.Actions, g.Actions...)
		return
	}
	if len(f.grants) < maxFacts {
		g.Actions = slices.Clone(g.Actions) // a rule gives the same ones on several things
		f.grants[key] = &g
	}
}

// newGrants are the actions that were not given before.
func (f *facts) newGrants(before *facts) []Grant {
	had := given{}
	for key, g := range before.grants {
		had[key] = map[string]bool{}
		for _, action := range g.Actions {
			had[key][action] = true
		}
	}
	var list []Grant
	for key, g := range f.grants {
		wider := key.wider()
		if len(g.Actions) == 0 {
			if !slices.ContainsFunc(wider, had.has) {
				list = append(list, *g)
			}
			continue
		}
		fresh := *g
		fresh.Actions = slices.DeleteFunc(union(g.Actions, nil), func(action string) bool { return had.covers(wider, action) })
		if len(fresh.Actions) > 0 {
			list = append(list, fresh)
		}
	}
	slices.SortFunc(list, func(a, b Grant) int {
		return cmp.Or(falseFirst(!a.farReaching(), !b.farReaching()), cmp.Compare(a.In, b.In), strings.Compare(a.Scope, b.Scope),
			strings.Compare(a.What, b.What), strings.Compare(strings.Join(a.To, " "), strings.Join(b.To, " ")), strings.Compare(a.By, b.By))
	})
	return list
}

// given are the actions that were given.
type given map[grantKey]map[string]bool

func (g given) has(key grantKey) bool {
	_, there := g[key]
	return there
}

// covers tells whether an action was given under one of the keys: by itself, or by a wildcard.
func (g given) covers(keys []grantKey, action string) bool {
	service, _, _ := strings.Cut(action, ":")
	return slices.ContainsFunc(keys, func(key grantKey) bool {
		actions := g[key]
		return actions[action] || actions["*"] || actions[service+":*"]
	})
}

// wider are the key and those whose grants have this one in them.
func (k grantKey) wider() []grantKey {
	keys := []grantKey{k}
	whats := []string{k.what}
	switch {
	case k.in == InKubernetes && k.to == "":
		_, group, _ := strings.Cut(k.what, ".")
		whats = append(whats, resourceOf("*", group), resourceOf("*", "*"))
	case k.in == InAWS && k.to == "":
		whats = append(whats, "*")
	}
	scopes := []string{k.scope}
	if k.in == InKubernetes && k.scope != wholeCluster {
		scopes = append(scopes, wholeCluster)
	}
	for _, what := range whats {
		for _, scope := range scopes {
			wide := k
			wide.what, wide.scope = what, scope
			keys = append(keys, wide)
		}
	}
	return keys
}

// farReaching grants come first: those that can widen themselves, and those of everything.
func (g Grant) farReaching() bool {
	for _, action := range g.Actions {
		if strings.Contains(action, "*") || widening[strings.ToLower(action)] {
			return true
		}
	}
	what := strings.ToLower(g.What)
	if slices.Contains(g.To, everybody) || strings.Contains(what, "admin") || strings.HasSuffix(what, "owner") {
		return true
	}
	return g.In == InKubernetes && (strings.HasPrefix(what, "*") || strings.HasPrefix(what, "secrets") || strings.HasSuffix(what, "."+groupRBAC))
}

// everybody is who gets a grant that asks for no identity.
const everybody = "everybody"

// widening actions let their holder get more rights than these.
var widening = map[string]bool{
	"escalate": true, "bind": true, "impersonate": true,
	"iam:passrole": true, "iam:createpolicyversion": true, "iam:setdefaultpolicyversion": true, "iam:attachrolepolicy": true, "iam:attachuserpolicy": true,
	"iam:attachgrouppolicy": true, "iam:putrolepolicy": true, "iam:putuserpolicy": true, "iam:putgrouppolicy": true, "iam:createaccesskey": true,
	"iam:updateassumerolepolicy": true, "iam:addusertogroup": true, "iam:createloginprofile": true, "sts:assumerole": true, "lambda:updatefunctioncode": true,
}

// role takes in what a Role or ClusterRole gives.
func (f *facts) role(o object, by string) {
	scope := text(child(o, "metadata"), "namespace")
	if scope == "" {
		scope = wholeCluster
	}
	if o["aggregationRule"] != nil {
		f.grant(Grant{In: InKubernetes, By: by, What: "whatever other roles give: it is aggregated", Scope: scope})
	}
	for _, rule := range children(o, "rules") {
		verbs := texts(rule, "verbs")
		give := func(what string) { f.grant(Grant{In: InKubernetes, By: by, Actions: verbs, What: what, Scope: scope}) }
		for _, path := range texts(rule, "nonResourceURLs") {
			give("path " + path)
		}
		names := ""
		if list := texts(rule, "resourceNames"); len(list) > 0 {
			names = " named " + strings.Join(union(list, nil), ", ")
		}
		for _, group := range texts(rule, "apiGroups") {
			for _, resource := range texts(rule, "resources") {
				give(resourceOf(resource, group) + names)
			}
		}
	}
}

// resourceOf names a kind as kubectl does.
func resourceOf(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// binding takes in who gets which role.
func (f *facts) binding(o object, by string) {
	scope := text(child(o, "metadata"), "namespace")
	if scope == "" || text(o, "kind") == "ClusterRoleBinding" {
		scope = wholeCluster
	}
	ref := child(o, "roleRef")
	for _, s := range children(o, "subjects") {
		name := text(s, "name")
		who := text(s, "kind") + " " + name
		if text(s, "kind") == "ServiceAccount" {
			who = "ServiceAccount " + text(s, "namespace") + "/" + name
		}
		switch name {
		case "system:anonymous", "system:unauthenticated", "system:authenticated":
			who = everybody
		}
		f.grant(Grant{In: InKubernetes, By: by, To: []string{who}, What: "role " + text(ref, "kind") + " " + text(ref, "name"), Scope: scope})
	}
}

// keysOf are the keys of a map, sorted.
func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
