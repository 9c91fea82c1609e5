package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// change is a change of one resource on its way.
type change struct {
	*runner
	id       string
	resource jobspec.Resource
	artifact jobspec.Artifact
	plan     runnerapi.Plan
	module   string   // the digest of its module, where it is not the usual one
	script   []string // what the apply does in its middle
	// shape makes another kind of job of those of a Terraform module.
	shape func(*jobspec.Spec)
}

// newChange starts an agent and lets it plan.
func newChange(t *testing.T, start func(*runner), script ...string) *change {
	t.Helper()
	return newChangeOf(t, start, func(*jobspec.Spec) {}, script...)
}

func newChangeOf(t *testing.T, start func(*runner), shape func(*jobspec.Spec), script ...string) *change {
	t.Helper()
	return newChangeOn(t, newRunner(t, runnerapi.RunnerKindInstall), start, shape, script...)
}

// newChangeOn is newChangeOf for a runner that is there already.
func newChangeOn(t *testing.T, r *runner, start func(*runner), shape func(*jobspec.Spec), script ...string) *change {
	t.Helper()
	c := changeWithoutPlan(t, r, start, shape, script...)
	spec := c.spec(jobspec.OperationPlan)
	spec.State = r.sealed(map[string]any{"secret": "correct-horse-battery"})
	job := r.plane.give(spec)
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("plan: %+v", result)
	}
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	c.plan = r.plane.plans[job]
	return c
}

