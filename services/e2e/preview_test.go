package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// previewed is what -o json of a preview has.
type previewed struct {
	ctlapi.Workflow
	Changes []ctlapi.Change `json:"changes"`
}

// preview runs a command with --plan twice, for a program and for a person. It
// must find changes.
func (in *install) preview(args ...string) (previewed, string) {
	in.t.Helper()
	out, errOut, code := in.run(append(args, "--plan", "-o", "json")...)
	var got previewed
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 2 || got.State != "succeeded" {
		in.t.Fatalf("berth %s --plan -o json: exit %d, %v\n%s%s", strings.Join(args, " "), code, err, out, errOut)
	}
	_, errOut, code = in.run(append(args, "--plan")...)
	if code != 2 {
		in.t.Fatalf("berth %s --plan: exit %d\n%s", strings.Join(args, " "), code, errOut)
	}
	return got, errOut
}

// changed are the changes of a preview: what each does with which object.
func (p previewed) changed() []string {
	var all []string
	for _, c := range p.Changes {
		name := string(c.Kind)
		if c.Resource != nil {
			name += " " + c.Resource.Name
		}
		for _, o := range c.Plan.Objects {
			all = append(all, name+": "+o.Action+" "+o.Address)
		}
	}
	slices.Sort(all)
	return all
}

// standing is what no preview may move: the install, what its modules did, and
// the jobs of its runner that are no plans.
func (in *install) standing() map[string]any {
	in.t.Helper()
	var install ctlapi.Install
	in.get("/installs/"+in.name, &install)
	db := in.database()
	defer db.Close()
	var jobs int
	if err := db.QueryRow(in.t.Context(), `SELECT count(*) FROM berth.runner_jobs WHERE install_id = $1 AND mutates`, install.ID).Scan(&jobs); err != nil {
		in.t.Fatal(err)
	}
	return map[string]any{
		"state": install.State, "inputs": install.InputsVersion, "release": install.Release, "effects": in.effects(), "jobs": jobs,
	}
}

