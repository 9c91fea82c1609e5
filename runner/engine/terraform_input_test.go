package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestApplyUsesThePlanAlone(t *testing.T) {
	t.Parallel()
	// At the apply the order says other things than at the plan, and an ephemeral
	// variable is in no plan file.
	i := newInstall(t, `
variable "token" {
  type      = string
  ephemeral = true
}
variable "dir" { type = string }
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command     = "test \"$TOKEN\" = ephemeral-$SUFFIX && echo \"$COLOR $NUON_INSTALL_ID $BERTH_APP_ID\" > \"$DIR/seen\""
    environment = { TOKEN = var.token, DIR = var.dir, SUFFIX = "canary" }
  }
}
`)
	plan := i.plan(t, map[string]any{"token": "ephemeral-canary"})
	plan.spec.TerraformModule.EnvVars = map[string]string{"COLOR": "{{ .nuon.name }}-blue"}
	plan.must(t)
	apply := i.applyOf(t, plan)
	apply.spec.State = state(t, map[string]any{"app": map[string]any{"id": "app_1"}, "name": "renamed"})
	apply.spec.TerraformModule = &jobspec.TerraformModule{EnvVars: map[string]string{"COLOR": "{{ .nuon.is.not.there }}"}}
	apply.must(t)
	seen, err := os.ReadFile(filepath.Join(i.dir, "seen"))
	if err != nil || string(seen) != "acme-blue ins_1 app_1\n" {
		t.Errorf("the script saw %q, %v", seen, err)
	}
	for name, text := range map[string]string{"plan": plan.read(t, "out/plan.canonical.json"), "log": plan.log(t), "log of the apply": apply.log(t)} {
		if strings.Contains(text, "ephemeral-canary") {
			t.Errorf("the ephemeral value is in the %s:\n%s", name, text)
		}
	}
}

func TestEngineKeepsItsEnvironmentToItself(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
variable "dir" { type = string }
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command     = "env > \"$DIR/env\""
    environment = { DIR = var.dir }
  }
}
`)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	apply.env["AGENT_PRIVATE"] = "not for vendors"
	apply.must(t)
	data, err := os.ReadFile(filepath.Join(i.dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "AGENT_PRIVATE") {
		t.Error("a variable of the engine reached the module's programs")
	}
	wantContains(t, "environment", string(data), "BERTH_INSTALL_DIR="+i.dir+"\n")
	wantContains(t, "environment", string(data), "HOME="+filepath.Join(apply.path, "work/home")+"\n")
}

func TestBadOrdersAreNamed(t *testing.T) {
	t.Parallel()
	const module = `
