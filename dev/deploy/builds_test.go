package deploy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/dev/kube/kubetest"
)

func renderBuilds(t *testing.T) string {
	t.Helper()
	return render(t, "local-builds")
}

func TestBuildsKeepTheRules(t *testing.T) {
	t.Parallel()
	found, err := buildsFaults(renderBuilds(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range found {
		t.Error(fault)
	}
}

// Each rule finds what breaks it.
func TestBuildsRulesFindFaults(t *testing.T) {
	t.Parallel()
	good, runners := renderBuilds(t), render(t, with("local", "build-runners"))
	of := func(rendered string) func(string) ([]string, error) {
		if rendered == good {
			return buildsFaults
		}
		return func(bad string) ([]string, error) {
			objects, err := parse(bad)
			return faults(objects), err
		}
	}
	for _, tt := range []struct{ name, in, old, new, want string }{
		{"any pod", good, "enforce: restricted", "enforce: privileged", "does not enforce"},
		{"one verb more", good, "  - pods\n  verbs:\n  - create\n", "  - pods\n  verbs:\n  - create\n  - get\n", "other rights than builder needs"},
		{"commands in pods", good, "  - pods\n", "  - pods\n  - pods/exec\n", "other rights than builder needs"},
		{"secrets that can be read", good, "  - serviceaccounts\n  verbs:\n", "  - serviceaccounts\n  verbs:\n  - list\n", "other rights than builder needs"},
		{"another group", good, "  - \"\"\n  resources:\n  - pods\n", "  - \"*\"\n  resources:\n  - pods\n", "other rights than builder needs"},
		{"one rule more", good, "rules:\n", "rules:\n- apiGroups: [rbac.authorization.k8s.io]\n  resources: [roles]\n  verbs: [escalate]\n", "other rights than builder needs"},
		{"rights elsewhere", good, "kind: Role\nmetadata:\n  labels:\n    app.kubernetes.io/part-of: berth\n  name: builder\n  namespace: berth-builds", "kind: Role\nmetadata:\n  name: builder\n  namespace: berth", "Role builder: is not in berth-builds"},
		{"rights in the whole cluster", good, "kind: Role\n", "kind: ClusterRole\n", "does not belong here"},
		{"a role of the cluster", good, "  kind: Role\n  name: builder\n", "  kind: ClusterRole\n  name: cluster-admin\n", "gives rights to another than builder"},
		{"rights for another service", good, "- kind: ServiceAccount\n  name: builder\n", "- kind: ServiceAccount\n  name: runner-api\n", "gives rights to another than builder"},
		{"rights for a namesake elsewhere", good, "  name: builder\n  namespace: berth\n", "  name: builder\n  namespace: default\n", "gives rights to another than builder"},
		{"rights for all", good, "- kind: ServiceAccount\n  name: builder\n", "- kind: Group\n  name: system:serviceaccounts\n- kind: ServiceAccount\n  name: builder\n", "gives rights to another than builder"},
		{"a way in", good, "  policyTypes:\n  - Egress\n", "  ingress:\n  - {}\n  policyTypes:\n  - Egress\n  - Ingress\n", "lets somebody connect"},
		{"an open network", good, "  policyTypes:\n  - Ingress\n  - Egress\n", "  policyTypes:\n  - Ingress\n", "nothing closes the namespace's network"},
		{"a workload", good, "kind: RoleBinding", "kind: Deployment", "does not belong here"},

		{"a token for another service", runners, "serviceAccountName: builder", "serviceAccountName: ctl-api", "builder has a token of the API server"},
		{"a token for another container", runners, "        name: builder\n        ports:", "        name: other\n        ports:", "other has a token of the API server"},
		{"a token for all containers", runners, "automountServiceAccountToken: false\n      ", "automountServiceAccountToken: true\n      ", "has a token of the API server"},
		{"a role among services", runners, "kind: PersistentVolumeClaim", "kind: Role", "needs a right"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bad := strings.ReplaceAll(tt.in, tt.old, tt.new)
			if bad == tt.in {
				t.Fatalf("%q is not there", tt.old)
			}
			found, err := of(tt.in)(bad)
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(found, "\n"); !strings.Contains(all, tt.want) {
				t.Errorf("found %q, want %q", all, tt.want)
			}
		})
	}
}

// A Build Runner reaches the front, DNS and public sources. Nobody reaches it, not
// from another org's pod nor from Berth, and it reaches nothing else of Berth.
func TestBuildRunnersAreAlone(t *testing.T) {
	t.Parallel()
	c := kubetest.New(t)
	base := fmt.Sprintf("pods-flows-%x", time.Now().UnixNano()&0xffffff)
	plane, apart := base, base+"-builds"
	c.Namespace(t, plane, nil)
	c.Namespace(t, apart, nil)
	org := func(name string) kubetest.Pod {
		return kubetest.Pod{
			Namespace: apart, Name: name, Listen: []string{"tcp:10000"},
			Labels: map[string]string{"app.kubernetes.io/name": "build-runner", "berth.dev/org": "org_" + name},
		}
	}
	one, two := org("one"), org("two")
	service := func(name, port string) kubetest.Pod {
		return kubetest.Pod{Namespace: plane, Name: name, Labels: map[string]string{"app.kubernetes.io/name": name}, Listen: []string{"tcp:" + port, "tcp:10000"}}
	}
	services := []kubetest.Pod{service("front", "8443"), service("ctl-api", "8700"), service("runner-api", "8701"), service("log-ingest", "8702"), service("builder", "8703"), service("postgres", "5432")}
	addresses := c.Start(t, append(services, one, two)...)

	// Without policies everything is open, so what is refused below is refused by them.
	try := func(from kubetest.Pod, to kubetest.Pod, port string) bool {
		address := "tcp:" + addresses[to.Namespace+"/"+to.Name] + ":" + port
		return c.Try(t, from, address)[address]
	}
	if !try(one, two, "10000") || !try(one, services[1], "8700") {
		t.Fatal("pods cannot reach each other without any policy: this proves nothing")
	}
	text := strings.NewReplacer(
		"namespace: berth-builds", "namespace: "+apart, "kubernetes.io/metadata.name: berth\n", "kubernetes.io/metadata.name: "+plane+"\n",
	).Replace(renderBuilds(t))
	var policies []string
	for _, document := range documents(text) {
		if strings.Contains(document, "kind: NetworkPolicy") {
			policies = append(policies, document)
		}
	}
	c.Kubectl(t, strings.Join(policies, "\n---\n"), "apply", "-f", "-")

	want := map[string]bool{
		"one to front 8443": true, "one to front 10000": false, "one to ctl-api 8700": false, "one to runner-api 8701": false,
		"one to log-ingest 8702": false, "one to builder 8703": false, "one to postgres 5432": false,
		"one to two 10000": false, "two to one 10000": false, "builder to one 10000": false, "front to one 10000": false,
	}
	pods := map[string]kubetest.Pod{"one": one, "two": two}
	for _, s := range services {
		pods[s.Name] = s
	}
	const settles = 20 * time.Second // policies take a moment to get around
	for end := time.Now().Add(settles); ; {
		got := map[string]bool{}
		for each := range want {
			var from, to, port string
			if _, err := fmt.Sscanf(each, "%s to %s %s", &from, &to, &port); err != nil {
				t.Fatal(err)
			}
			got[each] = try(pods[from], pods[to], port)
		}
		diff := cmp.Diff(want, got)
		if diff == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("true is open (-want +got):\n%s", diff)
		}
	}
}
