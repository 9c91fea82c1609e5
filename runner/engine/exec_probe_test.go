package engine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// execProbe is the action that a probe of type exec is made into.
func execProbe(t *testing.T, kubeconfig string, env map[string]string) *jobDir {
	t.Helper()
	j := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "answers", InlineContents: "exec \"$BERTH_PROBE\" probe exec\n", EnvVars: env})
	j.spec.Action.Name = jobspec.AppProbePrefix + "web.answers"
	if kubeconfig != "" {
		j.env["KUBECONFIG"] = kubeconfig
	}
	return j
}

// A probe that cannot look fails no run: the run says that nobody can tell. What another action
// ends with stays what it is.
func TestExecProbeWithoutCluster(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PROBE_COMMAND": "true", "PROBE_TARGET": "deployment/web", "PROBE_TIMEOUT": "5s"}
	r := execProbe(t, "", env).must(t)
	if len(r.Findings) != 1 || !r.Findings[0].Unknown || r.Findings[0].Condition != "nobody can tell: this runner has no cluster" || r.ExitCode != 0 {
		t.Errorf("it found %+v, exit code %d", r.Findings, r.ExitCode)
	}
	other := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "three", InlineContents: "exit 3"})
	if r := other.run(t); r.Outcome != jobspec.OutcomeFailed || len(r.Findings) > 0 {
		t.Errorf("another action: %s %+v", r.Outcome, r.Findings)
	}
}

// withShell pushes an image that has a shell and sleep, of this machine.
func withShell(t *testing.T, d *deployed) string {
	t.Helper()
	registry, kubectl := os.Getenv("BERTH_DEV_REGISTRY"), os.Getenv("KUBECTL")
	if registry == "" || kubectl == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	files := map[string]string{}
	for program, to := range map[string]string{"dash": "/bin/sh", "sleep": "/bin/sleep"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = to
		out, err := exec.CommandContext(t.Context(), "ldd", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(string(out)) {
			if strings.HasPrefix(word, "/") {
				files[word] = word
			}
		}
	}
	args := []string{registry + "/shell:" + d.namespace} // nodes keep what they know by a tag
	for from, to := range files {
		file, err := filepath.EvalSymlinks(from)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, file+":"+to)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(kubectl), "mkimage"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return args[0]
}

// Commands in a real container: what they end with, what they say, and that one without an end
// is killed with what it started.
func TestExecProbe(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	image := withShell(t, d)
	d.roll(t, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: web, image: %q, command: [/bin/sh, -c, "while :; do sleep 1; done"]}
`, image))
	probe := func(kubeconfig, command, timeout string) jobspec.Result {
		return execProbe(t, kubeconfig, map[string]string{"PROBE_COMMAND": command, "PROBE_TARGET": "deployment/web", "PROBE_NAMESPACE": d.namespace, "PROBE_TIMEOUT": timeout}).run(t)
	}
	for _, tt := range []struct{ name, command, want string }{
		{"good", "sh -c true", ""},
		{"bad", "echo starting; echo 'no database' >&2; exit 7", "exit code 7: no database"},
		{"no such program", "not-there", "not-there: not found"},
		{"much", `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "0123456789012345678901234567890123456789012345678901234567890123456789"; done; echo end; exit 1`, "exit code 1: end"},
	} {
		r := probe(d.kubeconfig, tt.command, "20s")
		if (r.Outcome == jobspec.OutcomeSucceeded) != (tt.want == "") || !strings.Contains(r.Error, tt.want) || len(r.Findings) > 0 {
			t.Errorf("%s: %s %q %+v, want %q", tt.name, r.Outcome, r.Error, r.Findings, tt.want)
		}
	}

	began := time.Now()
	r := probe(d.kubeconfig, "echo waiting; sleep 3111 & sleep 3112; true", "2s")
	if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "no answer within 2s: waiting") {
		t.Errorf("without an end: %s %q", r.Outcome, r.Error)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("without an end it took %s", took)
	}
	const left = `for p in /proc/[0-9]*; do read -r c < $p/cmdline; case "$c" in sleep*311*) exit 9;; esac; done 2>/dev/null; exit 0`
	if r := probe(d.kubeconfig, left, "5s"); r.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("something of it still runs: %s", r.Error)
	}

	if r := probe(d.reader(t), "true", "5s"); r.Outcome != jobspec.OutcomeSucceeded || len(r.Findings) != 1 || !r.Findings[0].Unknown ||
		!strings.Contains(r.Findings[0].Condition, "it needs create and get of pods/exec in namespace "+d.namespace) {
		t.Errorf("without the right: %s %q %+v", r.Outcome, r.Error, r.Findings)
	}
}

// reader is a kubeconfig that may read pods and deployments, and nothing else.
func (d *deployed) reader(t *testing.T) string {
	t.Helper()
	rbac, named := d.Client.RbacV1(), metav1.ObjectMeta{Name: "reader"}
	_, err := d.Client.CoreV1().ServiceAccounts(d.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.Roles(d.namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "deployments"}, Verbs: []string{"get", "list"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.RoleBindings(d.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: d.namespace}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := d.Client.CoreV1().ServiceAccounts(d.namespace).CreateToken(t.Context(), "reader", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ca := d.Config.CAData
	if len(ca) == 0 {
		if ca, err = os.ReadFile(d.Config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.crt}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, d.Config.Host, token.Status.Token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
