package agent_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
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
func (c *change) appliesWith(version string, program []byte) {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "program")
	toolchaintest.Write(c.t, path, program, 0o644)
	digest, err := (&order.Digests{}).Of(path)
	if err != nil {
		c.t.Fatal(err)
	}
	tool := c.plan.Effect.Tool
	if tool.Name != "terraform" || tool.Version != version || tool.Digest != digest {
		c.t.Errorf("the plan was made with %+v, want version %s, %s", tool, version, digest)
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
	toolchaintest.Write(t, filepath.Join(module, "main.tf"), []byte("resource \"terraform_data\" \"a\" {}\n"), 0o600)
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
	return newChangeOn(t, r, start, func(s *jobspec.Spec) {
		s.Artifact = &jobspec.Artifact{Repository: s.Artifact.Repository, Digest: packed.Digest.String()}
		s.TerraformModule = &jobspec.TerraformModule{TerraformVersion: version}
	})
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
		c.appliesWith(version, program)

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
	newTerraformChange(t, r, here, second).appliesWith(second, newer)
	newTerraformChange(t, r, func(*runner) {}, version).appliesWith(version, older)
	newTerraformChange(t, r, func(*runner) {}, "1.12.0").appliesWith(second, newer)
}