variable "name" { type = string }
variable "ports" { type = list(number) }
`
	for _, tc := range []struct {
		name    string
		module  string
		order   jobspec.TerraformModule
		outcome jobspec.Outcome
		want    string
		remedy  string
	}{
		{
			name: "a text that is no list", module: module,
			order:   jobspec.TerraformModule{Vars: map[string]any{"name": "x", "ports": "hunter2-is-secret"}},
			outcome: jobspec.OutcomeFailed,
			want:    "vars.ports: list(number) is needed, as JSON or in Terraform's notation (it has 17 characters)",
			remedy:  "main.tf:3",
		},
		{
			name: "a template that names what is not there", module: module,
			order:   jobspec.TerraformModule{Vars: map[string]any{"name": "{{ .nuon.components.db.outputs.host }}"}},
			outcome: jobspec.OutcomeFailed,
			want:    "vars.name:1:4: .nuon.components",
			remedy:  "check the name",
		},
		{
			name: "a var file that nearly names what is there", module: module,
			order: jobspec.TerraformModule{
				VarFiles: []string{"name = \"x\"\n", "ports = [1]\nname = \"{{ .nuon.nmae }}\"\n"}, VarFileNames: []string{"", "components/two.tfvars"},
			},
			outcome: jobspec.OutcomeFailed,
			want:    `components/two.tfvars:2:12: .nuon.nmae: there is no "nmae"; the nearest is "name"`,
			remedy:  "did you mean .nuon.name?",
		},
		{
			name: "a variable without a value", module: module,
			order:   jobspec.TerraformModule{Vars: map[string]any{"name": "x"}},
			outcome: jobspec.OutcomeFailed,
			want:    "terraform plan of component greeting: No value for required variable on main.tf line 3",
		},
		{
			name: "variables of the install that are not in Terraform's notation", module: module,
			order:   jobspec.TerraformModule{Vars: map[string]any{"name": "x"}, InstallVars: "ports = [1]\nname = \"hunter2\n"},
			outcome: jobspec.OutcomeFailed,
			want:    "component greeting: tf_vars of the install: line 2 is not in Terraform's notation",
		},
		{
			name: "a template of the install that names what is not there", module: module,
			order:   jobspec.TerraformModule{InstallVars: "name = \"{{ .nuon.components.db.outputs.host }}\""},
			outcome: jobspec.OutcomeFailed,
			want:    "tf_vars of the install:1:12: .nuon.components", remedy: "check the name",
		},
		{
			name: "another version of terraform", module: module,
			order:   jobspec.TerraformModule{TerraformVersion: "0.12.31"},
			outcome: jobspec.OutcomeRefused, want: "component greeting needs terraform 0.12.31, the runner has 1.", remedy: "BERTH_TERRAFORM",
		},
		{
			name: "a range that the runner is not in", module: module,
			order:   jobspec.TerraformModule{TerraformVersion: ">= 0.12, < 1"},
			outcome: jobspec.OutcomeRefused, want: "needs terraform >= 0.12, < 1, the runner has 1.",
		},
		{
			name: "a version that is none", module: module,
			order:   jobspec.TerraformModule{TerraformVersion: "latest please"},
			outcome: jobspec.OutcomeRefused, want: `terraform_version "latest please", which is neither a version nor a range`,
		},
		{
			name: "an environment that moves the state", module: module,
			order:   jobspec.TerraformModule{EnvVars: map[string]string{"TF_HTTP_ADDRESS": "x"}},
			outcome: jobspec.OutcomeFailed, want: "env_vars.TF_HTTP_ADDRESS: this variable is set by Berth",
		},
		{
			name: "a module that is no HCL", module: "resource terraform_data {",
			outcome: jobspec.OutcomeFailed, want: "the module of component greeting cannot be read: main.tf:1: ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			i := newInstall(t, tc.module)
			j := i.job(t, jobspec.OperationPlan, tc.order)
			r := j.run(t)
			wantContains(t, "error", r.Error, tc.want)
			wantContains(t, "remedy", r.Remedy, tc.remedy)
			if r.Outcome != tc.outcome {
				t.Errorf("outcome %s, want %s", r.Outcome, tc.outcome)
			}
			if comesAgain := r.Reason == jobspec.ReasonNeedsChange; comesAgain != (tc.outcome == jobspec.OutcomeFailed) {
				t.Errorf("reason %q of an order that is %s", r.Reason, r.Outcome)
			}
			if strings.Contains(j.log(t)+j.read(t, "out/result.json"), "hunter2") {
				t.Error("the value is told")
			}
		})
	}
}

// TestUndeclaredVariablesAreDropped holds that a value for a variable that the
// module does not declare is a warning in the log that names no value, and no
// failed plan.
func TestUndeclaredVariablesAreDropped(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
variable "name" { type = string }
resource "terraform_data" "a" { input = var.name }
`)
	j := i.job(t, jobspec.OperationPlan, jobspec.TerraformModule{
		Vars: map[string]any{"name": "x", "Name": "hunter2", "gone": "{{ .nuon.components.db.outputs.host }}"}, InstallVars: "names = [\"hunter2\"]",
	})
	j.must(t)
	log := j.log(t)
	for _, want := range []string{
		`Warning: vars.Name: the module of component greeting declares no variable "Name", so its value is dropped; did you mean "name"?`,
		`Warning: vars.gone: the module of component greeting declares no variable "gone", so its value is dropped; it declares name`,
		`Warning: tf_vars of the install: the module of component greeting declares no variable "names", so its value is dropped; it declares name`,
	} {
		wantContains(t, "log", log, want)
	}
	if strings.Contains(log+j.read(t, "out/result.json"), "hunter2") {
		t.Error("the value is told")
	}
}

