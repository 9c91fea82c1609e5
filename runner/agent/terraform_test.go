package agent_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/toolchain/toolchaintest"
)

// terraformHere is the real Terraform of the machine, and its version.
func terraformHere(t *testing.T) (path, version string) {
	t.Helper()
	if path = os.Getenv("BERTH_TERRAFORM"); path == "" {
		var err error
		if path, err = exec.LookPath("terraform"); err != nil {
			t.Fatal("there is no terraform: set BERTH_TERRAFORM, or put one on PATH; `make test` finds or installs one")
		}
	}
	cmd := exec.CommandContext(t.Context(), path, "version", "-json")
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1")
	raw, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	return path, answer.Version
}

// newTerraformRunner has the real engine, and settings. mirror is next to the runner.
func newTerraformRunner(t *testing.T, settings map[string]any) (r *runner, mirror string) {
	t.Helper()
	r = newRunner(t, runnerapi.RunnerKindInstall)
	r.engine = filepath.Join(filepath.Dir(r.binary), realEngine)
	installEngine(t, r.engine)
	mirror = filepath.Join(filepath.Dir(r.binary), "mirror")
	if err := os.Mkdir(mirror, 0o755); err != nil {
		t.Fatal(err)
	}
	settings["terraform_mirror"] = mirror
	if err := datadir.WriteJSON(r.dir.Config(), settings); err != nil {
		t.Fatal(err)
	}
	return r, mirror
}

// appliesWith checks what a plan says that it was made with, and applies it.
func (c *change) appliesWith(name, version string, program []byte) {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "program")
	toolchaintest.Write(c.t, path, program, 0o644)
	digest, err := (&order.Digests{}).Of(path)
	if err != nil {
		c.t.Fatal(err)
	}
	tool := c.plan.Effect.Tool
	if tool.Name != name || tool.Version != version || tool.Digest != digest {
		c.t.Errorf("the plan was made with %+v, want %s %s, %s", tool, name, version, digest)
	}
	job := c.order(asItIs)
	if result := c.plane.result(c.t, job); result.Outcome != jobspec.OutcomeSucceeded || result.Tool.Version != version {
		c.t.Errorf("apply with %s: %+v", version, result)
	}
}

// newTerraformChange plans a module with one resource, which asks for a version.
func newTerraformChange(t *testing.T, r *runner, start func(*runner), version string) *change {
	t.Helper()
	module := t.TempDir()
	toolchaintest.Write(t, filepath.Join(module, "main.tf"), []byte("variable \"size\" { default = 0 }\nresource \"terraform_data\" \"a\" { input = var.size }\n"), 0o600)
	layout, err := oci.Open(r.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: module})
	if err != nil {
		t.Fatal(err)
	}
	r.plane.mu.Lock()
	r.plane.state = nil // it keeps one, and each change is of another resource
	r.plane.mu.Unlock()
	c := newChangeOn(t, r, start, func(s *jobspec.Spec) {
		s.Artifact = &jobspec.Artifact{Repository: s.Artifact.Repository, Digest: packed.Digest.String()}
		s.TerraformModule = &jobspec.TerraformModule{TerraformVersion: version}
	})
	c.module = packed.Digest.String()
	return c
}

// A version that is in a signed archive only is unpacked into the data directory, where
// isolated engines see it and nothing else. A plan whose program is gone says so.
func TestTerraformFromAMirror(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, f form) {
		path, version := terraformHere(t)
		program, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		program = append(program, "a build of the mirror's"...) // after the end of the executable
		vendor := toolchaintest.NewVendor(t)
		r, mirror := newTerraformRunner(t, map[string]any{})
		r.terraformKey = vendor.Key
		vendor.Release(t, filepath.Join(mirror, version), version, program)
		c := newTerraformChange(t, r, f.begin, version)
		c.appliesWith("terraform", version, program)

		gone := newTerraformChange(t, r, func(*runner) {}, version)
		for _, dir := range []string{r.dir.Tools(), filepath.Join(mirror, version)} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		result := r.plane.result(t, gone.order(asItIs))
		if result.Outcome != jobspec.OutcomeRefused || !strings.Contains(result.Error, "the program of the plan is gone: terraform "+version) {
			t.Errorf("the apply without its program: %+v", result)
		}
		missing := gone.spec(jobspec.OperationPlan)
		missing.TerraformModule.TerraformVersion = "1.5.99"
		result = r.plane.result(t, r.plane.give(missing))
		if result.Outcome != jobspec.OutcomeRefused || !strings.Contains(result.Error, "no terraform 1.5.99 is on this runner") || !strings.Contains(result.Remedy, "--terraform-mirror") {
			t.Errorf("the plan with a version that is nowhere: %+v", result)
		}
	})
}

