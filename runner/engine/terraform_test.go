package engine_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/jobspec"
)

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
		Outputs:  []jobspec.FieldChange{{Path: "secret", After: "(sensitive)"}, {Path: "text", After: `"ahoy acme"`}},
		Reversal: &jobspec.Reversal{Class: jobspec.ReverseUnknown, Why: []string{"terraform_data.file: what it runs may leave something behind"}},
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
