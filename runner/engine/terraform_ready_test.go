package engine_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const twoModules = `
module "inner" {
  source = "./inner"
  text   = "ahoy"
}
resource "terraform_data" "a" { input = module.inner.text }
output "text" { value = terraform_data.a.input }`

const innerModule = `
variable "text" { type = string }
output "text" { value = var.text }`

// recorded has the job run Terraform through a script that writes down its commands.
func (j *jobDir) recorded(t *testing.T) (commands func() string) {
	t.Helper()
	list := filepath.Join(j.path, "commands")
	script := filepath.Join(t.TempDir(), "terraform")
	text := "#!/bin/sh\necho \"$1\" >>'" + list + "'\nexec '" + j.env["BERTH_TERRAFORM"] + "' \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	j.env["BERTH_TERRAFORM"] = script
	return func() string {
		raw, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(raw)), " ")
	}
}

// after gives a job what the init of an earlier one found out, and what else the agent
// would.
func (j *jobDir) after(t *testing.T, earlier *jobDir, version string) *jobDir {
	t.Helper()
	j.write(t, "in/init.json", earlier.read(t, "out/init.json"))
	j.env["BERTH_TERRAFORM_VERSION"] = version
	return j
}

// A second plan of an unchanged module starts no init, and neither does an apply.
func TestNoSecondInit(t *testing.T) {
	t.Parallel()
	i := newInstall(t, twoModules)
	first := i.plan(t, nil)
	first.write(t, "in/artifact/inner/main.tf", innerModule)
	ran := first.recorded(t)
	version := first.must(t).Tool.Version
	if got := ran(); got != "version init plan show" {
		t.Errorf("the first plan ran %s", got)
	}
	apply := i.applyOf(t, first).after(t, first, version)
	apply.write(t, "in/artifact/inner/main.tf", innerModule)
	ran = apply.recorded(t)
	if out := apply.must(t).Outputs["text"]; string(out.Value) != `"ahoy"` {
		t.Errorf("the apply left %s", out.Value)
	}
	if got := ran(); got != "apply" {
		t.Errorf("the apply ran %s", got)
	}
	second := i.plan(t, nil).after(t, first, version)
	second.write(t, "in/artifact/inner/main.tf", innerModule)
	ran = second.recorded(t)
	if r := second.must(t); !r.NoChange || r.Tool.Version != version {
		t.Errorf("the second plan: %+v", r)
	}
	if got := ran(); got != "plan show" {
		t.Errorf("the second plan ran %s", got)
	}
	wantContains(t, "log", second.log(t), "terraform init is not needed")
	if first, second := first.read(t, "out/pinned/generated/.terraform/modules/modules.json"), second.read(t, "out/pinned/generated/.terraform/modules/modules.json"); !sameJSON(t, first, second) {
		t.Errorf("the modules of an init are %s, without one %s", first, second)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(x, y)
}

// What an init found out was in the hands of vendor code. Whatever that wrote into it, an
// init is the worst that comes of it.
func TestInitIsNotBelieved(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `resource "terraform_data" "a" { input = 1 }`)
	first := i.plan(t, nil)
	version := first.must(t).Tool.Version
	evil := filepath.Join(i.dir, "provider")
	for _, tc := range []struct {
		name, want string
		spoil      func(found map[string]any)
		text       string // in its place
		lock       string // of the module
	}{
		{name: "half of it", text: `{"format":1,"terr`, want: "it is damaged"},
		{name: "something else", text: `[]`, want: "it is damaged"},
		{name: "states elsewhere", want: "its states are elsewhere", spoil: func(f map[string]any) {
			f["backend"].(map[string]any)["backend"].(map[string]any)["config"].(map[string]any)["address"] = "http://127.0.0.1:9/"
		}},
		{name: "states in a file", want: "its states are elsewhere", spoil: func(f map[string]any) {
			f["backend"].(map[string]any)["backend"].(map[string]any)["type"] = "local"
		}},
		{name: "a provider that an engine wrote", want: "is in a directory that engines write to", spoil: func(f map[string]any) {
			f["providers"] = map[string]any{"registry.terraform.io/hashicorp/time/0.14.2/linux_amd64": evil}
		}},
		{name: "a provider that is elsewhere", want: "is no provider", spoil: func(f map[string]any) {
			f["providers"] = map[string]any{"../../../../a": "/usr"}
		}},
		{name: "a provider that is gone", want: "is not where it was", spoil: func(f map[string]any) {
			f["providers"] = map[string]any{"registry.terraform.io/hashicorp/time/0.14.2/linux_amd64": "/nowhere"}
		}},
		{name: "another Terraform", want: "it was made with terraform 0.1.0", spoil: func(f map[string]any) { f["terraform"] = "0.1.0" }},
		{name: "a changed lock file", want: "the lock file has changed", lock: "# changed\n"},
		{name: "another version of Berth", want: "another version of Berth", spoil: func(f map[string]any) { f["format"] = 99 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			plan := i.plan(t, nil).after(t, first, version)
			if tc.spoil != nil {
				var found map[string]any
				plan.readJSON(t, "in/init.json", &found)
				tc.spoil(found)
				raw, err := json.Marshal(found)
				if err != nil {
					t.Fatal(err)
				}
				plan.write(t, "in/init.json", string(raw))
			}
			if tc.text != "" {
				plan.write(t, "in/init.json", tc.text)
			}
			if tc.lock != "" {
				plan.write(t, "in/artifact/.terraform.lock.hcl", tc.lock)
			}
			ran := plan.recorded(t)
			plan.must(t)
			if got := ran(); got != "init plan show" {
				t.Errorf("it ran %s", got)
			}
			wantContains(t, "log", plan.log(t), tc.want)
			wantContains(t, "what it leaves", plan.read(t, "out/init.json"), `"terraform":"`+version+`"`) // it is right again
		})
	}
}

