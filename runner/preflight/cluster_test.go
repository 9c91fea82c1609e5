package preflight_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/deploy"
	"github.com/berth-dev/berth/runner/engine/kubetest"
	"github.com/berth-dev/berth/runner/preflight"
)

// somebody is a user of a real cluster who has namespaces of his own.
type somebody struct {
	*kubetest.Connection
	runner, engines string
	client          *cluster.Client
}

func newSomebody(t *testing.T) *somebody {
	t.Helper()
	c := kubetest.Cluster(t)
	s := &somebody{Connection: c, runner: c.Namespace(t), engines: c.Namespace(t)}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "somebody"}}
	if _, err := c.Client.CoreV1().ServiceAccounts(s.runner).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.may(t, s.engines, "everything", rule([]string{"*"}, []string{"*"}, "*"))
	s.may(t, s.runner, "what engines as processes need",
		rule([]string{""}, []string{"serviceaccounts", "serviceaccounts/token", "secrets", "configmaps", "services", "persistentvolumeclaims"}, "*"),
		rule([]string{"apps"}, []string{"deployments", "daemonsets"}, "*"), rule([]string{"networking.k8s.io"}, []string{"networkpolicies"}, "*"), rule([]string{"coordination.k8s.io"}, []string{"leases"}, "*"),
		rule([]string{"rbac.authorization.k8s.io"}, []string{"roles", "rolebindings"}, "*"))
	token, err := c.Client.CoreV1().ServiceAccounts(s.runner).CreateToken(t.Context(), "somebody", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := json.Marshal(map[string]any{
		"current-context": "x",
		"contexts":        []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "x", "user": "x"}}},
		"clusters":        []any{map[string]any{"name": "x", "cluster": map[string]any{"server": c.Config.Host}}},
		"users":           []any{map[string]any{"name": "x", "user": map[string]any{"token": token.Status.Token}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.client, err = cluster.Connect(t.Context(), cluster.Access{Kubeconfig: kubeconfig, Server: c.Config.Host, Authority: c.Config.CAData})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func rule(groups, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs}
}

// may gives somebody a role in a namespace.
func (s *somebody) may(t *testing.T, namespace, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	name = strings.ReplaceAll(name, " ", "-")
	rbac := s.Client.RbacV1()
	meta := metav1.ObjectMeta{Name: name}
	if _, err := rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "somebody", Namespace: s.runner}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// found are the failed findings of some checks, as "detail → fix".
func (s *somebody) found(t *testing.T, engines string, checks ...string) []string {
	t.Helper()
	server, ca := tlsServer(t, plane)
	c := config(server.URL)
	c.CAFile, c.Cluster, c.Engines, c.PodSecurity = ca, s.client, engines, deploy.LevelBaseline
	c.Rights, c.Namespace, c.Namespaces = deploy.RightsNamespaces, s.runner, []string{s.engines}
	all := []string{}
	for _, f := range preflight.Run(t.Context(), c) {
		for _, check := range checks {
			if f.Check == check && (f.Status == preflight.Fail || f.Status == preflight.Warn) {
				all = append(all, strings.ReplaceAll(f.Detail, s.runner, "NS")+" → "+strings.ReplaceAll(f.Fix, s.runner, "NS"))
			}
		}
	}
	return all
}

// A real API server says what is missing for engines as Jobs, and preflight
// says just that.
func TestRightsInACluster(t *testing.T) {
	t.Parallel()
	s := newSomebody(t)
	const ask = " → ask an administrator of the cluster to apply the manifest, or to give you this right"
	const without = "; with --engines process, which keeps vendor code less apart, the runner does not need it"
	nobodyMay := "you may not create namespaces" + ask // a role in a namespace never allows that
	for _, tc := range []struct {
		name    string
		engines string
		gets    []rbacv1.PolicyRule
		want    []string
	}{
		{name: "as processes", engines: deploy.EnginesProcess, want: []string{nobodyMay}},
		{name: "as Jobs", engines: deploy.EnginesJobs, want: []string{
			nobodyMay, "you may not create, get, delete jobs.batch in NS" + ask + without, "you may not get, list, watch, delete pods in NS" + ask + without,
		}},
		{
			name: "as Jobs with a part of it", engines: deploy.EnginesJobs,
			gets: []rbacv1.PolicyRule{rule([]string{"batch"}, []string{"jobs"}, "create", "get", "delete"), rule([]string{""}, []string{"pods"}, "get", "list", "watch")},
			want: []string{nobodyMay, "you may not delete pods in NS" + ask + without},
		},
		{
			name: "as Jobs with all of it", engines: deploy.EnginesJobs,
			gets: []rbacv1.PolicyRule{rule([]string{""}, []string{"pods"}, "delete")},
			want: []string{nobodyMay},
		},
	} {
		if tc.gets != nil {
			s.may(t, s.runner, strings.ToLower(tc.name), tc.gets...)
		}
		if diff := cmp.Diff(tc.want, s.found(t, tc.engines, "rights")); diff != "" {
			t.Errorf("%s: found (-want +got):\n%s", tc.name, diff)
		}
	}
}

// The manifest replaces the level of a namespace, which is said before; who may
// not look at it learns how to.
func TestPodSecurityInACluster(t *testing.T) {
	t.Parallel()
	s := newSomebody(t)
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := s.Client.CoreV1().Namespaces().Patch(t.Context(), s.runner, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := s.found(t, deploy.EnginesProcess, "pod security"); len(got) > 0 {
		t.Errorf("he may not read the namespace, and is told %v", got)
	}
	s.may(t, s.runner, "look", rule([]string{""}, []string{"namespaces"}, "get"))
	want := []string{"NS is for the level restricted, and the manifest sets baseline → " +
		"agree to that, use another --namespace, or leave out --volume, --engines process and --pod-security"}
	if diff := cmp.Diff(want, s.found(t, deploy.EnginesProcess, "pod security")); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}
