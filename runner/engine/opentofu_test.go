package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// openTofu is the executable that dev/scripts/tofu.sh builds.
func openTofu(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../.bin/tools/tofu")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("opentofu: it is not built here; dev/scripts/tofu.sh build does it, in minutes")
	}
	return path
}

// OpenTofu goes the way of Terraform: plan, apply, nothing to do, no second init, change,
// destroy.
func TestOpenTofu(t *testing.T) {
	t.Parallel()
	tofu := openTofu(t)
	i := newInstall(t, greeting)
	with := func(j *jobDir) *jobDir { j.env["BERTH_TERRAFORM"] = tofu; return j }
	vars := map[string]any{"text": "ahoy {{ .nuon.name }}", "secret": "canary-one-two"}

	first := with(i.plan(t, vars))
	first.env["TF_CLI_CONFIG_FILE"] = filepath.Join(i.dir, "gone.tfrc") // it warns of that on stdout, before its JSON
	planned := first.must(t)
	if planned.Tool.Name != jobspec.ToolOpenTofu || !strings.HasPrefix(planned.Tool.Version, "1.") {
		t.Errorf("made with %+v", planned.Tool)
	}
	wantContains(t, "the text of the plan", first.summary(t).Text, `+ triggers_replace = "ahoy acme"`)
	wantContains(t, "log", first.log(t), "opentofu "+planned.Tool.Version+", component greeting")

	apply := with(i.applyOf(t, first)).after(t, first, planned.Tool.Version)
	applied := apply.must(t)
	if got := string(applied.Outputs["text"].Value); got != `"ahoy acme"` || !applied.Outputs["secret"].Sensitive || i.effects(t) != 1 || i.backend.locked() {
		t.Errorf("outputs %+v, effects %d, locked %v", applied.Outputs, i.effects(t), i.backend.locked())
	}
	wantContains(t, "log of the apply", apply.log(t), "terraform init is not needed")
	for name, text := range map[string]string{"plan": first.log(t), "apply": apply.log(t), "summary": first.read(t, "out/plan.summary.json")} {
		if strings.Contains(text, "canary-one-two") {
			t.Errorf("%s holds a secret:\n%s", name, text)
		}
	}

	second := with(i.plan(t, vars)).after(t, first, planned.Tool.Version)
	ran := second.recorded(t)
	if r := second.must(t); !r.NoChange || r.Serial != applied.Serial {
		t.Errorf("the second plan: %+v", r)
	}
	if got := ran(); got != "plan show" {
		t.Errorf("the second plan ran %s", got)
	}

	stale := with(i.applyOf(t, first)) // the state has moved since
	if r := stale.run(t); r.Outcome != jobspec.OutcomeStale || i.effects(t) != 1 {
		t.Errorf("the first plan again: %+v, effects %d", r, i.effects(t))
	}

	gone := with(i.plan(t, vars))
	gone.spec.Destroy = true
	gone.must(t)
	if s := gone.summary(t); s.Delete != 1 {
		t.Errorf("the destroy shows %+v", s)
	}
	with(i.applyOf(t, gone)).must(t)
	if s := i.backend.stored(t); len(s.Resources) != 0 {
		t.Errorf("after the destroy there is %+v", s.Resources)
	}
}

// A plan of one is not applied by the other.
func TestOpenTofuIsNotTerraform(t *testing.T) {
	t.Parallel()
	tofu := openTofu(t)
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	plan.must(t)
	apply := i.applyOf(t, plan)
	apply.env["BERTH_TERRAFORM"] = tofu
	if r := apply.run(t); r.Outcome != jobspec.OutcomeRefused || i.effects(t) != 0 {
		t.Errorf("result %+v, effects %d", r, i.effects(t))
	}
}

// A module for one tool is not worked on by the other, and OpenTofu reads its own files
// in the place of Terraform's. None of them takes the state away, nor encrypts it.
func TestOpenTofuReadsItsFiles(t *testing.T) {
	t.Parallel()
	tofu := openTofu(t)
	with := func(j *jobDir, files map[string]string) *jobDir {
		j.env["BERTH_TERRAFORM"] = tofu
		for name, text := range files {
			j.write(t, "in/artifact/"+name, text)
		}
		return j
	}
	plan := func(tool string, files map[string]string) (jobspec.Result, *jobDir, *install) {
		i := newInstall(t, "this is not read")
		p := with(i.plan(t, nil), files)
		p.spec.TerraformModule.Tool = tool
		return p.run(t), p, i
	}
	files := map[string]string{"main.tofu": `output "of" { value = "tofu" }`}
	elsewhere := `{"terraform": {"backend": {"http": {"address": "http://127.0.0.1:1/"}}}}`
	got, p, i := plan(jobspec.ToolOpenTofu, files)
	if s := p.summary(t); got.Outcome != jobspec.OutcomeSucceeded || len(s.Outputs) != 1 {
		t.Errorf("the module of OpenTofu: %+v, %+v", got, s)
	}
	with(i.applyOf(t, p), files).must(t)
	if s := i.backend.stored(t); s.Lineage == "" {
		t.Error("its state is not where Berth keeps it")
	}
	for _, tc := range []struct {
		tool    string
		outcome jobspec.Outcome
		want    string
		files   map[string]string
	}{
		{jobspec.ToolTerraform, jobspec.OutcomeRefused, "is for terraform, the runner gave opentofu", files},
		{jobspec.ToolOpenTofu, jobspec.OutcomeFailed, "encrypts its state (main.tofu:2)", map[string]string{"main.tofu": "terraform {\n  encryption {}\n}\n"}},
		{jobspec.ToolOpenTofu, jobspec.OutcomeFailed, "declares in an override file where its state is kept", map[string]string{"main.tofu": "", "berth_backend_override.tofu.json": elsewhere}},
		{jobspec.ToolOpenTofu, jobspec.OutcomeFailed, "declares in an override file where its state is kept", map[string]string{"main.tofu": "", "zz_override.tf.json": elsewhere}},
		{"", jobspec.OutcomeSucceeded, "", map[string]string{"main.tofu": "terraform {\n  backend \"local\" {}\n}\n"}},
	} {
		if got, _, _ := plan(tc.tool, tc.files); got.Outcome != tc.outcome || !strings.Contains(got.Error, tc.want) {
			t.Errorf("%q: %+v, want %q", tc.tool, got, tc.want)
		}
	}
}

// An apply of OpenTofu that is stopped ends at a safe point and saves its state.
func TestOpenTofuStopped(t *testing.T) {
	t.Parallel()
	tofu := openTofu(t)
	i := newInstall(t, waiting)
	plan := i.plan(t, nil)
	plan.env["BERTH_TERRAFORM"] = tofu
	plan.must(t)
	apply := i.applyOf(t, plan)
	apply.env["BERTH_TERRAFORM"] = tofu
	cmd := apply.start(t)
	waitFor(t, "the second effect", contains(filepath.Join(i.dir, "effects"), "slow"))
	stop(t, cmd)
	waitFor(t, "OpenTofu to hear of it", contains(filepath.Join(apply.path, "stdout.log"), "nterrupt"))
	if err := os.WriteFile(filepath.Join(i.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := apply.finish(t, cmd)
	if s := i.backend.stored(t); r.Outcome != jobspec.OutcomeCancelled || i.backend.locked() || len(s.Resources) == 0 || r.Serial != s.Serial {
		t.Errorf("result %+v, locked %v, state %+v\n%s", r, i.backend.locked(), s, apply.log(t))
	}
	if contains(filepath.Join(i.dir, "effects"), "never")() {
		t.Error("the apply went on after it was stopped")
	}
}
