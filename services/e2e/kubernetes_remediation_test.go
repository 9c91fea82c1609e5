package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// awayFor is how long the control plane is away: both kills fall into it.
const awayFor = 5 * time.Minute

// TestKubernetesRemediation: pods that nobody brings back are killed, twice while the control
// plane is away. The runner sees it, runs what the app says, and sees that it helped; nobody
// is called for it, and afterwards all of it is known. It takes minutes of waiting for ticks, so
// make health-faults runs it; TestRemediation is the same without a cluster.
func TestKubernetesRemediation(t *testing.T) {
	t.Parallel()
	if os.Getenv("BERTH_FAULTS") != "all" {
		t.Skip("long: make health-faults runs it")
	}
	home := os.Getenv("KUBECONFIG")
	if home == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	registry := os.Getenv("BERTH_DEV_REGISTRY")
	if registry == "" {
		t.Skip("BERTH_DEV_REGISTRY names no registry that the nodes pull from")
	}
	s := start(t, "KUBECONFIG="+home)
	in := s.probe("acme")
	k := &shop{install: in, namespace: "remedy-" + suffix()}
	t.Cleanup(func() {
		if _, err := k.command("kubectl", "delete", "namespace", k.namespace, "--ignore-not-found", "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	pod := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: worker, namespace: %s}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: worker, image: %q}]}\n", k.namespace, registry+"/pause:1")
	for file, text := range map[string]string{
		"components/worker.toml": fmt.Sprintf("name = \"worker\"\ntype = \"kubernetes_manifest\"\nnamespace = %q\nmanifest = '''\n%s'''\n"+
			"[berth.health_check]\nunhealthy_after = 1\nhealthy_after = 1\nremediation = \"again\"\nremediation_attempts = 3\nremediation_cooldown = \"1s\"\n", k.namespace, pod),
		"actions/again.toml": fmt.Sprintf("name = \"again\"\ntimeout = \"30s\"\nenable_kube_config = true\n[[triggers]]\ntype = \"manual\"\n"+
			"[[steps]]\nname = \"apply\"\ninline_contents = '''\nkubectl apply --server-side --force-conflicts --field-manager berth --filename - <<'END'\n%sEND\n'''\n", pod),
	} {
		if err := os.WriteFile(filepath.Join(in.app, filepath.FromSlash(file)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.sync("probe", in.app)
	if w := in.finished(in.deploy(true, "worker").ID, 2*time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	remedies := filepath.Join(in.runnerDir(), "remedies.json")
	says := func(what string) func() error {
		return func() error {
			raw, err := os.ReadFile(remedies)
			if err == nil && !strings.Contains(string(raw), what) {
				err = fmt.Errorf("no %s: %s", what, raw)
			}
			return err
		}
	}
	in.eventually(3*time.Minute, "the runner has judged the probe", says(`"healthy"`))

	uid := func() string {
		return k.kubectl("get", "pod", "worker", "--ignore-not-found", "--output", "jsonpath={.metadata.uid}")
	}
	in.stopParts(services...)
	away := time.Now()
	for n := 1; n <= 2; n++ {
		before := uid()
		k.kubectl("delete", "pod", "worker", "--wait=true")
		in.eventually(3*time.Minute, fmt.Sprintf("kill %d is healed without the control plane", n), func() error {
			if now := uid(); now == "" || now == before {
				return fmt.Errorf("the pod is %q, before %q", now, before)
			}
			return nil
		})
		in.eventually(3*time.Minute, "a look says that it helped", says(`"helped"`))
	}
	healed := uid()
	in.eventually(awayFor+time.Minute, "the outage is over", func() error {
		if now := uid(); now != healed {
			t.Fatalf("the pod is %q, and was healed as %q: it was healed once more without need", now, healed)
		}
		if left := awayFor - time.Since(away); left > 0 {
			return fmt.Errorf("it goes on for %s", left)
		}
		return nil
	})
	in.signal(in.up.Process.Pid, syscall.SIGCONT)
	for _, name := range services {
		in.back(name)
	}

	in.eventually(2*time.Minute, "all of it is known, and it is healthy", func() error {
		var page ctlapi.RemediationPage
		in.get("/installs/acme/remediations", &page)
		if len(page.Items) != 1 || page.Items[0].Check != "component/worker" || page.Items[0].State != "helped" || page.Items[0].Attempts != 2 {
			return fmt.Errorf("remediations %+v", page.Items)
		}
		var health ctlapi.Health
		in.get("/installs/acme/health", &health)
		if health.Verdict != ctlapi.HealthVerdictHealthy {
			return fmt.Errorf("health %+v", health)
		}
		return nil
	})
	var called ctlapi.AlertPage
	in.get("/alerts?state=open&kind=unhealthy", &called)
	if len(called.Items) > 0 {
		t.Errorf("somebody was called for what was healed: %+v", called.Items)
	}
}