func TestVariablesOfAllTypes(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
variable "str" { type = string }
variable "untyped" {}
variable "num" { type = number }
variable "yes" { type = bool }
variable "list" { type = list(string) }
variable "hcl" { type = map(list(number)) }
variable "object" { type = object({ host = string, port = number, extra = optional(string, "none") }) }
variable "any" { type = any }
variable "from_state" { type = list(string) }
variable "from_file" { type = string }
variable "both" { type = string }
variable "from_env" { type = number }
output "all" {
  value = [var.str, var.untyped, var.num, var.yes, var.list, var.hcl, var.object, var.any, var.from_state, var.from_file, var.both, var.from_env]
}
`)
	plan := i.plan(t, map[string]any{
		"str": "007", "untyped": "[1]", "num": " 42 ", "yes": "true", "list": `["a", "${b}"]`, "hcl": "{ a = [1, 2], b = [] }",
		"object": map[string]any{"host": "{{ .nuon.name }}", "port": 5432}, "any": "plain text",
		"from_state": "{{ .nuon.sandbox.outputs.subnets }}", "both": "of vars",
	})
	plan.spec.State = state(t, map[string]any{"name": "acme", "sandbox": map[string]any{"outputs": map[string]any{"subnets": []string{"s-1", "s-2"}}}})
	plan.spec.TerraformModule.VarFiles = []string{"from_file = \"first\"\nboth = \"of file\"\n", `from_file = "{{ .nuon.name }}"`}
	plan.spec.TerraformModule.EnvVars = map[string]string{"TF_VAR_from_env": "7", "TF_VAR_not_declared": "x"}
	plan.must(t)
	r := i.applyOf(t, plan).must(t)
	want := `["007","[1]",42,true,["a","${b}"],{"a":[1,2],"b":[]},{"extra":"none","host":"acme","port":5432},"plain text",["s-1","s-2"],"acme","of vars",7]`
	var got any
	if err := json.Unmarshal(r.Outputs["all"].Value, &got); err != nil {
		t.Fatal(err)
	}
	compact, _ := json.Marshal(got)
	if string(compact) != want {
		t.Errorf("the module saw\n%s, want\n%s", compact, want)
	}
}

// What the install says wins over files, vars and environment, keeps its types,
// is seen in the plan and counts in its inputs.
func TestVariablesOfTheInstallWin(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
variable "of_vars" { type = string }
variable "of_file" { type = number }
variable "of_env" { type = bool }
variable "kept" { type = string }
variable "hosts" { type = list(object({ name = string, port = number })) }
variable "maybe" {
  type    = string
  default = "by default"
}
resource "terraform_data" "a" { input = [var.of_vars, var.of_file, var.of_env, var.kept, var.hosts, var.maybe] }
output "all" { value = terraform_data.a.output }
`)
	order := func(own string) *jobDir {
		j := i.plan(t, map[string]any{"of_vars": "by vars", "kept": "by vars", "hosts": "[]"})
		j.spec.State = state(t, map[string]any{"name": "acme"})
		j.spec.TerraformModule.VarFiles = []string{"of_file = 1\nof_vars = \"by file\"\n"}
		j.spec.TerraformModule.EnvVars = map[string]string{"TF_VAR_of_env": "false"}
		j.spec.TerraformModule.InstallVars = own
		j.must(t)
		return j
	}
	digest := func(j *jobDir) string { return capsule.DigestBytes([]byte(j.read(t, "out/inputs.json"))) }
	plain := order("")
	for name, own := range map[string]string{
		"HCL": `
# The install's own.
of_vars = "by {{ .nuon.name }}"
of_file = 2 + 1
of_env  = true
hosts   = [{ name = "$${a}", port = 80 }]
maybe   = null
`,
		"JSON": `{"of_vars": "by {{ .nuon.name }}", "of_file": 3, "of_env": true, "hosts": [{"name": "${a}", "port": 80}], "maybe": null}`,
	} {
		plan := order(own)
		if digest(plan) == digest(plain) {
			t.Errorf("%s: the inputs are those without it", name)
		}
		wantContains(t, name, plan.read(t, "out/plan.canonical.json"), `"by acme"`)
	}
	plan := order(`of_vars = "by {{ .nuon.name }}"` + "\nof_file = 2 + 1\nof_env = true\nhosts = [{ name = \"$${a}\", port = 80 }]\nmaybe = null")
	r := i.applyOf(t, plan).must(t)
	var got any
	if err := json.Unmarshal(r.Outputs["all"].Value, &got); err != nil {
		t.Fatal(err)
	}
	compact, _ := json.Marshal(got)
	if want := `["by acme",3,true,"by vars",[{"name":"${a}","port":80}],null]`; string(compact) != want {
		t.Errorf("the module saw\n%s, want\n%s", compact, want)
	}
}

func TestFilesThatAPlanWritesReachTheApply(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
module "child" { source = "./child" }
output "all" { value = module.child.text }
`)
	plan := i.plan(t, nil)
	plan.write(t, "in/artifact/child/main.tf", `output "text" { value = file("${path.module}/note.txt") }`)
	plan.write(t, "in/artifact/child/real.txt", "from a file")
	if err := os.Symlink("real.txt", filepath.Join(plan.path, "in/artifact/child/note.txt")); err != nil {
		t.Fatal(err)
	}
	plan.must(t)
	apply := i.applyOf(t, plan)
	copyTree(t, filepath.Join(plan.path, "in/artifact/child"), filepath.Join(apply.path, "in/artifact/child"))
	r := apply.must(t)
	if got := string(r.Outputs["all"].Value); got != `"from a file"` {
		t.Errorf("output %s", got)
	}
	if got := plan.read(t, "out/pinned/generated/.terraform/modules/modules.json"); !strings.Contains(got, "child") {
		t.Errorf("the list of modules is not pinned: %s", got)
	}
}
