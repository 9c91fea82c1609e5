package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestKubernetesDrift: somebody edits what Berth deployed. The runner says what and who,
// installs and lists show it, a reconcile shows in its plan what it takes back and takes it
// back, and then nothing has drifted.
func TestKubernetesDrift(t *testing.T) {
	t.Parallel()
	home := os.Getenv("KUBECONFIG")
	if home == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	s := start(t, "KUBECONFIG="+home)
	in := s.probe("acme")
	k := &shop{install: in, namespace: "drift-" + suffix()}
	t.Cleanup(func() {
		if _, err := k.command("kubectl", "delete", "namespace", k.namespace, "--ignore-not-found", "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	component := fmt.Sprintf(`name = "flags"
type = "kubernetes_manifest"
namespace = %q
drift_schedule = "0 0 1 1 *"
manifest = """
apiVersion: v1
kind: ConfigMap
metadata: {name: flags}
data: {mode: "prod"}
"""
`, k.namespace)
	if err := os.WriteFile(filepath.Join(in.app, "components", "flags.toml"), []byte(component), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sync("probe", in.app)
	if w := in.finished(in.deploy(true, "flags").ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	drift := func(want ctlapi.ComponentDriftState) ctlapi.ComponentDrift {
		t.Helper()
		var all ctlapi.InstallDrift
		in.get("/installs/acme/drift", &all)
		at := slices.IndexFunc(all.Components, func(c ctlapi.ComponentDrift) bool { return c.Name == "flags" }) // next to modules
		if at < 0 || all.Components[at].State != want {
			t.Fatalf("drift is %+v, want %s", all.Components, want)
		}
		return all.Components[at]
	}
	if out := s.must("installs", "drift", "acme", "--now", "--timeout", "45s"); !strings.Contains(out, "none") {
		t.Errorf("nobody touched it:\n%s", out)
	}
	drift(ctlapi.ComponentDriftStateNone)

	k.kubectl("patch", "configmap", "flags", "--type=merge", "--patch", `{"data":{"mode":"debug"}}`)
	out := s.must("installs", "drift", "acme", "flags", "--now", "--timeout", "45s")
	for _, want := range []string{"drifted", `data.mode is "debug", deployed was "prod" (edited by hand by kubectl-patch`, "berth installs drift acme flags --reconcile"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	drift(ctlapi.ComponentDriftStateDrifted)
	if out := s.must("installs", "list"); !strings.Contains(out, "drifted") {
		t.Errorf("the list does not say it:\n%s", out)
	}
	if out := s.must("drift", "list"); !strings.Contains(out, "flags") || !strings.Contains(out, "edited by hand") {
		t.Errorf("the list of drift:\n%s", out)
	}

	_, plan, code := s.run("installs", "drift", "acme", "flags", "--reconcile", "--plan")
	if code != 2 || !strings.Contains(plan, `data.mode: "debug" → "prod"`) || !strings.Contains(plan, "kubectl-patch") {
		t.Errorf("the plan, %d:\n%s", code, plan)
	}
	if got := k.kubectl("get", "configmap", "flags", "--output", "jsonpath={.data.mode}"); got != "debug" {
		t.Errorf("a plan changed it: %s", got)
	}
	s.must("installs", "drift", "acme", "flags", "--reconcile", "--auto-approve", "--watch")
	if got := k.kubectl("get", "configmap", "flags", "--output", "jsonpath={.data.mode}"); got != "prod" {
		t.Errorf("after the reconcile it is %s", got)
	}
	if out := s.must("installs", "drift", "acme", "--now", "--timeout", "45s"); !strings.Contains(out, "none") {
		t.Errorf("after the reconcile:\n%s", out)
	}
	drift(ctlapi.ComponentDriftStateNone)
	in.eventually(time.Minute, "the episode is over", func() error {
		var page ctlapi.DriftPage
		in.get("/drift?closed=true", &page)
		if len(page.Items) != 1 || page.Items[0].ClosedAt == nil || *page.Items[0].ClosedBy != "deployed" {
			return fmt.Errorf("%+v", page.Items)
		}
		return nil
	})
	events := s.must("events", "--type", "drift.changed", "--since", "1h", "-o", "json")
	if strings.Count(events, `"drift.changed"`) < 3 { // looked at, drifted, no longer
		t.Errorf("events:\n%s", events)
	}
}
