package permissions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/permissions"
)

type m = map[string]any

// object is an object of the component in a file of its own name.
func object(apiVersion, kind, name string, rest m) permissions.RenderedObject {
	body := m{"apiVersion": apiVersion, "kind": kind, "metadata": m{"name": name}}
	for key, value := range rest {
		body[key] = value
	}
	return permissions.RenderedObject{Body: body, From: name + ".yaml:1"}
}

func role(kind, name string, groups, resources, verbs []any) permissions.RenderedObject {
	return object("rbac.authorization.k8s.io/v1", kind, name, m{"rules": []any{m{"apiGroups": groups, "resources": resources, "verbs": verbs}}})
}

func binding(kind, refKind, refName string) permissions.RenderedObject {
	return object("rbac.authorization.k8s.io/v1", kind, "binds", m{"roleRef": m{"kind": refKind, "name": refName}})
}

// base are the rules of every component in the namespace shop.
var base = []string{
	"shop configmaps: create, delete, get, list, update",
	"shop events: list",
	"shop namespaces shop: get",
	"shop pods/log: get",
	"shop pods: get, list",
}

func TestCompute(t *testing.T) {
	t.Parallel()
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "boats.example.com", m{
		"spec": m{"group": "example.com", "scope": "Namespaced", "names": m{"kind": "Boat", "plural": "boats"}},
	})
	verbs := ": create, delete, get, patch"
	crdRules := []string{
		" customresourcedefinitions.apiextensions.k8s.io boats.example.com: delete, get, patch",
		" customresourcedefinitions.apiextensions.k8s.io: create",
	}
	for _, tc := range []struct {
		name    string
		objects []permissions.RenderedObject
		change  func(*permissions.App)
		// more are the rules after those of every component.
		more              []string
		unknown, withheld string // a part of the only note, "" for none
		namespaces        []string
	}{
		{name: "a component without objects"},
		{name: "a kind of Kubernetes", objects: []permissions.RenderedObject{object("apps/v1", "Deployment", "web", nil)}, more: []string{"shop deployments.apps" + verbs}},
		{name: "two objects of a kind are one rule", objects: []permissions.RenderedObject{object("v1", "Service", "a", nil), object("v1", "Service", "b", nil)}, more: []string{"shop services" + verbs}},
		{name: "an object of another namespace", objects: []permissions.RenderedObject{object("v1", "Service", "a", m{"metadata": m{"name": "a", "namespace": "other"}})}, more: []string{"other services" + verbs}},
		{name: "an object outside of namespaces is limited to its name but for being made",
			objects: []permissions.RenderedObject{object("scheduling.k8s.io/v1", "PriorityClass", "high", nil)},
			more:    []string{" priorityclasses.scheduling.k8s.io high: delete, get, patch", " priorityclasses.scheduling.k8s.io: create"}},
		{name: "a kind that the app defines", objects: []permissions.RenderedObject{object("example.com/v1", "Boat", "b", nil), crd}, more: append([]string{"shop boats.example.com" + verbs}, crdRules...)},
		{name: "a kind that nobody knows is named", objects: []permissions.RenderedObject{object("example.com/v1", "Boat", "b", nil)}, unknown: "--kind"},
		{name: "a kind that somebody explains", objects: []permissions.RenderedObject{object("example.com/v1", "Boat", "b", nil)},
			change: func(a *permissions.App) {
				a.Kinds = []permissions.Kind{{Group: "example.com", Kind: "Boat", Resource: "boats", Namespaced: true}}
			},
			more: []string{"shop boats.example.com" + verbs}},
		{name: "a namespace of the app", objects: []permissions.RenderedObject{object("v1", "Namespace", "jobs", nil)}, more: []string{"jobs namespaces jobs: get, patch"}, namespaces: []string{"jobs", "shop"}},
		{name: "a namespace that only an install knows", change: func(a *permissions.App) { a.Components[0].Namespace = "<sandbox.outputs.namespace>" }, unknown: "only known in an install", namespaces: []string{}},
		{name: "releases of Helm", change: func(a *permissions.App) { a.Components[0].Storage = "secrets" }, more: []string{"shop secrets: create, delete, get, list, update"}},
		{name: "what a role grants must be held", objects: []permissions.RenderedObject{role("Role", "reader", []any{""}, []any{"endpoints"}, []any{"watch"}), binding("RoleBinding", "Role", "reader")},
			more: []string{"shop endpoints: watch", "shop rolebindings.rbac.authorization.k8s.io" + verbs, "shop roles.rbac.authorization.k8s.io" + verbs}},
		{name: "a role that escalates is withheld", objects: []permissions.RenderedObject{role("Role", "admin", []any{"rbac.authorization.k8s.io"}, []any{"roles"}, []any{"escalate"})},
			more: []string{"shop roles.rbac.authorization.k8s.io" + verbs}, withheld: "--allow escalate"},
		{name: "a role of everything is withheld", objects: []permissions.RenderedObject{role("ClusterRole", "all", []any{"*"}, []any{"*"}, []any{"*"})},
			more: []string{" clusterroles.rbac.authorization.k8s.io all: delete, get, patch", " clusterroles.rbac.authorization.k8s.io: create"}, withheld: "--allow bind"},
		{name: "all verbs of a harmless kind are held", objects: []permissions.RenderedObject{role("Role", "all", []any{"apps"}, []any{"deployments"}, []any{"*"})},
			more: []string{"shop deployments.apps: *", "shop roles.rbac.authorization.k8s.io" + verbs}},
		{name: "all kinds of a group that cannot escalate are held", objects: []permissions.RenderedObject{role("Role", "all", []any{"batch"}, []any{"*"}, []any{"*"})},
			more: []string{"shop *.batch: *", "shop roles.rbac.authorization.k8s.io" + verbs}},
		{name: "impersonating is withheld", objects: []permissions.RenderedObject{role("ClusterRole", "imp", []any{""}, []any{"serviceaccounts"}, []any{"impersonate"})},
			more: []string{" clusterroles.rbac.authorization.k8s.io imp: delete, get, patch", " clusterroles.rbac.authorization.k8s.io: create"}, withheld: "--allow impersonate"},
		{name: "what is agreed to is held", objects: []permissions.RenderedObject{role("Role", "admin", []any{"rbac.authorization.k8s.io"}, []any{"clusterroles"}, []any{"escalate"})},
			change: func(a *permissions.App) { a.Allowed = []string{"escalate"} },
			more:   []string{"shop clusterroles.rbac.authorization.k8s.io: escalate", "shop roles.rbac.authorization.k8s.io" + verbs}},
		{name: "binding a role of the cluster is withheld", objects: []permissions.RenderedObject{binding("RoleBinding", "ClusterRole", "view")},
			more: []string{"shop rolebindings.rbac.authorization.k8s.io" + verbs}, withheld: "binds ClusterRole view"},
		{name: "binding a role of the cluster that is agreed to", objects: []permissions.RenderedObject{binding("RoleBinding", "ClusterRole", "view")},
			change: func(a *permissions.App) { a.Allowed = []string{"bind"} },
			more:   []string{"shop clusterroles.rbac.authorization.k8s.io view: bind", "shop rolebindings.rbac.authorization.k8s.io" + verbs}},
		{name: "an aggregated role is named", objects: []permissions.RenderedObject{object("rbac.authorization.k8s.io/v1", "ClusterRole", "sum", m{"aggregationRule": m{}})},
			more: []string{" clusterroles.rbac.authorization.k8s.io sum: delete, get, patch", " clusterroles.rbac.authorization.k8s.io: create"}, unknown: "aggregated"},
		{name: "a probe that runs a command", change: func(a *permissions.App) { a.Components[0].Exec = []string{"shop"} },
			more: []string{"shop pods/exec: create, get", "shop daemonsets.apps: get", "shop deployments.apps: get", "shop statefulsets.apps: get"}},
		{name: "a probe whose namespace is not known", change: func(a *permissions.App) { a.Components[0].Exec = []string{"{{ .x }}"} }, unknown: "the namespace of a probe is only known in an install"},
		{name: "what is granted by hand", change: func(a *permissions.App) {
			a.Grants = []permissions.Rule{{Resource: "services/proxy", Verbs: []string{"get"}, Reasons: []string{"asked for"}}}
		}, more: []string{"shop services/proxy: get"}},
		{name: "what is granted by hand escalates no more than else", change: func(a *permissions.App) {
			a.Grants = []permissions.Rule{{Group: "*", Resource: "*", Verbs: []string{"*"}}}
		}, withheld: "--allow bind"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			app := permissions.App{Components: []permissions.Component{{Name: "web", Namespace: "shop", Objects: tc.objects}}}
			if tc.change != nil {
				tc.change(&app)
			}
			got := permissions.Compute(app)
			var rules []string
			for _, r := range got.Rules {
				if len(r.Reasons) == 0 {
					t.Errorf("%s has no reason", r)
				}
				rules = append(rules, r.Namespace+" "+r.String())
			}
			want := tc.more
			if tc.namespaces == nil || len(tc.namespaces) > 0 {
				want = slices.Concat(base, tc.more)
			}
			slices.Sort(rules)
			want = slices.Sorted(slices.Values(want))
			if diff := cmp.Diff(want, rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			for what, pair := range map[string]struct {
				notes []permissions.Note
				want  string
			}{"unknown": {got.Unknown, tc.unknown}, "withheld": {got.Withheld, tc.withheld}} {
				if (pair.want == "") != (len(pair.notes) == 0) || len(pair.notes) > 1 || len(pair.notes) == 1 && !strings.Contains(pair.notes[0].Text, pair.want) {
					t.Errorf("%s: %v, want %q", what, pair.notes, pair.want)
				}
			}
			namespaces := tc.namespaces
			if namespaces == nil {
				namespaces = []string{"shop"}
			}
			if diff := cmp.Diff(namespaces, got.Namespaces); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

// A list that came from elsewhere cannot say more than it seems to.
func TestCheck(t *testing.T) {
	t.Parallel()
	good := permissions.Rule{Namespace: "shop", Resource: "pods", Verbs: []string{"get"}}
	for name, tc := range map[string]struct {
		change  func(*permissions.List)
		allowed []string
		bad     bool
	}{
		"a good one":                         {change: func(*permissions.List) {}},
		"nothing in it":                      {change: func(l *permissions.List) { l.Rules = nil }, bad: true},
		"a namespace that is none":           {change: func(l *permissions.List) { l.Namespaces = []string{"A b"} }, bad: true},
		"a rule of a namespace that is none": {change: func(l *permissions.List) { l.Rules[0].Namespace = "-" }, bad: true},
		"YAML in a verb":                     {change: func(l *permissions.List) { l.Rules[0].Verbs = []string{"get]}\n"} }, bad: true},
		"no verbs":                           {change: func(l *permissions.List) { l.Rules[0].Verbs = nil }, bad: true},
		"everything": {change: func(l *permissions.List) {
			l.Rules[0] = permissions.Rule{Group: "*", Resource: "*", Verbs: []string{"*"}}
		}, bad: true},
		"bind":                            {change: func(l *permissions.List) { l.Rules[0].Verbs = []string{"bind"} }, bad: true},
		"bind that is agreed to":          {change: func(l *permissions.List) { l.Rules[0].Verbs = []string{"bind"} }, allowed: []string{"bind"}},
		"escalate when bind is agreed to": {change: func(l *permissions.List) { l.Rules[0].Verbs = []string{"escalate"} }, allowed: []string{"bind"}, bad: true},
	} {
		l := permissions.List{Namespaces: []string{"shop"}, Rules: []permissions.Rule{good}}
		tc.change(&l)
		if err := l.Check(tc.allowed); (err != nil) != tc.bad {
			t.Errorf("%s: %v, want an error: %t", name, err, tc.bad)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	l := permissions.List{Rules: []permissions.Rule{
		{Namespace: "shop", Resource: "pods/log", Verbs: []string{"get"}, Reasons: []string{"logs"}, From: []string{"web\n  - evil"}},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Names: []string{"boats.example.com"}, Verbs: []string{"get", "patch"}, Reasons: []string{"kinds"}, From: []string{"web"}},
	}}
	const want = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "berth-engine-berth-acme"}
rules:
  # kinds
  # for web
  - {apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], resourceNames: ["boats.example.com"], verbs: ["get", "patch"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "berth-engine-berth-acme"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "berth-engine-berth-acme"}
subjects: [{kind: ServiceAccount, name: "berth-engine", namespace: "berth-acme"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "berth-engine", namespace: "shop"}
rules:
  # logs
  # for web   - evil
  - {apiGroups: [""], resources: ["pods/log"], verbs: ["get"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "berth-engine", namespace: "shop"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "berth-engine"}
subjects: [{kind: ServiceAccount, name: "berth-engine", namespace: "berth-acme"}]
`
	if diff := cmp.Diff(want, l.Roles(permissions.Account{Namespace: "berth-acme", Name: "berth-engine"})); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

// Engines may write the copies that the app declares, by name, and read no other Secret.
func TestComputeCopies(t *testing.T) {
	t.Parallel()
	list := permissions.Compute(permissions.App{Copies: &permissions.Copies{Inventory: "ins01", Secrets: []permissions.Copy{
		{Namespace: "shop", Name: "api"}, {Namespace: "shop", Name: "tls"}, {Namespace: "", Name: "lost"},
	}}})
	var got []string
	for _, r := range list.Rules {
		got = append(got, r.Namespace+" "+r.String())
	}
	slices.Sort(got)
	want := []string{
		"ins01 configmaps: create, delete, get, list, update", "ins01 namespaces ins01: get",
		"shop namespaces shop: get", "shop secrets api, tls: delete, get, update", "shop secrets: create",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ins01", "shop"}, list.Namespaces); diff != "" || len(list.Unknown) != 1 {
		t.Errorf("namespaces (-want +got):\n%s\nunknown: %v", diff, list.Unknown)
	}
}
