package preflight

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/deploy"
)

// document is an object of a manifest, as far as it takes rights to apply it.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Rules []struct {
		APIGroups       []string `json:"apiGroups"`
		Resources       []string `json:"resources"`
		ResourceNames   []string `json:"resourceNames"`
		NonResourceURLs []string `json:"nonResourceURLs"`
		Verbs           []string `json:"verbs"`
	} `json:"rules"`
}

// needs are the rights that it takes to apply an object, one verb each: to make
// it, and to have all that it grants.
func (d document) needs() []right {
	group, _, found := strings.Cut(d.APIVersion, "/")
	if !found {
		group = ""
	}
	ns := d.Metadata.Namespace
	plural := strings.ToLower(d.Kind) + "s"
	if stem, y := strings.CutSuffix(d.Kind, "y"); y {
		plural = strings.ToLower(stem) + "ies"
	}
	all := []right{{verbs: []string{"create"}, group: group, resource: plural, namespace: ns}}
	for _, rule := range d.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					r := right{verbs: []string{verb}, group: group, resource: resource, namespace: ns}
					if len(rule.ResourceNames) > 0 {
						r.name = rule.ResourceNames[0]
					}
					all = append(all, r)
				}
			}
		}
	}
	return all
}

func (r right) covers(need right) bool {
	if r.verbs[0] == "*" {
		return r.namespace == "" || r.namespace == need.namespace
	}
	return slices.Contains(r.verbs, need.verbs[0]) && r.group == need.group && r.resource == need.resource &&
		r.name == need.name && r.namespace == need.namespace
}

// What is asked for is what the manifest of the same options takes, no more and
// no less.
func TestRightsAreThoseOfTheManifest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*deploy.Options)
	}{
		{name: "default", change: func(*deploy.Options) {}},
		{name: "two namespaces", change: func(o *deploy.Options) { o.Namespaces = []string{"shop", "shop-jobs"} }},
		{name: "a directory of the node", change: func(o *deploy.Options) { o.HostPath = "/var/lib/berth" }},
		{name: "the whole cluster", change: func(o *deploy.Options) { o.Rights = deploy.RightsCluster }},
		{name: "no relays", change: func(o *deploy.Options) { o.NoRelay = true }},
		{name: "an app's list", change: func(o *deploy.Options) {
			o.Rights, o.Permissions = deploy.RightsApp, &permissions.List{Namespaces: []string{"shop"}, Rules: []permissions.Rule{
				{Resource: "nodes", Verbs: []string{"get"}, Reasons: []string{"look"}},
				{Namespace: "shop", Resource: "namespaces", Names: []string{"shop"}, Verbs: []string{"get"}, Reasons: []string{"look"}},
				{Namespace: "shop", Group: "apps", Resource: "deployments", Verbs: []string{"get", "patch"}, Reasons: []string{"install"}},
			}}
		}},
		{name: "engines as processes", change: func(o *deploy.Options) { o.Engines = deploy.EnginesProcess }},
		{name: "engines as processes in the whole cluster", change: func(o *deploy.Options) { o.Engines, o.Rights = deploy.EnginesProcess, deploy.RightsCluster }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := deploy.Options{CodeText: "bec_x", Image: "registry.example.com/berth/runner:1.0@sha256:" + strings.Repeat("0f", 32), Code: enrolcode.Code{
				URL: "https://berth.example.com", OneHost: true, Install: "acme", InstallID: "ins_1", ExpiresAt: time.Now().Add(time.Hour),
			}}
			tc.change(&o)
			text, err := deploy.Manifest(o)
			if err != nil {
				t.Fatal(err)
			}
			o = o.WithDefaults()
			asked := rights(Config{
				Rights: o.Rights, Namespace: o.Namespace, Namespaces: o.Namespaces, Engines: o.Engines, HostPath: o.HostPath,
				Relay: o.Relay(), Permissions: o.Permissions,
			})
			used := map[string]bool{}
			for _, raw := range bytes.Split(text, []byte("\n---\n")) {
				var d document
				if err := yaml.Unmarshal(raw, &d); err != nil {
					t.Fatal(err)
				}
				for _, need := range d.needs() {
					found := false
					for _, r := range asked {
						if r.covers(need) {
							found, used[r.String()+need.verbs[0]] = true, true
						}
					}
					if !found {
						t.Errorf("the manifest needs that one may %s, which is not asked for", need)
					}
				}
			}
			for _, r := range asked {
				for _, verb := range r.verbs {
					if !used[r.String()+verb] {
						t.Errorf("asked for %s of %s, which the manifest does not need", verb, r)
					}
				}
			}
		})
	}
}

func TestPodSecurity(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, sets, level string
		want              Status
		fix               string
	}{
		{name: "no level", sets: "restricted", want: OK},
		{name: "a lower level", sets: "restricted", level: "privileged", want: OK},
		{name: "the same level", sets: "restricted", level: "restricted", want: OK},
		{name: "root in its container", sets: "baseline", level: "restricted", want: Warn, fix: "agree"},
		{name: "a directory of the node", sets: "privileged", level: "baseline", want: Warn, fix: "--volume"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := admits(Config{Namespace: "berth-acme", PodSecurity: tc.sets}, tc.level)
			if got.Status != tc.want || !strings.Contains(got.Fix, tc.fix) || (got.Fix == "") != (got.Status == OK) {
				t.Errorf("found %+v, want %s with a fix like %q", got, tc.want, tc.fix)
			}
		})
	}
}

// A code that has expired stops a runner that is not there yet, and no other.
func TestExpiredCode(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for upgrade, want := range map[bool]Status{false: Fail, true: OK} {
		cfg := Config{Code: enrolcode.Code{ExpiresAt: now.Add(-time.Hour)}, Upgrade: upgrade, Now: func() time.Time { return now }}
		if got := checkCode(cfg)[0]; got.Status != want {
			t.Errorf("upgrade %t: %+v, want %s", upgrade, got, want)
		}
	}
}
