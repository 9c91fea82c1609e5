package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKubernetesAccess is the life of a stack whose engines may do what the app's
// list says and nothing else: it installs the app, attacks find the way closed,
// the stack is replaced in the middle of an apply, and taken away at the end.
func TestKubernetesAccess(t *testing.T) {
	t.Parallel()
	k, runner := newStackWith(t, slowFolder, func(k *stack) (string, string) {
		return " --rights app --permissions " + k.permissions(), " --engine-cpu 1500"
	})
	account := "system:serviceaccount:" + runner + ":berth-engine"

	t.Run("the app answers", func(t *testing.T) {
		if said, err := k.on(t).answers("/healthz"); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	})

	t.Run("engines have what is on the list", func(t *testing.T) {
		k := k.on(t)
		said := k.kubectl("auth", "can-i", "--list", "--as", account)
		for _, want := range []string{"deployments.apps", "pods/log", "services/proxy"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s is not there:\n%s", want, said)
			}
		}
		if strings.Contains(said, "*.*") || strings.Contains(said, "cronjobs") {
			t.Errorf("more is there:\n%s", said)
		}
		t.Log(said)
	})

	t.Run("attacks", func(t *testing.T) { k.on(t).attackAccess(runner, account) })

	t.Run("a component that needs more fails and says so", func(t *testing.T) {
		k := k.on(t)
		file := filepath.Join(k.app, "components", "extras.yaml")
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			k.sync("shop", k.app)
		}
		write(string(before) + "\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: more}\nspec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n")
		w := k.finished(k.deploy(true, "extras").ID, rolloutTimeout)
		if said := k.explain(w); w.State != "failed" || !strings.Contains(said, "ingresses") || !strings.Contains(said, "forbidden") {
			t.Errorf("the deploy is %s: %s", w.State, said)
		}
		if _, err := k.command("kubectl", "--namespace", k.namespace, "get", "ingress", "more"); err == nil {
			t.Error("the Ingress is there")
		}
		write(string(before))
	})

	t.Run("a new manifest in the middle of an apply loses nothing", func(t *testing.T) {
		k := &stack{shop: k.on(t), port: k.port, both: k.both}
		const memory = "75Mi"
		next := otherImage(t)
		k.limit(memory)
		w := k.deploy(true, "web")
		k.rollingOut(w.ID, memory)
		engine := k.enginePod(runner)
		agent := k.agentPod(runner)
		// Another image, access level and limit: another pod of the agent.
		k.upgrade(runner, "--image "+next+" --agent-memory 768Mi")
		k.eventually(rolloutTimeout, "another agent is ready", func() error {
			if now := k.agentPod(runner); now == agent || now == "" {
				return fmt.Errorf("the agent's pod is %q", now)
			}
			_, err := k.command("kubectl", "--namespace", runner, "wait", "--for", "condition=Ready", "pod", "--selector", "app=berth-runner", "--timeout", "5s")
			return err
		})
		got := k.finished(w.ID, goOnTimeout+slowRollout+2*time.Minute)
		if got.State != "succeeded" {
			t.Fatalf("workflow: %s", k.explain(got))
		}
		for _, c := range k.changes("uncertain") {
			if c.WorkflowID == w.ID {
				t.Errorf("the change counts as uncertain, though its engine %s went on", engine)
			}
		}
		k.settledRelease(memory)
		if said := k.kubectl("auth", "can-i", "create", "cronjobs.batch", "--as", account); strings.TrimSpace(said) != "yes" {
			t.Errorf("the new level is not there: %s", said)
		}
	})

	t.Run("the stack goes", func(t *testing.T) {
		k := k.on(t)
		k.must("installs", "deprovision", k.name, "--auto-approve", "--confirm", k.name)
		if left := k.kubectl("get", "deployments,services,poddisruptionbudgets,jobs", "--output", "name"); strings.TrimSpace(left) != "" {
			t.Errorf("left in the namespace:\n%s", left)
		}
		for _, args := range [][]string{
			{"delete", "namespace", runner, runner + "-relay", "--timeout", "90s"},
			{"delete", "clusterrole,clusterrolebinding", "berth-engine-" + runner, "--ignore-not-found"},
			{"delete", "namespace", k.namespace, "--timeout", "90s"},
		} {
			if _, err := k.command("kubectl", args...); err != nil {
				t.Fatal(err)
			}
		}
		for _, kind := range []string{"namespaces", "clusterroles", "clusterrolebindings", "persistentvolumes"} {
			out, err := k.command("kubectl", "get", kind, "--output", "name")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out, k.name) {
				t.Errorf("%s that are left:\n%s", kind, out)
			}
		}
	})
}

