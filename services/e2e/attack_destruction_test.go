package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestAttackDestruction: on an install that approves everything by itself, with
// every flag and field that approves, nothing is removed until its name was
// given; and then it is, with what failed half way.
func TestAttackDestruction(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	edit(t, filepath.Join(in.app, "components", "three.toml"), "terraform_version", "toggleable        = true\nterraform_version")
	in.sync("probe", in.app)
	if err := s.call("PATCH", "/installs/acme", map[string]any{"approval_option": "approve_all"}, nil); err != nil {
		t.Fatal(err)
	}
	s.must("installs", "toggle", "acme", "three", "off")
	if err := os.Remove(filepath.Join(in.app, "components", "two.toml")); err != nil {
		t.Fatal(err)
	}
	state := func() []string {
		var all []string
		var resources ctlapi.ResourcePage
		s.get("/installs/acme/resources", &resources)
		for _, r := range resources.Items {
			all = append(all, r.Name+" "+string(r.State))
		}
		var workflows ctlapi.WorkflowPage
		s.get("/workflows", &workflows)
		for _, w := range workflows.Items {
			all = append(all, w.ID)
		}
		var config ctlapi.App
		s.get("/apps/probe", &config)
		return append(append(all, in.effects()...), config.Config.ID)
	}
	before := state()

	for _, tc := range []struct {
		name string
		args []string
		says string
	}{
		{"deprovision", []string{"installs", "deprovision", "acme"}, "component one (live)"},
		{"deprovision, approving all", []string{"installs", "deprovision", "acme", "--auto-approve"}, "--confirm acme"},
		{"deprovision with another name", []string{"installs", "deprovision", "acme", "--auto-approve", "--confirm", "yes"}, "not the name"},
		{"deploy of what is off", []string{"deploy", "acme", "--auto-approve"}, "component three\n"},
		{"provision of what is off", []string{"installs", "provision", "acme", "--auto-approve"}, "component three\n"},
		{"forget", []string{"installs", "forget", "acme"}, "--confirm acme"},
		{"delete of the app", []string{"apps", "delete", "probe"}, "--confirm probe"},
		{"prune", []string{"sync", in.app, "--app", "probe", "--prune", "--wait"}, "component two\n"},
		{"prune with the name of an install", []string{"sync", in.app, "--app", "probe", "--prune", "--confirm", "acme"}, "not the name"},
	} {
		_, errOut, code := s.run(tc.args...)
		if code != 64 || !strings.Contains(errOut, tc.says) || !strings.Contains(errOut, "nothing was done") {
			t.Errorf("%s: exit code %d\n%swant %q in it", tc.name, code, errOut, tc.says)
		}
	}
	for _, tc := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/installs/acme/workflows", map[string]any{"kind": "deprovision", "approve_all": true}},
		{"POST", "/installs/acme/workflows", map[string]any{"kind": "deprovision", "approve_all": true, "confirm": "ACME"}},
		{"POST", "/installs/acme/workflows", map[string]any{"kind": "deprovision", "approve_all": true, "confirm": in.id}},
		{"POST", "/installs/acme/workflows", map[string]any{"kind": "deploy", "approve_all": true}},
		{"DELETE", "/installs/acme", nil},
		{"DELETE", "/apps/probe", nil},
	} {
		if err := s.call(tc.method, tc.path, tc.body, nil); err == nil {
			t.Errorf("%s %s %v is done", tc.method, tc.path, tc.body)
		}
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Fatalf("what nobody confirmed (-before +after):\n%s", diff)
	}

	in.failsHalfWay("half")
	s.must("sync", in.app, "--app", "probe", "--prune", "--wait", "--confirm", "probe")
	if _, errOut, code := s.run("deploy", "acme", "--auto-approve", "--confirm", "acme"); code != 1 || !strings.Contains(errOut, "half failed") {
		t.Fatalf("a deploy that fails half way: exit code %d\n%s", code, errOut)
	}
	s.must("installs", "deprovision", "acme", "--auto-approve", "--confirm", "acme")
	for _, want := range []string{"gone one v1", "gone two v1", "gone three after v1", "gone half"} {
		if !slices.Contains(in.effects(), want) {
			t.Errorf("no effect %q: %v", want, in.effects())
		}
	}
	s.must("installs", "forget", "acme", "--confirm", "acme")
	s.must("apps", "delete", "probe", "--confirm", "probe")
	s.eventually(time.Minute, "no install is left", func() error {
		if out := s.must("installs", "list", "-o", "name"); strings.TrimSpace(out) != "" {
			return os.ErrExist
		}
		return nil
	})
}

// failsHalfWay adds a component that makes one thing and then fails.
func (in *install) failsHalfWay(name string) {
	in.t.Helper()
	module := `variable "dir" { type = string }

resource "terraform_data" "made" {
  input = { dir = var.dir }
  provisioner "local-exec" {
    when    = destroy
    command = "echo 'gone ` + name + `' >>'${self.input.dir}/effects'"
  }
}

resource "terraform_data" "fails" {
  depends_on = [terraform_data.made]
  provisioner "local-exec" { command = "exit 1" }
}
`
	component, err := os.ReadFile(filepath.Join(in.app, "components", "one.toml"))
	if err != nil {
		in.t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(component), "[vars]")
	head = strings.Replace(strings.Replace(head, `"one"`, strconv.Quote(name), 1), "src/work", "src/"+name, 1)
	for file, text := range map[string]string{
		filepath.Join("src", name, "main.tf"):     module,
		filepath.Join("components", name+".toml"): head + "[vars]\ndir = \"{{ .nuon.sandbox.outputs.dir }}\"\n",
	} {
		file = filepath.Join(in.app, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			in.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			in.t.Fatal(err)
		}
	}
}