// Two components of one app have different versions, on one runner.
func TestTwoTerraforms(t *testing.T) {
	t.Parallel()
	const second = "1.12.2"
	built, err := filepath.Abs("../../.bin/tools/terraform/" + second + "/terraform")
	if err != nil {
		t.Fatal(err)
	}
	newer, err := os.ReadFile(built)
	if err != nil {
		t.Skip("terraform-second: it is not built here; dev/scripts/terraform.sh build does it, in minutes")
	}
	path, version := terraformHere(t)
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(older, newer) {
		t.Fatal("the machine's own Terraform is the second one")
	}
	r, mirror := newTerraformRunner(t, map[string]any{"terraform": path, "terraform_match": "minor"})
	toolchaintest.Write(t, filepath.Join(mirror, second, "terraform"), newer, 0o755)
	newTerraformChange(t, r, here, second).appliesWith("terraform", second, newer)
	newTerraformChange(t, r, func(*runner) {}, version).appliesWith("terraform", version, older)
	newTerraformChange(t, r, func(*runner) {}, "1.12.0").appliesWith("terraform", second, newer)
}

// One app has modules for both tools, on one runner that has both. A component goes from
// one to the other and back: its plans say so, and its state stays what it is.
func TestTerraformAndOpenTofu(t *testing.T) {
	t.Parallel()
	built, err := filepath.Abs("../../.bin/tools/tofu")
	if err != nil {
		t.Fatal(err)
	}
	tofu, err := os.ReadFile(built)
	if err != nil {
		t.Skip("opentofu: it is not built here; dev/scripts/tofu.sh build does it, in minutes")
	}
	path, version := terraformHere(t)
	terraform, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	vendor := toolchaintest.NewVendor(t)
	vendor.Of = tfprogram.OpenTofu
	r, mirror := newTerraformRunner(t, map[string]any{"terraform": path})
	r.terraformKey = vendor.Key
	sites := filepath.Join(mirror, "opentofu")
	vendor.Release(t, filepath.Join(sites, "v"+tfprogram.OpenTofuVersion), tfprogram.OpenTofuVersion, tofu)
	if err := datadir.WriteJSON(r.dir.Config(), map[string]any{"terraform": path, "opentofu_mirror": sites}); err != nil {
		t.Fatal(err)
	}

	tool, size := "", 0
	c := newTerraformChange(t, r, here, version)
	c.shape = func(s *jobspec.Spec) {
		s.Artifact = &jobspec.Artifact{Repository: s.Artifact.Repository, Digest: c.module}
		s.TerraformModule = &jobspec.TerraformModule{Tool: tool, TerraformVersion: version, Vars: map[string]any{"size": size}}
		if tool == jobspec.ToolOpenTofu {
			s.TerraformModule.TerraformVersion = tfprogram.OpenTofuVersion
		}
	}
	c.appliesWith("terraform", version, terraform)
	lineage := c.plan.Effect.Lineage
	for _, step := range []struct {
		tool, version string
		program       []byte
		told          string // above the plan; "" for nothing
	}{
		{jobspec.ToolTerraform, version, terraform, ""},
		{jobspec.ToolOpenTofu, tfprogram.OpenTofuVersion, tofu, "Tool changes: Terraform wrote the state; this plan is of OpenTofu " + tfprogram.OpenTofuVersion},
		{jobspec.ToolOpenTofu, tfprogram.OpenTofuVersion, tofu, ""},
		{jobspec.ToolTerraform, version, terraform, "Tool changes: OpenTofu wrote the state; this plan is of Terraform " + version},
	} {
		tool, size = step.tool, size+1
		before := c.plan.Effect
		c.planAgain()
		if got, _, _ := strings.Cut(c.plan.Summary.Text, "."+" The state"); step.told != "" && got != step.told || step.told == "" && strings.Contains(c.plan.Summary.Text, "Tool changes") {
			t.Errorf("to %s the plan says %q, want %q", step.tool, c.plan.Summary.Text, step.told)
		}
		if s := c.plan.Summary; s.Update != 1 || s.Create+s.Replace+s.Delete != 0 {
			t.Errorf("to %s the plan is %+v, want one update", step.tool, s)
		}
		if e := c.plan.Effect; e.Serial <= before.Serial || lineage != "" && e.Lineage != lineage {
			t.Errorf("to %s the state is %s, %d; it was %s, %d", step.tool, e.Lineage, e.Serial, lineage, before.Serial)
		}
		lineage = c.plan.Effect.Lineage
		c.appliesWith(step.tool, step.version, step.program)
	}

	tool, size = jobspec.ToolOpenTofu, size+1
	missing := c.spec(jobspec.OperationPlan)
	missing.TerraformModule.TerraformVersion = version // only Terraform is there in it
	result := r.plane.result(t, r.plane.give(missing))
	if result.Outcome != jobspec.OutcomeRefused || !strings.Contains(result.Error, "no opentofu "+version+" is on this runner") || !strings.Contains(result.Remedy, "--opentofu-mirror") {
		t.Errorf("the plan with an OpenTofu that is nowhere: %+v", result)
	}
}

// planAgain plans the component once more, as a change of its own.
func (c *change) planAgain() {
	c.t.Helper()
	c.id = id.New(id.Change)
	job := c.plane.give(c.spec(jobspec.OperationPlan))
	if result := c.plane.result(c.t, job); result.Outcome != jobspec.OutcomeSucceeded {
		c.t.Fatalf("plan: %+v", result)
	}
	c.plane.mu.Lock()
	defer c.plane.mu.Unlock()
	c.plan = c.plane.plans[job]
}