// changeWithoutPlan is newChangeOn before it is planned.
func changeWithoutPlan(t *testing.T, r *runner, start func(*runner), shape func(*jobspec.Spec), script ...string) *change {
	t.Helper()
	c := &change{
		runner: r, id: id.New(id.Change), script: script, shape: shape,
		resource: jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "api"},
	}
	module := t.TempDir()
	if err := os.WriteFile(filepath.Join(module, "main.tf"), []byte("# nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	layout, err := oci.Open(r.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: module})
	if err != nil {
		t.Fatal(err)
	}
	c.artifact = jobspec.Artifact{Repository: r.plane.orgID + "/shop/api", Digest: packed.Digest.String()}
	start(r)
	r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
	return c
}

func (c *change) spec(operation jobspec.Operation) jobspec.Spec {
	spec := jobspec.Spec{
		Kind: jobspec.KindTerraformModule, Operation: operation, ChangeID: c.id, Resource: &c.resource, Artifact: &c.artifact,
		Work: jobspec.Work{TerraformModule: &jobspec.TerraformModule{
			Vars: map[string]any{"size": "big"}, VarFiles: c.script, EnvVars: map[string]string{"SECRET": "{{ .nuon.inputs.inputs.secret }}"},
		}},
	}
	c.shape(&spec)
	return spec
}

// order gives the approved change out as a job, after a last edit by the test.
func (c *change) order(edit func(*given)) (job string) {
	c.t.Helper()
	spec := c.spec(jobspec.OperationApply)
	spec.JobID, spec.Pinned = id.New(id.Job), c.plan.Pinned
	return c.plane.give(spec, func(g *given) {
		fence := int64(5)
		g.Fence = &fence
		g.Order.EffectDigest, g.Order.PlanBytesDigest, g.Order.Fence = c.plan.EffectDigest, c.plan.PlanBytesDigest, fence
		g.Order.Nonce, g.Order.Starts = capsule.NewNonce(), capsule.StartsOfMutation
		edit(g)
	})
}

func asItIs(*given) {}

// effects are the jobs that had an effect in the customer's world.
func (c *change) effects() []string {
	c.t.Helper()
	raw, err := os.ReadFile(c.file("effects"))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

// records waits for so many records in the copy of the chain.
func (c *change) records(n int) []chain.Record {
	c.t.Helper()
	c.plane.until(c.t, "records in the chain", func() bool { return len(c.plane.chain) >= n })
	c.plane.mu.Lock()
	defer c.plane.mu.Unlock()
	var out []chain.Record
	for _, line := range c.plane.chain {
		r, err := chain.ParseRecord(line.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func here(r *runner) { r.start() }

func TestPlanAndApply(t *testing.T) {
	t.Parallel()
	c := newChange(t, here)
	if want := c.plan.Effect.Digest(); c.plan.EffectDigest != want {
		t.Errorf("effect digest = %s, want %s", c.plan.EffectDigest, want)
	}
	if c.plan.Pinned == "" || c.plan.PlanBytesDigest != c.plan.Pinned {
		t.Errorf("pinned = %q, plan bytes = %q", c.plan.Pinned, c.plan.PlanBytesDigest)
	}
	if c.plan.Effect.ArtifactDigest != c.artifact.Digest || c.plan.Effect.EngineDigest == "" || !strings.HasPrefix(c.plan.Effect.PlanDigest, "hmac-sha256:") {
		t.Errorf("effect = %+v", c.plan.Effect)
	}
	if c.plan.Summary.Text != "+ (redacted)" {
		t.Errorf("summary shows %q", c.plan.Summary.Text)
	}

	job := c.order(asItIs)
	result := c.plane.result(t, job)
	if result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	c.plane.mu.Lock()
	report := c.plane.results[job][0]
	state := *c.plane.state
	lock := c.plane.lock
	c.plane.mu.Unlock()
	if report.Fence == nil || *report.Fence != 5 {
		t.Errorf("fence of the report = %v, want 5", report.Fence)
	}
	for name, want := range map[string]bool{"url": false, "password": true, "dsn": true} { // dsn holds the password
		out := result.Outputs[name]
		if out.Sensitive != want || strings.Contains(string(out.Value), "s3cret") || seal.HasSealed(out.Value) != want {
			t.Errorf("output %s = %s, sensitive %v; want sealed %v", name, out.Value, out.Sensitive, want)
		}
	}
	if state.Serial != 8 || state.Lineage != "lin" || strings.Contains(string(state.Body), "s3cret") {
		t.Errorf("state = serial %d lineage %s body %q", state.Serial, state.Lineage, state.Body)
	}
	if lock != nil {
		t.Errorf("the state is still locked: %+v", lock)
	}
	if diff := cmp.Diff([]string{job}, c.effects()); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	records := c.records(2)
	intent, outcome := records[0], records[1]
	if intent.Kind != chain.Intent || intent.Effect != c.plan.EffectDigest || outcome.Kind != chain.Outcome || outcome.Intent != intent.Seq || outcome.Result != "succeeded" {
		t.Errorf("chain = %+v", records)
	}
}

// Nothing of a forged, stale or repeated order has an effect, and the report
// names what was wrong. What each single field does is tested in package order.
func TestOrdersThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		edit    func(*given)
		before  func(*change)
		want    []string
		outcome jobspec.Outcome
	}{
		{name: "another effect than was approved", edit: func(g *given) { g.Order.EffectDigest = capsule.DigestBytes(nil) }, want: []string{"effect_digest"}},
		{name: "expired", edit: func(g *given) { g.Order.ExpiresAt = time.Now().Add(-time.Second) }, want: []string{"expires_at"}, outcome: jobspec.OutcomeStale},
		{name: "for another runner", edit: func(g *given) { g.Order.RunnerID = id.New(id.Runner) }, want: []string{"runner_id"}},
		{name: "the pinned plan was changed", before: (*change).spoilPinned, want: []string{"plan_bytes_digest", "plan_bytes_digest"}},
		{name: "a teardown under the approval of a deploy", edit: func(g *given) { g.Spec.Destroy = true }, want: []string{"change_kind"}},
		{name: "the live state moved", before: (*change).moveState, want: []string{"lineage", "serial"}, outcome: jobspec.OutcomeStale},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newChange(t, here)
			if tc.before != nil {
				tc.before(c)
			}
			if tc.edit == nil {
				tc.edit = asItIs
			}
			if tc.outcome == "" {
				tc.outcome = jobspec.OutcomeRefused
			}
			result := c.plane.result(t, c.order(tc.edit))
			if result.Outcome != tc.outcome {
				t.Errorf("result = %+v, want %s", result, tc.outcome)
			}
			var fields []string
			for _, d := range result.Differs {
				fields = append(fields, d.Field)
			}
			if diff := cmp.Diff(tc.want, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if got := c.effects(); len(got) > 0 {
				t.Errorf("it had effects: %v", got)
			}
			for _, r := range c.records(1) {
				if r.Kind != chain.Event {
					t.Errorf("chain = %+v, want an event only", r)
				}
			}
		})
	}
}

func (c *change) spoilPinned() {
	blobs, err := filepath.Glob(filepath.Join(c.dir.Artifacts(), "blobs", "sha256", "*"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range blobs {
		if raw, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(raw), "age-encryption.org") {
			raw[len(raw)-1] ^= 1
			if err := os.Chmod(path, 0o600); err != nil {
				c.t.Fatal(err)
			}
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				c.t.Fatal(err)
			}
			return
		}
	}
	c.t.Fatal("no sealed blob in the own registry")
}

func (c *change) moveState() {
	c.plane.change(func() { c.plane.state = &runnerapi.State{StateID: "stv", Serial: 3, Lineage: "other", Body: nil} })
}

func TestAnOrderIsGoodOnce(t *testing.T) {
	t.Parallel()
	c := newChange(t, here)
	var used capsule.Order
	first := c.order(func(g *given) { used = g.Order })
	if result := c.plane.result(t, first); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	c.gone(first)
	again := c.order(func(g *given) {
		g.Order = used
		g.JobID, g.Spec.JobID, g.Attempt = first, first, 2
	})
	c.plane.until(t, "the second report", func() bool { return len(c.plane.results[first]) > 1 || len(c.plane.results[again]) > 0 })
	c.plane.mu.Lock()
	result := c.plane.results[first][1].Result
	c.plane.mu.Unlock()
	named := slices.ContainsFunc(result.Differs, func(d jobspec.Difference) bool { return d.Field == "nonce" })
	if result.Outcome != jobspec.OutcomeRefused || !named {
		t.Errorf("result = %+v, want the nonce refused", result)
	}
	if diff := cmp.Diff([]string{first}, c.effects()); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

func TestReadOnlySwitchRefusesWhatMutates(t *testing.T) {
	t.Parallel()
	c := newChange(t, here)
	c.turn("read_only")
	result := c.plane.result(t, c.order(asItIs))
	if result.Outcome != jobspec.OutcomeRefused || !strings.Contains(result.Error, "switch") {
		t.Errorf("result = %+v, want it refused by the switch", result)
	}
	if got := c.effects(); len(got) > 0 {
		t.Errorf("it had effects: %v", got)
	}
}

func TestAnEngineThatDiesInAnApplyIsUncertain(t *testing.T) {
	t.Parallel()
	c := newChange(t, here, "die")
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeUncertain {
		t.Errorf("result = %+v, want it uncertain", result)
	}
	c.plane.until(t, "the lock to be freed", func() bool { return c.plane.lock == nil })
	records := c.records(2)
	if last := records[len(records)-1]; last.Kind != chain.Outcome || last.Result != "uncertain" {
		t.Errorf("chain ends with %+v", last)
	}
}

// The agent dies in the middle of an apply. The engine keeps its state backend:
// the next agent listens where the first one did.
func TestKilledAgentInTheMiddleOfAnApply(t *testing.T) {
	t.Parallel()
	needsOwnNamespace(t)
	var kill func()
	r := func(r *runner) {
		cmd := r.startProcess()
		kill = func() {
			_ = cmd.Process.Signal(syscall.SIGKILL)
			_ = cmd.Wait()
		}
	}
	c := newChange(t, r, "") // the script needs the data directory, which is known only now
	c.script = []string{"touch " + c.file("begun") + "\nwait " + c.file("go")}
	job := c.order(asItIs)
	c.appears(c.file("begun"))
	kill()
	c.touch("go") // the engine writes its state while nobody listens
	c.startProcess()
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
	c.plane.until(t, "the state", func() bool { return c.plane.state != nil && c.plane.lock == nil })
	if diff := cmp.Diff([]string{job}, c.effects()); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	records := c.records(2)
	if len(records) != 2 || records[1].Result != "succeeded" || records[1].Intent != records[0].Seq {
		t.Errorf("chain = %+v", records)
	}
}

// A state that the control plane does not take is evidence.
func TestRefusedStateIsKept(t *testing.T) {
	t.Parallel()
	c := newChange(t, here, "")
	c.script = []string{"touch " + c.file("begun") + "\nwait " + c.file("go")}
	job := c.order(asItIs)
	c.appears(c.file("begun"))
	c.plane.change(func() { c.plane.lock = nil }) // as if somebody else had been granted the resource
	c.touch("go")
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeFailed {
		t.Errorf("result = %+v, want it failed", result)
	}
	c.gone(job)
	raw, err := os.ReadFile(filepath.Join(c.dir.Evidence(job+".1"), "refused-state-8.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Reason string
		Write  runnerapi.StateWrite
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		t.Fatal(err)
	}
	keys, err := c.dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	who := datadir.Runner{OrgID: c.plane.orgID, InstallID: c.plane.installID}
	state, err := keys.Open(datadir.StatePurpose(who, c.resource.ID, kept.Write.Lineage, kept.Write.Serial), kept.Write.Body)
	if err != nil || !strings.Contains(string(state), `"serial":8`) || !strings.Contains(kept.Reason, "state_refused") {
		t.Errorf("evidence = %s, %v; reason %q", state, err, kept.Reason)
	}
}