// A provider of a mirror is taken from there, and Terraform compares it with the lock
// file each time.
func TestNoSecondInitWithAProvider(t *testing.T) {
	t.Parallel()
	mirror := os.Getenv("BERTH_TEST_PROVIDER_MIRROR")
	if mirror == "" {
		t.Skip("terraform: BERTH_TEST_PROVIDER_MIRROR names no folder with providers")
	}
	i := newInstall(t, `
terraform {
  required_providers {
    time = { source = "hashicorp/time" }
  }
}
resource "time_offset" "a" {
  base_rfc3339 = "2020-02-12T06:36:13Z"
  offset_days  = 7
}
output "when" { value = time_offset.a.rfc3339 }`)
	withMirror := func(j *jobDir) *jobDir {
		j.write(t, "mirror.tfrc", "provider_installation {\n  filesystem_mirror {\n    path = \""+mirror+"\"\n  }\n}\n")
		j.env["TF_CLI_CONFIG_FILE"] = j.path + "/mirror.tfrc"
		return j
	}
	first := withMirror(i.plan(t, nil))
	version := first.must(t).Tool.Version
	apply := withMirror(i.applyOf(t, first)).after(t, first, version)
	ran := apply.recorded(t)
	if out := apply.must(t).Outputs["when"]; string(out.Value) != `"2020-02-19T06:36:13Z"` {
		t.Errorf("the apply left %s", out.Value)
	}
	if got := ran(); got != "apply" {
		t.Errorf("the apply ran %s", got)
	}
	second := withMirror(i.plan(t, nil)).after(t, first, version)
	ran = second.recorded(t)
	if r := second.must(t); !r.NoChange {
		t.Errorf("the second plan: %+v", r)
	}
	if got := ran(); got != "plan show" {
		t.Errorf("the second plan ran %s", got)
	}

	// A lock file of other bytes than the package has, which the module came without.
	forged := withMirror(i.plan(t, nil)).after(t, first, version)
	var found map[string]any
	forged.readJSON(t, "in/init.json", &found)
	found["lock"] = strings.Replace(found["lock"].(string), `"h1:`, `"h1:A`, 1)
	raw, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	forged.write(t, "in/init.json", string(raw))
	ran = forged.recorded(t)
	forged.run(t)
	if got := ran(); !strings.HasPrefix(got, "plan init") {
		t.Errorf("with a forged lock file it ran %s", got)
	}
}