// TestPreviews shows what each kind of workflow would do, and does none of it.
func TestPreviews(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := &install{system: s, name: "acme", app: folder(t, "testdata/probe")}
	s.sync("probe", in.app)
	s.post("/installs", map[string]any{
		"name": "acme", "app": "probe", "customer": "acme", "create_customer": true, "stack": "local", "inputs": ctlapi.InputValues{"canary": canary},
	}, nil)
	still := func(t *testing.T, before map[string]any) {
		t.Helper()
		if diff := cmp.Diff(before, in.standing()); diff != "" {
			t.Errorf("the preview changed something (-want +got):\n%s", diff)
		}
	}

	t.Run("a first provision, as far as it can be seen", func(t *testing.T) {
		before := in.standing()
		got, text := in.preview("installs", "provision", "acme")
		if diff := cmp.Diff([]string{"accept: create script alive", "deploy sandbox: create terraform_data.dir"}, got.changed()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if w := step(got.Workflow, "component/one"); w.State != "skipped" || !strings.Contains(text, "cannot be planned yet: reads sandbox.dir, which is not there yet") {
			t.Errorf("component one is %s:\n%s", w.State, text)
		}
		still(t, before)
	})

	s.must("installs", "provision", "acme", "--auto-approve")
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	in.files = filepath.Join(s.dir, "runners", stack.Runner.ID, "install", "probe")
	in.change("v2")

	t.Run("a deploy, and what reads what it changes", func(t *testing.T) {
		before := in.standing()
		got, text := in.preview("deploy", "acme")
		if diff := cmp.Diff([]string{"deploy one: replace terraform_data.work"}, got.changed()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		want := []ctlapi.MayChange{{Reads: "one.value", Of: "one"}}
		if diff := cmp.Diff(want, step(got.Workflow, "component/three").MayChange); diff != "" {
			t.Errorf("what three may change because of (-want +got):\n%s", diff)
		}
		if may := step(got.Workflow, "component/two").MayChange; len(may) > 0 || !strings.Contains(text, "may change: reads one.value") ||
			!strings.Contains(text, "would destroy 1:\n  - component one: terraform_data.work") {
			t.Errorf("two may change: %v\n%s", may, text)
		}
		still(t, before)
	})

	t.Run("the sandbox alone", func(t *testing.T) {
		var w ctlapi.Workflow
		s.post("/installs/acme/workflows", map[string]any{"kind": "deploy", "components": []string{"sandbox"}, "approve_all": true}, &w)
		got := in.finished(w.ID, time.Minute)
		var names []string
		for _, st := range got.Steps {
			names = append(names, st.Name)
		}
		if want := []string{"runner", "release", "sandbox", "check/alive"}; got.State != "succeeded" || !slices.Equal(names, want) {
			t.Errorf("%s; steps %v, want %v", in.explain(got), names, want)
		}
		if _, errOut, code := s.run("deploy", "acme", "--sandbox", "--plan"); code != 0 || !strings.Contains(errOut, "nothing to do") {
			t.Errorf("exit %d: %s", code, errOut)
		}
	})

	s.must("deploy", "acme", "--auto-approve")

	t.Run("a rollback, with what it destroys", func(t *testing.T) {
		before := in.standing()
		got, text := in.preview("rollback", "acme", "--to", "1")
		if diff := cmp.Diff([]string{"deploy one: replace terraform_data.work"}, got.changed()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if !strings.Contains(text, "would destroy 1:\n  - component one: terraform_data.work") {
			t.Errorf("the preview is\n%s", text)
		}
		still(t, before)
	})

	t.Run("inputs that nobody has set", func(t *testing.T) {
		before := in.standing()
		const other = "canary-of-a-preview-5b1e"
		secrets := filepath.Join(t.TempDir(), "inputs")
		if err := os.WriteFile(secrets, []byte("canary="+other+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, text := in.preview("installs", "inputs", "acme", "--input-file", secrets)
		var outputs []string
		for _, c := range got.Changes {
			for _, o := range c.Plan.Outputs {
				outputs = append(outputs, c.Resource.Name+"."+o.Path)
			}
		}
		if want := []string{"one.secret", "one.secret_sha256"}; !slices.Equal(outputs, want) || got.InputsVersion >= 0 {
			t.Errorf("with inputs %d outputs %v change, want %v\n%s", got.InputsVersion, outputs, want, text)
		}
		if diff := cmp.Diff([]ctlapi.MayChange{{Reads: "one.secret", Of: "one"}}, step(got.Workflow, "component/three").MayChange); diff != "" {
			t.Errorf("what three may change because of (-want +got):\n%s", diff)
		}
		if raw, _ := json.Marshal(got); strings.Contains(text+string(raw), other) || strings.Contains(text+string(raw), canary) {
			t.Error("the preview shows a sensitive input")
		}
		if _, errOut, code := s.run("deploy", "acme", "--plan"); code != 0 || !strings.Contains(errOut, "nothing to do") {
			t.Errorf("a deploy with the inputs in force: exit %d: %s", code, errOut)
		}
		still(t, before)
		if _, errOut, code := s.run("installs", "inputs", "acme", "--set", "nonsense=1", "--plan"); code != 1 || !strings.Contains(errOut, `the app has no input "nonsense"`) {
			t.Errorf("an input that there is not: exit %d: %s", code, errOut)
		}
	})

	t.Run("a component switched off and on", func(t *testing.T) {
		before := in.standing()
		edit(t, filepath.Join(in.app, "components", "three.toml"), "terraform_version", "toggleable        = true\nterraform_version")
		in.sync("probe", in.app)
		got, text := in.preview("installs", "toggle", "acme", "three", "off")
		if diff := cmp.Diff([]string{"teardown three: delete terraform_data.work"}, got.changed()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if !strings.Contains(text, "would destroy 1:\n  - component three: terraform_data.work") {
			t.Errorf("the preview is\n%s", text)
		}
		if _, errOut, code := s.run("installs", "toggle", "acme", "three", "on", "--plan"); code != 0 || !strings.Contains(errOut, "nothing to do") {
			t.Errorf("on, as it is: exit %d: %s", code, errOut)
		}
		still(t, before)

		s.must("installs", "toggle", "acme", "three", "off")
		s.must("deploy", "acme", "--auto-approve", "--confirm", "acme")
		before = in.standing()
		got, _ = in.preview("installs", "toggle", "acme", "three", "on")
		if diff := cmp.Diff([]string{"deploy three: create terraform_data.work"}, got.changed()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		still(t, before)
		s.must("installs", "toggle", "acme", "three", "on")
		s.must("deploy", "acme", "--auto-approve")
	})

	t.Run("a deprovision, with what it destroys", func(t *testing.T) {
		before := in.standing()
		got, text := in.preview("installs", "deprovision", "acme")
		want := []string{
			"forget: delete script alive", "teardown one: delete terraform_data.work", "teardown sandbox: delete terraform_data.dir",
			"teardown three: delete terraform_data.work", "teardown two: delete terraform_data.work",
		}
		if diff := cmp.Diff(want, got.changed()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if !strings.Contains(text, "would destroy 4:\n") {
			t.Errorf("the preview is\n%s", text)
		}
		if _, err := os.Stat(in.files); err != nil {
			t.Error(err)
		}
		still(t, before)
	})
}
