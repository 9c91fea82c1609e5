package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/states"
	"github.com/berth-dev/berth/runner/agent/toolchain/toolchaintest"
)

const notNeeded = "terraform init is not needed"

// plansAgain plans the change's resource once more and says whether an init ran.
func (c *change) plansAgain(edit func(*jobspec.Spec)) (initialised bool) {
	c.t.Helper()
	spec := c.spec(jobspec.OperationPlan)
	edit(&spec)
	job := c.plane.give(spec)
	if result := c.plane.result(c.t, job); result.Outcome != jobspec.OutcomeSucceeded {
		c.t.Fatalf("plan: %+v", result)
	}
	log := strings.Join(c.plane.log(c.t, c.plane.streamOf(job)), "\n")
	if strings.Contains(log, notNeeded) == strings.Contains(log, "Initializing the backend") {
		c.t.Fatalf("the log says both or neither:\n%s", log)
	}
	return !strings.Contains(log, notNeeded)
}

// What an init found out serves the next jobs of the resource, and nothing else, as long
// as the module is the same.
func TestInitIsKept(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, f form) {
		path, version := terraformHere(t)
		r, _ := newTerraformRunner(t, map[string]any{"terraform": path})
		changed := t.TempDir()
		toolchaintest.Write(t, filepath.Join(changed, "main.tf"), []byte("resource \"terraform_data\" \"a\" { input = 2 }\n"), 0o600)
		layout, err := oci.Open(r.dir.Artifacts())
		if err != nil {
			t.Fatal(err)
		}
		packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: changed})
		if err != nil {
			t.Fatal(err)
		}
		c := newTerraformChange(t, r, f.begin, version)
		job := c.order(asItIs)
		if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
			t.Fatalf("apply: %+v", result)
		}
		if log := strings.Join(c.plane.log(t, c.plane.streamOf(job)), "\n"); !strings.Contains(log, notNeeded) {
			t.Errorf("the apply ran an init:\n%s", log)
		}
		same := func(*jobspec.Spec) {}
		if c.plansAgain(same) {
			t.Error("a second plan of an unchanged module ran an init")
		}
		var own *runnerapi.State
		c.plane.change(func() { own, c.plane.state = c.plane.state, nil }) // it keeps one, of whichever resource
		if !c.plansAgain(func(s *jobspec.Spec) {
			other := *s.Resource
			other.ID = id.New(id.Resource)
			s.Resource = &other
		}) {
			t.Error("another resource got what an init found out for this one")
		}
		c.plane.change(func() { c.plane.state = own })
		if !c.plansAgain(func(s *jobspec.Spec) {
			s.Artifact = &jobspec.Artifact{Repository: s.Artifact.Repository, Digest: packed.Digest.String()}
		}) {
			t.Error("a changed module was planned without an init")
		}
		if !c.plansAgain(same) {
			t.Error("the first module again was planned with what is kept of the other")
		}
		kept, err := filepath.Glob(filepath.Join(r.dir.Inits(), "*.json"))
		if err != nil || len(kept) != 2 {
			t.Fatalf("%v, %v: want one of each resource", kept, err)
		}
		for _, path := range kept { // a disk that loses the end of a file
			if err := os.Truncate(path, 100); err != nil {
				t.Fatal(err)
			}
		}
		if !c.plansAgain(same) || c.plansAgain(same) {
			t.Error("after damage, want one init, and none after that")
		}
	})
}

// A state that the control plane refuses while Terraform runs is not lost: the agent
// hands it in once the engine has ended.
func TestUnsavedStateIsHandedIn(t *testing.T) {
	t.Parallel()
	path, version := terraformHere(t)
	r, _ := newTerraformRunner(t, map[string]any{"terraform": path})
	c := newTerraformChange(t, r, here, version)
	c.plane.change(func() { c.plane.refuses = 1 })
	job := c.order(asItIs)
	result := c.plane.result(t, job)
	if result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "could not save its state") {
		t.Fatalf("apply: %+v", result)
	}
	log := strings.Join(c.plane.log(t, c.plane.streamOf(job)), "\n")
	if !strings.Contains(log, "the state that terraform could not save was handed in, serial 1") {
		t.Errorf("the log:\n%s", log)
	}
	c.plane.mu.Lock()
	state, lock := c.plane.state, c.plane.lock
	c.plane.mu.Unlock()
	if state == nil || state.Serial != 1 || lock != nil {
		t.Fatalf("state %+v, lock %+v", state, lock)
	}
	if strings.Contains(string(state.Body), "terraform_data") {
		t.Error("the state is in clear")
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir.Path(), "evidence", "*", "*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	// The customer has it too.
	kept, err := states.Store{Dir: r.dir.States()}.Find("api", "1")
	if err != nil || kept.Lineage != state.Lineage || string(kept.Sealed) != string(state.Body) || kept.JobID != job {
		t.Errorf("kept for the customer: %+v, %v", kept, err)
	}
	spec := c.spec(jobspec.OperationPlan)
	again := c.plane.give(spec)
	if result := c.plane.result(t, again); result.Outcome != jobspec.OutcomeSucceeded || !result.NoChange {
		t.Errorf("the plan after it: %+v, want nothing to do", result)
	}
}
