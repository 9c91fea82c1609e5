package engine_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// greeting is a module with an effect outside of its state: it appends to a
// file of the install each time it is applied.
const greeting = `
variable "text" { type = string }
variable "secret" {
  type      = string
  default   = ""
  sensitive = true
}
variable "dir" { type = string }

resource "terraform_data" "file" {
  input            = { text = var.text, secret = var.secret }
  triggers_replace = var.text
  provisioner "local-exec" {
    command     = "echo applied >> \"$DIR/effects\""
    environment = { DIR = var.dir }
  }
}

output "text" { value = var.text }
output "secret" {
  value     = var.secret
  sensitive = true
}
`

// An install runs jobs of one component against one state.
type install struct {
	backend *backend
	dir     string
	module  string
}

func newInstall(t *testing.T, module string) *install {
	t.Helper()
	return &install{backend: newBackend(t), dir: t.TempDir(), module: module}
}

func (i *install) effects(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(i.dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func (i *install) job(t *testing.T, op jobspec.Operation, m jobspec.TerraformModule) *jobDir {
	t.Helper()
	j := newJob(t, jobspec.Spec{
		Kind: jobspec.KindTerraformModule, Operation: op, TerraformModule: &m,
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "greeting"},
		Artifact: &jobspec.Artifact{Repository: "org_1/app/greeting", Digest: "sha256:0"},
		State:    state(t, map[string]any{"id": "ins_1", "name": "acme", "app": map[string]any{"id": "app_1"}}),
	})
	j.env = with(with(j.env, i.backend.env()), map[string]string{"BERTH_TERRAFORM": terraformPath(t), "BERTH_INSTALL_DIR": i.dir})
	j.write(t, "in/artifact/main.tf", i.module)
	return j
}

func (i *install) plan(t *testing.T, vars map[string]any) *jobDir {
	t.Helper()
	if vars == nil {
		vars = map[string]any{}
	}
	if _, ok := vars["dir"]; !ok && strings.Contains(i.module, `variable "dir"`) {
		vars["dir"] = i.dir
	}
	return i.job(t, jobspec.OperationPlan, jobspec.TerraformModule{Vars: vars})
}

// applyOf is the apply of a finished plan, in a job directory of its own.
func (i *install) applyOf(t *testing.T, plan *jobDir) *jobDir {
	t.Helper()
	j := i.job(t, jobspec.OperationApply, *plan.spec.TerraformModule)
	j.spec.Destroy = plan.spec.Destroy
	copyTree(t, filepath.Join(plan.path, "out/pinned"), filepath.Join(j.path, "in/pinned"))
	return j
}

// deploy plans and applies.
func (i *install) deploy(t *testing.T, vars map[string]any) jobspec.Result {
	t.Helper()
	plan := i.plan(t, vars)
	plan.must(t)
	return i.applyOf(t, plan).must(t)
}

func (j *jobDir) summary(t *testing.T) jobspec.PlanSummary {
	t.Helper()
	var s jobspec.PlanSummary
	j.readJSON(t, "out/plan.summary.json", &s)
	return s
}

func TestPlanAndApply(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy {{ .nuon.name }}", "secret": "canary-one-two"})
	planned := plan.must(t)
	if planned.NoChange || planned.Lineage != "" || planned.Serial != 0 || planned.Tool == nil || planned.Tool.Name != "terraform" {
		t.Errorf("result of the plan: %+v", planned)
	}
	if i.effects(t) != 0 || i.backend.stored(t).Lineage != "" {
		t.Error("a plan had an effect")
	}
	want := jobspec.PlanSummary{
		Create: 1,
		Objects: []jobspec.ObjectChange{{Address: "terraform_data.file", Action: "create", Fields: []jobspec.FieldChange{
			{Path: "id", After: "(known after apply)"},
			{Path: "input.secret", After: "(sensitive)"},
			{Path: "input.text", After: `"ahoy acme"`},
			{Path: "output", After: "(known after apply)"},
			{Path: "triggers_replace", After: `"ahoy acme"`},
		}}},
		Outputs: []jobspec.FieldChange{{Path: "secret", After: "(sensitive)"}, {Path: "text", After: `"ahoy acme"`}},
	}
	got := plan.summary(t)
	wantContains(t, "the text of the plan", got.Text, `+ triggers_replace = "ahoy acme"`)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(jobspec.PlanSummary{}, "Text"), cmpopts.SortSlices(func(a, b jobspec.FieldChange) bool { return a.Path < b.Path })); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}

	apply := i.applyOf(t, plan)
	applied := apply.must(t)
	outputs := jobspec.Outputs{
		"text":   {Value: json.RawMessage(`"ahoy acme"`)},
		"secret": {Value: json.RawMessage(`"canary-one-two"`), Sensitive: true},
	}
	if diff := cmp.Diff(outputs, applied.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	var written jobspec.Outputs
	apply.readJSON(t, "out/outputs.json", &written)
	if diff := cmp.Diff(outputs, written); diff != "" {
		t.Errorf("outputs.json (-want +got):\n%s", diff)
	}
	if s := i.backend.stored(t); applied.Lineage != s.Lineage || applied.Serial != s.Serial || s.Lineage == "" {
		t.Errorf("lineage %q serial %d, the state has %+v", applied.Lineage, applied.Serial, s)
	}
	if i.effects(t) != 1 || i.backend.locked() {
		t.Errorf("effects %d, locked %v", i.effects(t), i.backend.locked())
	}
	wantContains(t, "log", apply.log(t), "terraform_data.file: creating…\n")
	wantContains(t, "log", apply.log(t), "terraform_data.file: created in ")

	for name, text := range map[string]string{
		"log of the plan": plan.log(t), "log of the apply": apply.log(t),
		"summary": plan.read(t, "out/plan.summary.json"), "result of the plan": plan.read(t, "out/result.json"),
	} {
		if strings.Contains(text, "canary-one-two") || strings.Contains(text, backendPassword) {
			t.Errorf("%s holds a secret:\n%s", name, text)
		}
	}
	// Where the state is, and how to get at it, must not travel with a plan.
	saved, err := zip.OpenReader(filepath.Join(plan.path, "out/pinned/plan.tfplan"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = saved.Close() }()
	for _, f := range saved.File {
		data, err := fs.ReadFile(saved, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(backendPassword)) || bytes.Contains(data, []byte(i.backend.server.URL)) {
			t.Errorf("%s in the saved plan tells of the state backend", f.Name)
		}
	}
	private(t, plan.path)
	private(t, apply.path)
}

// private checks that nobody else may read what may hold secrets.
func private(t *testing.T, dir string) {
	t.Helper()
	for _, sub := range []string{"out", "work/vars"} {
		err := filepath.WalkDir(filepath.Join(dir, sub), func(path string, e os.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecondPlanHasNothingToDo(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	vars := map[string]any{"text": "ahoy", "secret": "canary-one-two"}
	applied := i.deploy(t, vars)
	plan := i.plan(t, vars)
	planned := plan.must(t)
	if !planned.NoChange || planned.Serial != applied.Serial || planned.Lineage != applied.Lineage {
		t.Errorf("result: %+v, after an apply that left %+v", planned, applied)
	}
	if diff := cmp.Diff(applied.Outputs, planned.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if !plan.summary(t).NoChange {
		t.Error("the summary shows changes")
	}
}

func TestUpdateShowsOneField(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
variable "size" { type = number }
variable "tags" { type = map(string) }
resource "terraform_data" "box" { input = { size = var.size, tags = var.tags, fixed = [1, 2] } }
output "size" { value = var.size }
`)
	i.deploy(t, map[string]any{"size": "3", "tags": `{"a": "1", "b": "2"}`})
	plan := i.plan(t, map[string]any{"size": 3, "tags": map[string]any{"a": "1", "b": "changed"}})
	plan.must(t)
	s := plan.summary(t)
	want := []jobspec.ObjectChange{{Address: "terraform_data.box", Action: "update", Fields: []jobspec.FieldChange{
		{Path: "input.tags.b", Before: `"2"`, After: `"changed"`},
		{Path: "output", Before: `{"fixed":[1,2],"size":3,"tags":{"a":"1","b":"2"}}`, After: "(known after apply)"},
	}}}
	if diff := cmp.Diff(want, s.Objects); diff != "" || s.Update != 1 || len(s.Outputs) != 0 {
		t.Errorf("summary %+v (-want +got):\n%s", s, diff)
	}
}

func TestDestroy(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	i.deploy(t, map[string]any{"text": "ahoy"})
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	plan.spec.Destroy = true
	plan.must(t)
	if s := plan.summary(t); s.Delete != 1 || s.NoChange {
		t.Errorf("summary: %+v", s)
	}
	applied := i.applyOf(t, plan).must(t)
	if s := i.backend.stored(t); len(s.Resources) != 0 || len(applied.Outputs) != 0 {
		t.Errorf("left behind: %+v, outputs %v", s, applied.Outputs)
	}
	again := i.plan(t, map[string]any{"text": "ahoy"})
	again.spec.Destroy = true
	if r := again.must(t); !r.NoChange {
		t.Error("a second teardown has something to do")
	}
}

func TestTwoPlansOfTheSameThingAreEqual(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	i.deploy(t, map[string]any{"text": "ahoy"})
	var canonical, inputs []string
	for range 2 {
		plan := i.plan(t, map[string]any{"text": "aloha", "secret": "canary"})
		plan.must(t)
		canonical = append(canonical, plan.read(t, "out/plan.canonical.json"))
		inputs = append(inputs, plan.read(t, "out/inputs.json"))
	}
	if diff := cmp.Diff(canonical[0], canonical[1]); diff != "" {
		t.Errorf("canonical plans differ:\n%s", diff)
	}
	other := i.plan(t, map[string]any{"text": "aloha", "secret": "another"})
	other.must(t)
	if canonical[0] == other.read(t, "out/plan.canonical.json") {
		t.Error("another secret gives the same canonical plan")
	}
	want := `{"vars":{"dir":"` + i.dir + `","secret":"canary","text":"aloha"},"var_files":[],"env_vars":{}}`
	if inputs[0] != inputs[1] || inputs[0] != want {
		t.Errorf("inputs %s and %s, want %s", inputs[0], inputs[1], want)
	}
}

func TestStalePlanDoesNothing(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	first, second := i.plan(t, map[string]any{"text": "first"}), i.plan(t, map[string]any{"text": "second"})
	first.must(t)
	second.must(t)
	i.applyOf(t, first).must(t)
	writes := i.backend.writes
	r := i.applyOf(t, second).run(t)
	if r.Outcome != jobspec.OutcomeStale || r.Remedy == "" {
		t.Errorf("result: %+v", r)
	}
	if i.effects(t) != 1 || i.backend.writes != writes || i.backend.locked() {
		t.Errorf("effects %d, writes %d then %d, locked %v", i.effects(t), writes, i.backend.writes, i.backend.locked())
	}
}

func TestLockedStateNamesTheHolder(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	i.backend.set(func(b *backend) {
		b.lock = []byte(`{"ID":"8f2e","Operation":"OperationTypeApply","Who":"root@ship","Version":"1.11.4","Created":"2026-11-20T10:00:00Z"}`)
	})
	plan.must(t) // a plan takes no lock
	r := i.applyOf(t, plan).run(t)
	wantContains(t, "error", r.Error, "the state of component greeting is locked by root@ship, OperationTypeApply, since 2026-11-20")
	if r.Outcome != jobspec.OutcomeFailed || i.effects(t) != 0 || !i.backend.locked() {
		t.Errorf("outcome %s, effects %d, locked %v", r.Outcome, i.effects(t), i.backend.locked())
	}
}

func TestStateThatCannotBeSavedIsKept(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	plan.must(t)
	i.backend.set(func(b *backend) { b.full = true })
	apply := i.applyOf(t, plan)
	r := apply.run(t)
	wantContains(t, "error", r.Error, "terraform changed component greeting but could not save its state")
	wantContains(t, "remedy", r.Remedy, "errored.tfstate")
	wantContains(t, "kept state", apply.read(t, "out/errored.tfstate"), "terraform_data")
	private(t, apply.path)
}

// waiting is a module that waits for a file of the test after its first effect.
const waiting = `
variable "dir" { type = string }
resource "terraform_data" "first" {
  provisioner "local-exec" {
    command     = "echo first >> \"$DIR/effects\""
    environment = { DIR = var.dir }
  }
}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command     = "echo slow >> \"$DIR/effects\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.02; done; echo ended >> \"$DIR/effects\""
    environment = { DIR = var.dir }
  }
}
resource "terraform_data" "never" {
  depends_on = [terraform_data.slow]
  provisioner "local-exec" {
    command     = "echo never >> \"$DIR/effects\""
    environment = { DIR = var.dir }
  }
}
`

func TestStopInTheMiddleOfAnApplySavesTheState(t *testing.T) {
	t.Parallel()
	i := newInstall(t, waiting)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	waitFor(t, "the second effect", contains(filepath.Join(i.dir, "effects"), "slow"))
	stop(t, cmd)
	waitFor(t, "terraform to hear of it", contains(filepath.Join(apply.path, "stdout.log"), "nterrupt"))
	if err := os.WriteFile(filepath.Join(i.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := apply.finish(t, cmd)
	s := i.backend.stored(t)
	if r.Outcome != jobspec.OutcomeCancelled || i.backend.locked() || len(s.Resources) == 0 || r.Serial != s.Serial || r.Lineage != s.Lineage {
		t.Errorf("result %+v, locked %v, state %+v\n%s", r, i.backend.locked(), s, apply.log(t))
	}
	if contains(filepath.Join(i.dir, "effects"), "never")() {
		t.Error("the apply went on after it was stopped")
	}
	next := i.plan(t, nil)
	next.must(t)
	if got := next.summary(t); got.NoChange {
		t.Error("the next plan has nothing to do")
	}
	i.applyOf(t, next).must(t)
}

func TestKilledEngineLeavesNoResultAndNoTerraform(t *testing.T) {
	t.Parallel()
	i := newInstall(t, waiting)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	waitFor(t, "the second effect", contains(filepath.Join(i.dir, "effects"), "slow"))
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) == 0 {
		t.Fatal("the engine has no children while it applies")
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// What terraform itself started ends with the pid namespace of the agent;
	// here it ends by the file.
	if err := os.WriteFile(filepath.Join(i.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		waitFor(t, "terraform to end", func() bool { return !alive(pid) })
	}
	if _, err := os.Stat(filepath.Join(apply.path, "out/result.json")); !os.IsNotExist(err) {
		t.Errorf("there is a result: %v", err)
	}
	if !i.backend.locked() {
		t.Error("the lock is gone though nobody freed it")
	}
	if contains(filepath.Join(i.dir, "effects"), "never")() {
		t.Error("the apply went on")
	}
}

func TestStopWhileThePlanWaitsForTheState(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	i.backend.set(func(b *backend) { b.hold = true })
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	cmd := plan.start(t)
	waitFor(t, "terraform to ask for the state", func() bool {
		i.backend.mu.Lock()
		defer i.backend.mu.Unlock()
		return i.backend.holding
	})
	stop(t, cmd)
	if r := plan.finish(t, cmd); r.Outcome != jobspec.OutcomeCancelled {
		t.Errorf("result %+v", r)
	}
}

func TestStateIsReadWhenTheAgentIsBack(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `output "text" { value = "ahoy" }`)
	plan := i.plan(t, nil)
	plan.must(t)
	i.backend.set(func(b *backend) { b.leave = true })
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	waitFor(t, "the apply to be complete", contains(filepath.Join(apply.path, "stdout.log"), "Apply complete!"))
	i.backend.set(func(b *backend) { b.away = false })
	if r := apply.finish(t, cmd); r.Outcome != jobspec.OutcomeSucceeded || string(r.Outputs["text"].Value) != `"ahoy"` {
		t.Errorf("result %+v", r)
	}
}

func TestTerraformThatIsKilledIsNoSuccess(t *testing.T) {
	t.Parallel()
	i := newInstall(t, waiting)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	waitFor(t, "the second effect", contains(filepath.Join(i.dir, "effects"), "slow"))
	for _, pid := range childrenOf(t, cmd.Process.Pid) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(i.dir, "go"), nil, 0o600); err != nil { // for the script that is left
		t.Fatal(err)
	}
	r := apply.finish(t, cmd)
	wantContains(t, "error", r.Error, "what it did last may be missing in its state")
	if r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("outcome %s", r.Outcome)
	}
}

func TestFailedApplyTellsWhat(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
resource "terraform_data" "good" {}
resource "terraform_data" "bad" {
  depends_on = [terraform_data.good]
  provisioner "local-exec" { command = "echo it broke; exit 3" }
}
`)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	r := apply.run(t)
	wantContains(t, "error", r.Error, "terraform apply of component greeting: terraform_data.bad: local-exec provisioner error (main.tf:")
	wantContains(t, "log", apply.log(t), "terraform_data.bad: | it broke")
	if s := i.backend.stored(t); r.Outcome != jobspec.OutcomeFailed || r.Serial != s.Serial || s.Serial == 0 {
		t.Errorf("result %+v, state %+v", r, s)
	}
}

func TestApplyUsesThePlanAlone(t *testing.T) {
	t.Parallel()
	// The plan reads an environment variable by a program that is not there at
	// the apply, writes a file into the module, and has an ephemeral variable.
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
			name: "a variable that the module does not declare", module: module,
			order:   jobspec.TerraformModule{Vars: map[string]any{"Name": "x"}},
			outcome: jobspec.OutcomeFailed,
			want:    `vars.Name: the module of component greeting declares no variable "Name"`,
			remedy:  `did you mean "name"?`,
		},
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
			want:    "vars.name: line 1: .nuon.components",
			remedy:  "check the name",
		},
		{
			name: "a variable without a value", module: module,
			order:   jobspec.TerraformModule{Vars: map[string]any{"name": "x"}},
			outcome: jobspec.OutcomeFailed,
			want:    "terraform plan of component greeting: No value for required variable on main.tf line 3",
		},
		{
			name: "another backend", module: "terraform {\n  backend \"s3\" {}\n}",
			outcome: jobspec.OutcomeFailed,
			want:    `declares where its state is kept ("s3", main.tf:2)`, remedy: "remove that block",
		},
		{
			name: "a cloud block", module: "terraform {\n  cloud {\n  organization = \"x\"\n  }\n}",
			outcome: jobspec.OutcomeFailed, want: `declares where its state is kept ("cloud", main.tf:2)`,
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
			outcome: jobspec.OutcomeRefused, want: `terraform_version "latest please" is neither a version nor a range`,
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
			if strings.Contains(j.log(t)+j.read(t, "out/result.json"), "hunter2") {
				t.Error("the value is told")
			}
		})
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

func TestApplyRefusesAnotherTerraform(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	plan.must(t)
	apply := i.applyOf(t, plan)
	pinned := apply.read(t, "in/pinned/terraform.json")
	var p map[string]any
	if err := json.Unmarshal([]byte(pinned), &p); err != nil {
		t.Fatal(err)
	}
	p["terraform_version"] = "1.5.0"
	changed, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	apply.write(t, "in/pinned/terraform.json", string(changed))
	r := apply.run(t)
	if r.Outcome != jobspec.OutcomeRefused || len(r.Differs) != 1 || r.Differs[0].Want != "1.5.0" || i.effects(t) != 0 {
		t.Errorf("result %+v", r)
	}
}