// upgrade does what the guide says for a stack that is there: the code comes from
// the cluster, and has been used.
func (k *stack) upgrade(runner, flags string) {
	k.t.Helper()
	said, err := k.customer(fmt.Sprintf(`(umask 077; kubectl --namespace %[1]s get secret berth-runner-code --output go-template='{{.data.code|base64decode}}' > code)
berth-runner preflight --upgrade --code @code%[2]s
berth-runner manifest --upgrade --code @code --image-pull-policy Always --registry-node-port %[3]d%[2]s %[4]s | kubectl apply -f -`, runner, k.both, k.port, flags))
	if err != nil {
		k.t.Fatalf("upgrade: %v\n%s", err, said)
	}
}

// otherImage is the runner's image with another digest: its executable has one
// byte more at its end, which nothing reads.
func otherImage(t *testing.T) string {
	t.Helper()
	bin, next := executables(t), t.TempDir()
	for _, name := range []string{"berth-runner", "berth-engine", "berth-policy"} {
		raw, err := os.ReadFile(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "berth-runner" {
			raw = append(raw, '\n')
		}
		if err := os.WriteFile(filepath.Join(next, name), raw, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "dev", "scripts", "runner-image.sh"), "berth/runner:next")
	cmd.Env = append(os.Environ(), "BERTH_LIBEXEC="+next)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("runner-image.sh: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// permissions is the list of the app, in a file, as the vendor hands it over.
func (k *stack) permissions() string {
	k.t.Helper()
	list := k.must("apps", "permissions", k.app, "--set", "sandbox.outputs.namespace="+k.namespace, "--set", "inputs.inputs.replicas=1",
		"--grant", "get:services/proxy", "--grant", "create,get:pods/portforward", "-o", "json")
	path := filepath.Join(k.t.TempDir(), "permissions.json")
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return path
}

// agentPod is the one pod of the agent, "" while there is none or more.
func (k *shop) agentPod(runner string) string {
	k.t.Helper()
	out, err := k.command("kubectl", "--namespace", runner, "get", "pods", "--selector", "app=berth-runner", "--output", "jsonpath={.items[*].metadata.name}")
	if names := strings.Fields(out); err == nil && len(names) == 1 {
		return names[0]
	}
	return ""
}

// attackAccess does as the engines' account what is not on the list.
func (k *shop) attackAccess(runner, account string) {
	k.t.Helper()
	as := func(args ...string) error {
		_, err := k.command("kubectl", append([]string{"--as", account}, args...)...)
		return err
	}
	// This is on the list: else the refusals below prove nothing.
	if err := as("--namespace", k.namespace, "get", "deployment", "web"); err != nil {
		k.t.Errorf("what is on the list: %v", err)
	}
	for name, args := range map[string][]string{
		"a kind that is not on the list": {"--namespace", k.namespace, "create", "cronjob", "x", "--image=x", "--schedule=* * * * *"},
		"a pod of its own":               {"--namespace", k.namespace, "run", "x", "--image=x"},
		"a role for itself":              {"--namespace", k.namespace, "create", "role", "x", "--verb=*", "--resource=pods"},
		"a binding for itself":           {"--namespace", k.namespace, "create", "rolebinding", "x", "--clusterrole=admin", "--serviceaccount=" + runner + ":berth-engine"},
		"a binding in the cluster":       {"create", "clusterrolebinding", "x", "--clusterrole=cluster-admin", "--serviceaccount=" + runner + ":berth-engine"},
		"the level of its namespace":     {"label", "namespace", k.namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged"},
		"a secret of the runner":         {"--namespace", runner, "get", "secret", "berth-runner-code"},
		"a job next to the agent":        {"--namespace", runner, "create", "job", "x", "--image=x"},
		"a secret of another namespace":  {"--namespace", "kube-system", "get", "secrets"},
		"a token of the agent":           {"--namespace", runner, "create", "token", "berth-runner"},
		"a command in a pod":             {"--namespace", k.namespace, "exec", "deployment/web", "--", "true"},
	} {
		err := as(args...)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "forbidden") {
			k.t.Errorf("%s: %v, want it forbidden", name, errors.Join(err))
		}
	}
}
