package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// worldMirror builds the provider whose resources are files, and returns a configuration of
// Terraform with a mirror that has it.
func worldMirror(t *testing.T) (config string) {
	t.Helper()
	dir := home(t)
	pkg := filepath.Join(dir, "mirror", "berth.test", "berth", "world", "1.0.0", runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(pkg, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(pkg, "terraform-provider-world_v1.0.0"),
		"github.com/berth-dev/berth/runner/engine/terraform/terraformtest/world").CombinedOutput()
	if err != nil {
		t.Fatalf("build the provider: %v\n%s", err, out)
	}
	config = filepath.Join(dir, "mirror.tfrc")
	text := "provider_installation {\n  filesystem_mirror {\n    path = \"" + filepath.Join(dir, "mirror") + "\"\n  }\n}\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return config
}

const world = `
terraform {
  required_providers {
    world = { source = "berth.test/berth/world" }
  }
}
`

// TestTerraformDrift: somebody edits what the sandbox made and deletes what a module made.
// The runner says which resource and which attribute, installs and lists show it, a reconcile
// of each puts it back, and then nothing has drifted.
func TestTerraformDrift(t *testing.T) {
	t.Parallel()
	s := start(t, "TF_CLI_CONFIG_FILE="+worldMirror(t))
	in := s.probe("acme")
	module := filepath.Join(in.app, "src", "flags")
	for path, text := range map[string]string{
		filepath.Join(in.app, "src", "base", "world.tf"): world + `
resource "world_file" "motd" {
  depends_on = [terraform_data.dir]
  path       = "${var.install_dir}/probe/motd"
  text       = "as deployed"
}
`,
		filepath.Join(module, "main.tf"): world + `
variable "dir" { type = string }
variable "secret" {
  type      = string
  sensitive = true
}
resource "world_file" "flags" {
  path   = "${var.dir}/flags"
  text   = "prod"
  secret = var.secret
}
`,
		filepath.Join(in.app, "components", "flags.toml"): `name = "flags"
type = "terraform_module"
terraform_version = ">= 1.5.0, < 2.0.0"
drift_schedule = "0 0 1 1 *"
[berth]
local_source = "src/flags"
[vars]
dir = "{{ .nuon.sandbox.outputs.dir }}"
secret = "{{ .nuon.inputs.inputs.canary }}"
`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.sync("probe", in.app)
	if w := in.finished(in.deploy(true, "sandbox", "flags").ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	states := func() map[string]ctlapi.ComponentDriftState {
		t.Helper()
		var all ctlapi.InstallDrift
		in.get("/installs/acme/drift", &all)
		found := map[string]ctlapi.ComponentDriftState{}
		for _, c := range all.Components {
			found[c.Name] = c.State
		}
		return found
	}
	edited, err := json.Marshal(map[string]any{"text": "by hand"})
	if err == nil {
		err = os.WriteFile(filepath.Join(in.files, "motd"), edited, 0o600)
	}
	if err == nil {
		err = os.Remove(filepath.Join(in.files, "flags"))
	}
	if err != nil {
		t.Fatal(err)
	}
	out := s.must("installs", "drift", "acme", "--now", "--timeout", "90s")
	for _, want := range []string{
		"world_file.motd", `text is "by hand", deployed was "as deployed"`, "world_file.flags", "it was deleted outside of Terraform", "berth installs drift acme sandbox --reconcile",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, canary) {
		t.Errorf("it says a secret:\n%s", out)
	}
	if now := states(); now["sandbox"] != ctlapi.ComponentDriftStateDrifted || now["flags"] != ctlapi.ComponentDriftStateDrifted || now["one"] != ctlapi.ComponentDriftStateNone {
		t.Errorf("after the edits: %v", now)
	}
	if out := s.must("drift", "list"); !strings.Contains(out, "sandbox") || !strings.Contains(out, "flags") {
		t.Errorf("the list of drift:\n%s", out)
	}

	_, plan, code := s.run("installs", "drift", "acme", "sandbox", "--reconcile", "--plan")
	if code != 2 || !strings.Contains(plan, "world_file.motd") || !strings.Contains(plan, `"by hand" → "as deployed"`) {
		t.Errorf("the plan, %d:\n%s", code, plan)
	}
	for _, name := range []string{"sandbox", "flags"} {
		s.must("installs", "drift", "acme", name, "--reconcile", "--auto-approve", "--watch")
	}
	if motd, err := os.ReadFile(filepath.Join(in.files, "motd")); err != nil || !strings.Contains(string(motd), "as deployed") {
		t.Errorf("after the reconcile the file is %s (%v)", motd, err)
	}
	s.must("installs", "drift", "acme", "--now", "--timeout", "90s")
	if now := states(); now["sandbox"] != ctlapi.ComponentDriftStateNone || now["flags"] != ctlapi.ComponentDriftStateNone {
		t.Errorf("after the reconcile: %v", now)
	}
	in.eventually(time.Minute, "both episodes are over", func() error {
		var page ctlapi.DriftPage
		in.get("/drift?closed=true", &page)
		if len(page.Items) != 2 || page.Items[0].ClosedAt == nil || page.Items[1].ClosedAt == nil {
			return fmt.Errorf("%+v", page.Items)
		}
		return nil
	})
}
