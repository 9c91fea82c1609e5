package engine_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/policy"
)

// footprintOf is what an agent makes of a plan, in the words that people read.
func (d *deployed) footprintOf(t *testing.T, plan *jobDir) []string {
	t.Helper()
	var c policy.Case
	var known footprint.Known
	plan.readJSON(t, "out/pinned/"+policy.PinnedCase, &c)
	plan.readJSON(t, "out/"+footprint.KnownFile, &known)
	lines := footprint.Of(c.Documents, known).Lines()
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], d.namespace, "NS")
	}
	return lines
}

const shopPage = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: page}
spec:
  replicas: 0
  selector: {matchLabels: {app: page}}
  template:
    metadata: {labels: {app: page}}
    spec: {containers: [{name: page, image: "example.com/page:VERSION", env: [{name: API, value: "https://api.example.com/v1"}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: page}
spec: {type: SERVICE, selector: {app: page}, ports: [{port: 80}]}
`

func page(version, service string) string {
	return strings.NewReplacer("VERSION", version, "SERVICE", service).Replace(shopPage)
}

// A manifest says what it newly needs and exposes: all of it before its first apply, what is
// new after that, and nothing when nothing is.
func TestManifestFootprint(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	plan, _ := d.plan(t, page("1", "ClusterIP"))
	want := []string{
		"newly needs:", "  create, get namespaces in the whole cluster", "  create, get, patch services in NS", "  create, get, patch deployments.apps in NS",
		"new images:", "  example.com/page:1 (Deployment NS/page; from a repository that is new here)",
		"newly speaks to, as far as can be known:", "  api.example.com (Deployment NS/page, API)",
	}
	if diff := cmp.Diff(want, d.footprintOf(t, plan)); diff != "" {
		t.Errorf("of the first plan (-want +got):\n%s", diff)
	}
	d.applyJob(t, plan).must(t)

	plan, _ = d.plan(t, page("2", "NodePort")+"---\n"+`{apiVersion: v1, kind: ServiceAccount, metadata: {name: page}}`)
	want = []string{
		"newly needs:", "  create, get, patch serviceaccounts in NS", "newly exposes:", "  a port of every node, for 80/TCP (Service NS/page)",
		"new images:", "  example.com/page:2 (Deployment NS/page)",
	}
	if diff := cmp.Diff(want, d.footprintOf(t, plan)); diff != "" {
		t.Errorf("of a later plan (-want +got):\n%s", diff)
	}
	d.applyJob(t, plan).must(t)

	plan, _ = d.planDestroy(t)
	if lines := d.footprintOf(t, plan); lines != nil {
		t.Errorf("of a teardown: %q", lines)
	}
}

// A right that the runner lacks shows in the plan, and not first in the apply.
func TestManifestFootprintOfALack(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.namespace = d.Namespace(t)
	d.roll(t, page("1", "ClusterIP"))
	d.mayOnly(t,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "services"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "patch", "create"}})
	_, service, _ := strings.Cut(page("1", "ClusterIP"), "---")
	plan, _ := d.plan(t, service)
	want := []string{"the runner lacks these rights, so the apply would fail:", "  delete deployments.apps in NS"}
	if diff := cmp.Diff(want, d.footprintOf(t, plan)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// mayOnly gives the engine an account with these rights in the component's namespace.
func (d *deployed) mayOnly(t *testing.T, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta, rbac := metav1.ObjectMeta{Name: "engine"}, d.Client.RbacV1()
	if _, err := rbac.Roles(d.namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := rbac.RoleBindings(d.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "engine"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "engine", Namespace: d.namespace}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// It also looks at the namespace itself, which no rule of the namespace is about.
	cluster := metav1.ObjectMeta{Name: d.namespace}
	_, err = rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: cluster, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rbac.ClusterRoles().Delete(t.Context(), cluster.Name, metav1.DeleteOptions{}) })
	_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: cluster, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "engine", Namespace: d.namespace}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(d.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + d.namespace + ":engine"
	}
	d.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, d.kubeconfig); err != nil {
		t.Fatal(err)
	}
}

// A hook that ran for the release before is nothing new, and another one is.
func TestHelmFootprintOfHooks(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap, "templates/hook.yaml": hookJob("migrate", "pre-install,pre-upgrade", true)})
	plan, _ := c.plan(t)
	first := c.footprintOf(t, plan)
	for _, want := range []string{"  create, delete, get jobs.batch in NS", "  create, get configmaps in NS", "  " + pauseImage + " (Job NS/migrate; from a repository that is new here)"} {
		if !slices.Contains(first, want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(first, "\n"))
		}
	}
	c.applyJob(t, plan).must(t)
	c.values = map[string]string{"value": "two"}
	plan, _ = c.plan(t)
	for _, line := range c.footprintOf(t, plan) {
		if strings.Contains(line, pauseImage) {
			t.Errorf("the image of a hook that ran before: %q", line)
		}
	}
}
