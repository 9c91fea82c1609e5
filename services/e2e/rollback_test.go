package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestRollback leads an install through an upgrade that fails half way: the rollback
// is offered where people look, brings back the release and the inputs of then, and
// what it leaves is what the install is to be.
func TestRollback(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	was := in.output("one")

	// Release 2 with another secret input: one comes out, two does not.
	const other = "another-canary-of-a-rollback-91c4"
	secrets := filepath.Join(t.TempDir(), "inputs")
	if err := os.WriteFile(secrets, []byte("canary="+other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("installs", "inputs", "acme", "--input-file", secrets)
	edit(t, filepath.Join(in.app, "src", "work", "main.tf"), "      exec 9>>", "      [ \"${var.value}\" != broken ] || { echo no such bucket >&2; exit 3; }\n      exec 9>>")
	edit(t, filepath.Join(in.app, "components", "two.toml"), `value  = "v1"`, `value  = "broken"`)
	for _, name := range []string{"one", "two", "three"} {
		edit(t, filepath.Join(in.app, "components", name+".toml"), `lines  = "20"`, `lines  = "1"`)
	}
	in.change("v2")
	_, errOut, code := s.run("deploy", "acme", "--auto-approve")
	if code == 0 {
		t.Fatal("the upgrade did not fail")
	}
	shows := func(out string, want ...string) {
		t.Helper()
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("no %q in:\n%s", text, out)
			}
		}
		if strings.Contains(out, canary) || strings.Contains(out, other) {
			t.Errorf("an input shows:\n%s", out)
		}
	}
	shows(errOut, "to go back: berth rollback acme", "from release 2 to 1, with the inputs of version 1", "inputs that get the value of then: canary", "secrets and data do not go back")
	shows(s.must("status", "acme"), "or go back: berth rollback acme")
	shows(s.must("why", "acme"), "berth rollback acme")

	// The plan shows what goes back, and does nothing.
	if out, errOut, code := s.run("rollback", "acme", "--plan"); code != 2 || !strings.Contains(out+errOut, "rolling acme back from release 2 to 1") {
		t.Errorf("the plan of the rollback: exit %d\n%s%s", code, out, errOut)
	}
	if _, errOut, code := s.run("rollback", "acme", "--to", "2"); code != 1 || !strings.Contains(errOut, "was never deployed well") {
		t.Errorf("back to what never came out: exit %d: %s", code, errOut)
	}

	shows(s.must("rollback", "acme", "--auto-approve"))
	var page ctlapi.WorkflowPage
	s.get("/workflows?install=acme&limit=1", &page)
	w := in.finished(page.Items[0].ID, time.Minute)
	if w.Kind != ctlapi.WorkflowKindRollback || w.State != "succeeded" || w.Rollback == nil || w.Rollback.Answers == nil || !slices.Equal(w.Rollback.Inputs, []string{"canary"}) {
		t.Fatalf("the rollback is %s %s, %+v: %s", w.Kind, w.State, w.Rollback, in.explain(w))
	}
	if got := in.output("one"); got["secret_sha256"] != was["secret_sha256"] {
		t.Errorf("one has %v, had %v", got["secret_sha256"], was["secret_sha256"])
	}
	var install ctlapi.Install
	s.get("/installs/acme", &install)
	if install.Release.Number != 1 || install.Health != "healthy" {
		t.Errorf("the install is at release %d and %s", install.Release.Number, install.Health)
	}
	out := s.must("status", "acme")
	if shows(out, "rollback done"); strings.Contains(out, "inputs") {
		t.Errorf("inputs are pending after the rollback:\n%s", out)
	}
	// What went back is what is wanted: a deploy of that release has nothing to do.
	if _, errOut, code := s.run("deploy", "acme", "--to", "1", "--plan"); code != 0 || !strings.Contains(errOut, "nothing to do") {
		t.Errorf("a deploy of what it went back to: exit %d: %s", code, errOut)
	}
	if _, errOut, code := s.run("rollback", "acme"); code != 1 || !strings.Contains(errOut, "has no older release to go back to") {
		t.Errorf("further back: exit %d: %s", code, errOut)
	}

	// One component alone: the rest stays where it is.
	edit(t, filepath.Join(in.app, "components", "two.toml"), `value  = "broken"`, `value  = "v3"`)
	in.change("v3")
	s.must("deploy", "acme", "--auto-approve")
	s.must("rollback", "acme/two", "--auto-approve")
	releases := map[string]int{}
	var resources ctlapi.ResourcePage
	s.get("/installs/acme/resources", &resources)
	for _, r := range resources.Items {
		if r.LiveRelease != nil {
			releases[r.Name] = r.LiveRelease.Number
		}
	}
	if releases["one"] != 3 || releases["two"] != 1 {
		t.Errorf("after the rollback of two, components are on releases %v, want one on 3 and two on 1", releases)
	}
}
