package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestStatus is what a person reads in a bad hour: a first provision that failed,
// the deploy that completed it, a second person's deploy, and a customer who paused
// the runner.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := &install{system: s, name: "acme", app: folder(t, "testdata/probe")}
	two := filepath.Join(in.app, "components", "two.toml")
	edit(t, filepath.Join(in.app, "src", "work", "main.tf"), "      exec 9>>", "      [ \"${var.value}\" != broken ] || { echo no such bucket >&2; exit 3; }\n      exec 9>>")
	edit(t, two, `value  = "v1"`, `value  = "broken"`)
	s.sync("probe", in.app)
	var made ctlapi.Install
	s.post("/installs", map[string]any{
		"name": "acme", "app": "probe", "customer": "acme", "create_customer": true, "stack": "local",
		"inputs": ctlapi.InputValues{"canary": canary}, "provision": true, "approve_all": true,
	}, &made)
	if w := in.finished(*made.WorkflowID, 2*time.Minute); w.State != "failed" {
		t.Fatalf("provision: %s: %s", w.State, in.explain(w))
	}
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	in.runner = stack.Runner.ID
	// show runs a command and keeps what it said for the test's log.
	show := func(args ...string) string {
		t.Helper()
		out := s.must(args...)
		t.Logf("berth %s\n%s", strings.Join(args, " "), out)
		return out
	}
	shows := func(out string, want ...string) {
		t.Helper()
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("no %q in:\n%s", text, out)
			}
		}
		if strings.Contains(out, canary) {
			t.Error("the canary is shown")
		}
	}

	t.Run("a first provision that failed", func(t *testing.T) {
		shows(show("status"), "provision failed", "acme: provision failed", " at component/two: ", "no such bucket")
		shows(show("why", "acme"), "component/two: ", "no such bucket", "try: berth retry ")
	})

	t.Run("a good deploy completes it, and its state follows", func(t *testing.T) {
		edit(t, two, `value  = "broken"`, `value  = "v1"`)
		in.sync("probe", in.app)
		shows(show("status"), "provision failed", "   -         2        -") // and perhaps an alert by now
		if w := in.finished(in.deploy(true).ID, 2*time.Minute); w.State != "succeeded" {
			t.Fatalf("deploy: %s", in.explain(w))
		}
		out := show("status", "acme")
		shows(out, "healthy", "2         2        -", "deploy done")
		var got ctlapi.Install
		s.get("/installs/acme", &got)
		if got.State != "live" || got.Health != "healthy" || strings.Contains(out, "failed") {
			t.Errorf("the install is %s and %s; status:\n%s", got.State, got.Health, out)
		}
	})

	t.Run("the second deploy names the first, and the newer request wins", func(t *testing.T) {
		in.change("v2")
		first := in.deploy(false, "one")
		c := in.proposed(first.ID, "component/one")
		_, errOut, code := s.run("deploy", "acme/one")
		shows(errOut, "note: ", " started a deploy ", first.ID, "this one takes its place for one")
		second := s.newestWorkflow("acme")
		in.proposed(second, "component/one")
		w := in.finished(first.ID, time.Minute)
		if code != 0 || w.State != "failed" || step(w, "component/one").Change.State != "superseded" {
			t.Errorf("exit %d; the first deploy: %s", code, in.explain(w))
		}
		t.Logf("berth deploy acme/one\n%s", errOut)
		_, errOut, code = s.run("approve", c.ID, "--auto-approve")
		if code == 0 {
			t.Error("a superseded change was approved")
		}
		t.Logf("berth approve\n%s", errOut)
		shows(errOut, "superseded by chg_", second, " requested")
		out := show("why", first.ID)
		shows(out, "superseded by chg_")
		if strings.Contains(out, "retry") {
			t.Errorf("a superseded deploy advises a retry:\n%s", out)
		}
		s.must("workflows", "cancel", second)
		in.finished(second, time.Minute)
		out, errOut, _ = s.run("workflows", "watch", second)
		t.Logf("berth workflows watch\n%s%s", out, errOut)
		shows(out+errOut, "cancelled; nothing was applied", "not done: component/one")
	})

	t.Run("the customer's switch, with its reason", func(t *testing.T) {
		turn := func(args ...string) {
			t.Helper()
			args = append([]string{"--data", in.runnerDir()}, args...)
			if out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), args...).CombinedOutput(); err != nil {
				t.Fatalf("berth-runner %v: %v\n%s", args, err, out)
			}
		}
		turn("pause", "--reason", "change freeze")
		w := in.deploy(true, "one")
		in.eventually(time.Minute, "the workflow says why the runner takes nothing", func() error {
			if held := in.workflow(w.ID).Held; held == nil || !strings.Contains(*held, "switch is at pause since 20") || !strings.Contains(*held, ": change freeze") {
				return fmt.Errorf("held: %v", held)
			}
			return nil
		})
		shows(show("status"), "healthy, paused", "acme: the customer's switch is at pause since 20", ": change freeze; the deploy waits for it")
		shows(show("why", "acme"), "the customer's switch is at pause since 20", "change freeze", "ask the customer")
		turn("resume")
		if got := in.finished(w.ID, time.Minute); got.State != "succeeded" {
			t.Errorf("after the pause: %s", in.explain(got))
		}
		if out := show("status"); strings.Contains(out, "switch") {
			t.Errorf("the switch is at run, and status says:\n%s", out)
		}
	})

	t.Run("a deprovisioned install looks like one", func(t *testing.T) {
		var w ctlapi.Workflow
		in.post("/installs/acme/workflows", map[string]any{"kind": "deprovision", "approve_all": true, "confirm": "acme"}, &w)
		if got := in.finished(w.ID, 2*time.Minute); got.State != "succeeded" {
			t.Fatalf("deprovision: %s", in.explain(got))
		}
		shows(show("status"), "deprovisioned", "deprovision done")
		shows(show("why", "acme"), "it is deprovisioned: nothing of it is left")
	})
}

// newestWorkflow is the id of the newest workflow of an install.
func (s *system) newestWorkflow(install string) string {
	s.t.Helper()
	var page ctlapi.WorkflowPage
	s.get("/workflows?install="+install+"&limit=1", &page)
	if len(page.Items) == 0 {
		s.t.Fatalf("install %s has no workflow", install)
	}
	return page.Items[0].ID
}
