package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestKubernetesLife is the whole life of an install of examples/shop on a real
// cluster, by the command line: it is provisioned with approvals and a secret that
// only the customer has, changed, upgraded badly and rolled back, looked after,
// provisioned again, and taken down piece by piece. A receiver that fails half the
// time gets all that happens.
func TestKubernetesLife(t *testing.T) {
	t.Parallel()
	s := startOnCluster(t, webhookAllow)
	app := shopFolder(t)
	payment := `
[[secret]]
name                        = "payment_token"
description                 = "Token of your account at the payment provider."
required                    = true
kubernetes_sync             = true
kubernetes_secret_namespace = "{{ .nuon.sandbox.outputs.namespace }}"
kubernetes_secret_name      = "payment"
`
	edit(t, filepath.Join(app, "secrets.toml"), "auto_generate = true\n", "auto_generate = true\n"+payment)
	edit(t, filepath.Join(app, "inputs.toml"), `default      = "2"`, `default      = "1"`)
	s.must("sync", app, "--app", "shop", "--wait")

	hook := s.receives("pager")
	var at ctlapi.EventPage
	s.get("/events?from_now=true", &at)

	k := &shop{install: &install{system: s, name: "t" + suffix(), app: app}}
	k.namespace = "shop-" + k.name
	t.Cleanup(func() {
		if _, err := k.command("kubectl", "delete", "namespace", k.namespace, "--ignore-not-found", "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	in := k.install

	// Provision: it says what it waits for, and does nothing that nobody approved.
	var made ctlapi.Install
	s.post("/installs", map[string]any{"name": in.name, "app": "shop", "customer": in.name, "create_customer": true, "stack": "local", "provision": true}, &made)
	in.id = made.ID
	decided := 0
	in.eventually(rolloutTimeout, "the provision waits for the secret", func() error {
		decided += k.approveProposed(in.workflow(*made.WorkflowID))
		if why := s.must("why", in.name); !strings.Contains(why, "payment_token") || !strings.Contains(why, "berth-runner secrets set payment_token") {
			return errors.New(why)
		}
		return nil
	})
	var stack ctlapi.Stack
	s.get("/installs/"+in.name+"/stack", &stack)
	in.runner = stack.Runner.ID
	in.set("payment_token", customerText)
	if decided += k.approveEach(*made.WorkflowID); decided < 5 {
		t.Errorf("%d changes of the provision were decided", decided)
	}
	if got := k.secretKey("payment", "value"); got != customerText {
		t.Errorf("the copy of the secret has %q", got)
	}
	k.healthy()

	// A change of inputs that one of five components reads.
	s.must("installs", "inputs", in.name, "--set", "notice=Closed on Monday", "--apply", "--auto-approve")
	deploys := slices.DeleteFunc(in.about(), func(line string) bool { return !strings.HasPrefix(line, "deploy component/") })
	if len(deploys) != 1 || deploys[0] != "deploy component/notices succeeded: refers to input notice (components/notices.yaml)" {
		t.Errorf("the input changed %q", deploys)
	}
	if got := k.field("configmap/notices", "{.data.door}"); got != "Closed on Monday" {
		t.Errorf("the notice says %q", got)
	}

	// An upgrade whose probe finds nothing: it fails, going back is offered, and helps.
	before := k.field("deployment/web", memoryLimit)
	probe := filepath.Join(app, "src", "chart", "templates", "probe.yaml")
	edit(t, probe, "/healthz\"]", "/nowhere\"]")
	edit(t, filepath.Join(app, "components", "web.toml"), `"64Mi"`, `"96Mi"`)
	s.must("sync", app, "--app", "shop", "--wait")
	if _, errOut, code := s.run("deploy", in.name, "--auto-approve"); code == 0 || !strings.Contains(errOut, "berth rollback "+in.name) {
		t.Fatalf("the upgrade: exit %d\n%s", code, errOut)
	}
	s.must("rollback", in.name, "--auto-approve")
	if got := k.field("deployment/web", memoryLimit); got != before {
		t.Errorf("after the rollback the limit is %s, it was %s", got, before)
	}
	k.healthy()

	// The nightly report, and the secret rotated: copied again, and the next report has another seal.
	seal := k.nightly()
	in.rotate("report_key")
	in.set("payment_token", rotatedText)
	in.eventually(goOnTimeout, "the copy is behind", func() error {
		if why := s.must("why", in.name); !strings.Contains(why, "berth installs sync-secrets "+in.name) {
			return errors.New(why)
		}
		return nil
	})
	s.must("installs", "sync-secrets", in.name, "--auto-approve", "--watch")
	if got := k.secretKey("payment", "value"); got != rotatedText {
		t.Errorf("after the rotation the copy has %q", got)
	}
	if again := k.nightly(); again == seal {
		t.Error("the report is sealed with the key that was rotated")
	}

	// The vendor repairs the probe. A reprovision brings everything about again.
	edit(t, probe, "/nowhere\"]", "/healthz\"]")
	s.must("sync", app, "--app", "shop", "--wait")
	s.must("installs", "reprovision", in.name, "--auto-approve")

	// One component is taken down by name, another one left the app.
	s.must("installs", "teardown", in.name, "extras", "--confirm", in.name, "--auto-approve")
	if left := k.kubectl("get", "poddisruptionbudgets", "--output", "name"); left != "" {
		t.Errorf("after its teardown there is %s", left)
	}
	for _, file := range []string{"notices.toml", "notices.yaml"} {
		if err := os.Remove(filepath.Join(app, "components", file)); err != nil {
			t.Fatal(err)
		}
	}
	s.must("sync", app, "--app", "shop", "--prune", "--wait", "--confirm", "shop")
	if got := k.field("configmap/notices", "{.metadata.name}"); got != "notices" {
		t.Errorf("what left the app left the cluster too: %s", got)
	}
	s.must("installs", "teardown", in.name, "--orphans", "--confirm", in.name, "--auto-approve")
	if _, err := k.command("kubectl", "--namespace", k.namespace, "get", "configmap", "notices"); err == nil {
		t.Error("the orphan is still there")
	}

	s.must("installs", "deprovision", in.name, "--confirm", in.name, "--auto-approve")
	if left := k.traces(); len(left) > 0 {
		t.Errorf("left in the cluster: %v", left)
	}

	kinds := hook.gotAll(s, at.Position)
	for _, want := range []string{
		"install.created", "install.provisioning", "install.live", "install.deprovisioned", "workflow.waiting", "step.waiting", "change.proposed", "change.approved", "change.applied",
		"inputs.changed", "config.created", "release.created", "build.succeeded", "workflow.failed", "change.failed", "workflow.succeeded", "action_run.succeeded",
		"secret.set", "resource.orphaned", "resource.absent", "health.changed", "runner.online",
	} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no event %s", want)
		}
	}
}

// approveEach approves what a workflow proposes, one change at a time, until it has
// succeeded. It returns how many decisions that took.
func (k *shop) approveEach(workflow string) (decided int) {
	k.t.Helper()
	k.eventually(rolloutTimeout, "workflow "+workflow+" succeeds", func() error {
		w := k.workflow(workflow)
		switch w.State {
		case "succeeded":
			return nil
		case "failed", "cancelled":
			k.t.Fatalf("workflow is %s: %s", w.State, k.explain(w))
		}
		decided += k.approveProposed(w)
		return errors.New(k.explain(w))
	})
	return decided
}

// approveProposed approves what waits for a decision now, and returns how many that were.
func (k *shop) approveProposed(w ctlapi.Workflow) (decided int) {
	k.t.Helper()
	for _, step := range w.Steps {
		if step.Change == nil || step.Change.State != "proposed" {
			continue
		}
		var c ctlapi.Change
		k.get("/changes/"+step.Change.ID, &c)
		if c.State == "proposed" {
			k.decide(c, "approve")
			decided++
		}
	}
	return decided
}

// healthy waits until the install is. After a bad run the check has to be good twice,
// and runs by itself each minute only.
func (k *shop) healthy() {
	k.t.Helper()
	k.must("actions", "run", k.name, "shop_answers", "--watch")
	k.eventually(time.Minute+goOnTimeout, "the install is healthy", func() error {
		var h ctlapi.Health
		if err := k.call("GET", "/installs/"+k.name+"/health", nil, &h); err != nil {
			return err
		}
		if h.Verdict != "healthy" {
			return fmt.Errorf("it is %s: %+v", h.Verdict, h.Checks)
		}
		return nil
	})
}

// nightly runs the nightly report by hand and returns its seal.
func (k *shop) nightly() string {
	k.t.Helper()
	k.must("actions", "run", k.name, "nightly", "--watch", "--auto-approve")
	var page ctlapi.ActionRunPage
	k.get("/action-runs?install="+k.name+"&action=nightly&limit=1", &page)
	if len(page.Items) != 1 || page.Items[0].State != "succeeded" {
		k.t.Fatalf("runs: %+v", page.Items)
	}
	raw, err := json.Marshal(page.Items[0].Outputs)
	if err != nil {
		k.t.Fatal(err)
	}
	var outputs struct {
		Report struct{ Products, Seal string } // the step
	}
	if err := json.Unmarshal(raw, &outputs); err != nil || outputs.Report.Products == "" || len(outputs.Report.Seal) != 64 {
		k.t.Fatalf("the report says %s: %v", raw, err)
	}
	return outputs.Report.Seal
}
