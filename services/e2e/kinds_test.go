package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// about are the steps of an install's newest workflow that are about a resource or
// run an action of the life cycle: what each is, how it ended and why it is in.
func (in *install) about() []string {
	in.t.Helper()
	var page ctlapi.WorkflowPage
	in.get("/workflows?install="+in.name+"&limit=1", &page)
	var w ctlapi.Workflow
	in.get("/workflows/"+page.Items[0].ID, &w)
	all := []string{string(w.Kind) + " " + string(w.State)}
	for _, s := range w.Steps {
		if s.Resource != nil || strings.HasPrefix(s.Reason, "trigger ") {
			all = append(all, s.Kind+" "+s.Name+" "+string(s.State)+": "+s.Reason)
		}
	}
	return all
}

// TestWorkflowKinds leads one install through the kinds that follow its provision,
// with a runner that really does them.
func TestWorkflowKinds(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := &install{system: s, name: "acme", app: folder(t, "testdata/probe")}
	tell := "name = \"tell\"\n"
	for _, point := range []string{"pre-update-inputs", "post-update-inputs", "pre-reprovision-sandbox", "post-deprovision-sandbox"} {
		tell += "[[triggers]]\ntype = \"" + point + "\"\n"
	}
	tell += "[[steps]]\nname = \"tell\"\ninline_contents = \"echo told\"\n"
	if err := os.WriteFile(filepath.Join(in.app, "actions", "tell.toml"), []byte(tell), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sync("probe", in.app)
	s.post("/installs", map[string]any{
		"name": "acme", "app": "probe", "customer": "acme", "create_customer": true, "stack": "local", "inputs": ctlapi.InputValues{"canary": canary},
	}, nil)
	if _, errOut, code := s.run("installs", "reprovision", "acme"); code != 1 || !strings.Contains(errOut, "was never provisioned") {
		t.Errorf("reprovision of what was never provisioned: exit %d: %s", code, errOut)
	}
	s.must("installs", "provision", "acme", "--auto-approve")
	want := func(lines ...string) {
		t.Helper()
		if diff := cmp.Diff(lines, in.about()); diff != "" {
			t.Errorf("the workflow (-want +got):\n%s", diff)
		}
	}

	secrets := filepath.Join(t.TempDir(), "inputs")
	if err := os.WriteFile(secrets, []byte("canary=another-canary-71f0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("installs", "inputs", "acme", "--input-file", secrets, "--apply", "--auto-approve")
	want("input_update succeeded",
		"action pre-update-inputs/tell succeeded: trigger pre-update-inputs",
		"deploy component/one succeeded: refers to input canary (components/one.toml: vars.secret)",
		"deploy component/three succeeded: needs one",
		"action post-update-inputs/tell succeeded: trigger post-update-inputs")

	if _, errOut, code := s.run("installs", "teardown", "acme", "one", "--confirm", "acme", "--auto-approve"); code != 1 || !strings.Contains(errOut, `component "three" needs "one"`) {
		t.Errorf("teardown of what is needed: exit %d: %s", code, errOut)
	}
	s.must("installs", "teardown", "acme", "one", "--with-dependents", "--confirm", "acme", "--auto-approve")
	want("teardown succeeded", "teardown component/three succeeded: needs one", "teardown component/one succeeded: asked for")

	s.must("installs", "reprovision", "acme", "--sandbox", "--without-components", "--auto-approve")
	want("reprovision_sandbox succeeded", "action pre-reprovision-sandbox/tell succeeded: trigger pre-reprovision-sandbox", "deploy sandbox succeeded: asked for")

	if err := os.Remove(filepath.Join(in.app, "components", "two.toml")); err != nil {
		t.Fatal(err)
	}
	s.must("sync", in.app, "--app", "probe", "--prune", "--wait", "--confirm", "probe")
	if out := s.must("installs", "resources", "acme"); !strings.Contains(out, "orphaned") {
		t.Errorf("no resource is orphaned:\n%s", out)
	}
	s.must("deploy", "acme", "--auto-approve")
	var two ctlapi.Resource
	s.get("/installs/acme/resources/two", &two)
	if two.State != ctlapi.ResourceStateOrphaned {
		t.Errorf("after a deploy, what is orphaned is %s", two.State)
	}
	if _, errOut, code := s.run("installs", "teardown", "acme", "--orphans", "--auto-approve"); code == 0 || !strings.Contains(errOut, "component two") {
		t.Errorf("orphans without a confirmation: exit %d: %s", code, errOut)
	}
	var w ctlapi.Workflow
	s.post("/installs/acme/workflows", ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindRemoveOrphans, Confirm: "acme"}, &w)
	c := in.proposed(w.ID, "component/two")
	if c.Kind != ctlapi.ChangeKindTeardown || !strings.Contains(s.must("changes", "show", c.ID, "--text"), "to delete") {
		t.Errorf("the removal is proposed as a %s", c.Kind)
	}
	in.decide(c, "deny")
	in.finished(w.ID, time.Minute)
	if s.get("/installs/acme/resources/two", &two); two.State != ctlapi.ResourceStateOrphaned {
		t.Errorf("after its removal was denied, what is orphaned is %s", two.State)
	}
	s.must("installs", "teardown", "acme", "--orphans", "--confirm", "acme", "--auto-approve")
	want("remove_orphans succeeded", "teardown component/two succeeded: it is no longer part of the app")

	s.must("installs", "deprovision", "acme", "--sandbox", "--with-dependents", "--confirm", "acme", "--auto-approve")
	want("deprovision_sandbox succeeded", "teardown component/three succeeded: needs the sandbox", "teardown component/one succeeded: needs the sandbox",
		"teardown sandbox succeeded: asked for", "action post-deprovision-sandbox/tell succeeded: trigger post-deprovision-sandbox")
	var gone ctlapi.Install
	s.get("/installs/acme", &gone)
	if gone.State != ctlapi.InstallStateDeprovisioned {
		t.Errorf("at the end the install is %s", gone.State)
	}
}
