package agent_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

func differing(result jobspec.Result) []string {
	var fields []string
	for _, d := range result.Differs {
		fields = append(fields, d.Field)
	}
	return fields
}

// A check reads only, says its spec. Somebody who can write jobs into the
// database of the control plane, but has not its key, gets no script run by
// that.
func TestAttackScriptsWithoutAnOrder(t *testing.T) {
	t.Parallel()
	stranger := func() dispatch {
		public, private, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		return dispatch{id: capsule.KeyID(public), key: private}
	}
	for _, tc := range []struct {
		name string
		edit func(*runner, *given)
		want []string
	}{
		{"no order", func(_ *runner, g *given) { g.Unsigned = true }, []string{"order"}},
		{"a stranger's key", func(_ *runner, g *given) { g.Signer = stranger() }, []string{"signature"}},
		{"a stranger's key under the name of the pinned one", func(r *runner, g *given) {
			g.Signer = stranger()
			g.Signer.id = r.dispatch.id
		}, []string{"signature"}},
		{"another script under the same order", func(_ *runner, g *given) { g.Order.SpecDigest = capsule.DigestBytes([]byte("{}")) }, []string{"spec_digest"}},
		{"the same values, written otherwise", func(_ *runner, g *given) {
			text, err := json.Marshal(g.Spec)
			if err != nil {
				t.Fatal(err)
			}
			g.Order.SpecDigest = capsule.DigestBytes(text)
			g.Text = []byte(strings.Replace(string(text), `"check"`, `"\u0063heck"`, 1))
		}, []string{"spec_digest"}},
		{"a state that was not ordered", func(r *runner, g *given) {
			g.Spec.State = r.sealed(map[string]any{"secret": "a leaf that an oracle would open"})
		}, []string{"state_digest"}},
		{"the order of another runner", func(_ *runner, g *given) { g.Order.RunnerID = id.New(id.Runner) }, []string{"runner_id"}},
		{"the order of the machine before", func(_ *runner, g *given) { g.Order.MachineKeyID = "ed25519:" + strings.Repeat("0", 32) }, []string{"machine_key_id"}},
		{"the order of another job", func(_ *runner, g *given) { g.Order.JobID = id.New(id.Job) }, []string{"job_id", "job_id"}},
		{"a plan's order for a script", func(_ *runner, g *given) { g.Order.Operation = "plan" }, []string{"operation"}},
		{"yesterday's order", func(_ *runner, g *given) {
			g.Order.IssuedAt, g.Order.ExpiresAt = time.Now().Add(-24*time.Hour), time.Now().Add(-time.Hour)
		}, []string{"expires_at"}},
		{"an order for ever", func(_ *runner, g *given) { g.Order.ExpiresAt = time.Now().AddDate(73, 0, 0) }, []string{"expires_at"}},
		{"an order of tomorrow", func(_ *runner, g *given) {
			g.Order.IssuedAt, g.Order.ExpiresAt = time.Now().Add(12*time.Hour), time.Now().Add(13*time.Hour)
		}, []string{"issued_at"}},
		{"a build for an install", func(_ *runner, g *given) {
			g.Spec.Operation, g.Order.Operation = jobspec.OperationBuild, "build"
		}, []string{"operation"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			r.start()
			r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
			job := r.plane.give(script("touch "+r.file("begun")), func(g *given) { tc.edit(r, g) })
			result := r.plane.result(t, job)
			if result.Outcome != jobspec.OutcomeRefused || result.Remedy == "" {
				t.Errorf("result = %+v, want it refused, with a remedy", result)
			}
			if diff := cmp.Diff(tc.want, differing(result)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if exists(r.file("begun")) {
				t.Error("the script ran")
			}
			// The acceptance of the good script stands before it.
			if got := r.recorded("refused: order for"); got.Kind != chain.Event || got.Job != job {
				t.Errorf("the chain does not say so: %+v", got)
			}
		})
	}
}

// An order is good for so many starts, and an ended job for none, also after a
// restart, and whatever attempt is claimed.
func TestAttackAnOrderGivenAgain(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	stop := r.start()
	r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
	spec := script("append " + r.file("effects"))
	spec.JobID = id.New(id.Job)
	again := func(attempt int) jobspec.Result {
		t.Helper()
		r.gone(spec.JobID)
		r.plane.mu.Lock()
		seen := len(r.plane.results[spec.JobID])
		r.plane.mu.Unlock()
		r.plane.give(spec, func(g *given) { g.Attempt = attempt })
		r.plane.until(t, "one more result", func() bool { return len(r.plane.results[spec.JobID]) > seen })
		r.plane.mu.Lock()
		defer r.plane.mu.Unlock()
		return r.plane.results[spec.JobID][seen].Result
	}
	if result := again(1); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	for _, attempt := range []int{1, 2, 1000} {
		if result := again(attempt); result.Outcome != jobspec.OutcomeRefused || !slices.Equal(differing(result), []string{"job_id"}) {
			t.Errorf("attempt %d: %+v, want it refused as ended", attempt, result)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.start()
	if result := again(2); result.Outcome != jobspec.OutcomeRefused {
		t.Errorf("after a restart: %+v, want it refused", result)
	}
	if got := r.count(); got != 1 {
		t.Errorf("the script ran %d times, want 1", got)
	}
}

// With the dispatch key in hand: one plan, any number of fresh nonces. An effect
// is brought about once, under the origin of its plan and no other.
func TestAttackOnePlanManyOrders(t *testing.T) {
	t.Parallel()
	c := newChange(t, here)
	if result := c.plane.result(t, c.order(asItIs)); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	c.plane.change(func() { c.plane.state = nil }) // as before, so that the plan still fits
	for name, tc := range map[string]struct {
		edit func(*given)
		want string
	}{
		"a fresh nonce":  {asItIs, "effect_digest"},
		"another origin": {func(g *given) { g.Order.OriginID = id.New(id.Change) }, "origin_id"},
		"a higher fence": {func(g *given) { *g.Fence, g.Order.Fence = 6, 6 }, "effect_digest"},
		"a state with it": {func(g *given) {
			g.Spec.State = c.sealed(map[string]any{"secret": "x"})
			g.Order.StateDigest = capsule.DigestBytes(g.Spec.State)
		}, "state_digest"},
	} {
		result := c.plane.result(t, c.order(tc.edit))
		if result.Outcome != jobspec.OutcomeRefused || !slices.Contains(differing(result), tc.want) {
			t.Errorf("%s: %+v, want %s refused", name, result, tc.want)
		}
	}
	if got := c.effects(); len(got) != 1 {
		t.Errorf("effects = %v, want one", got)
	}
}

// What fails may be tried again under a new order, but not for ever.
func TestAttackTriesWithoutEnd(t *testing.T) {
	t.Parallel()
	c := newChange(t, here, "fail always")
	for try := 1; try <= 4; try++ {
		c.plane.change(func() { c.plane.lock = nil })
		result := c.plane.result(t, c.order(asItIs))
		if want := map[bool]jobspec.Outcome{true: jobspec.OutcomeFailed, false: jobspec.OutcomeRefused}[try <= 3]; result.Outcome != want {
			t.Errorf("try %d: %+v, want it %s", try, result, want)
		}
	}
	if got := c.effects(); len(got) != 3 {
		t.Errorf("%d tries began, want 3", len(got))
	}
}

// The apply gets no state, and its log still hides what the plan was given.
func TestAttackSecretsInTheLogOfAnApply(t *testing.T) {
	t.Parallel()
	c := newChange(t, here, "print correct-horse-battery", "secret")
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	lines := strings.Join(c.plane.log(t, c.plane.streamOf(job)), "\n")
	if strings.Contains(lines, "correct-horse-battery") || !strings.Contains(lines, "(redacted)") {
		t.Errorf("the secret shows in the log:\n%s", lines)
	}
	if !strings.Contains(lines, "the secret is \n") && !strings.HasSuffix(lines, "the secret is ") {
		t.Errorf("the apply was given the state:\n%s", lines)
	}
}

// A Build Runner works for its builder and for nobody else: the org's dispatch
// key orders nothing of it, and the builder's key nothing of an install.
func TestAttackKeysOfOthers(t *testing.T) {
	t.Parallel()
	build := newRunner(t, runnerapi.RunnerKindBuild)
	install := newRunner(t, runnerapi.RunnerKindInstall)
	for r, spec := range map[*runner]jobspec.Spec{
		install: script("touch " + install.file("begun")),
		build: {
			Kind: jobspec.KindHelmChart, Operation: jobspec.OperationBuild, BuildID: id.New(id.Build), Source: &jobspec.Source{Kind: "archive", Push: "org/shop/web"},
		},
	} {
		// The key that signs here is pinned by the other kind's list.
		trust, err := r.dir.LoadTrust()
		if err != nil {
			t.Fatal(err)
		}
		trust.DispatchKeys, trust.BuilderKeys = trust.BuilderKeys, trust.DispatchKeys
		if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
			t.Fatal(err)
		}
		r.plane.accept = nil // with the wrong keys nothing is
		r.start()
		result := r.plane.result(t, r.plane.give(spec))
		if result.Outcome != jobspec.OutcomeRefused || !slices.Equal(differing(result), []string{"signature"}) {
			t.Errorf("%s: %+v, want the signature refused", spec.Operation, result)
		}
	}
	if exists(install.file("begun")) {
		t.Error("the script ran")
	}
}

// A session that was taken over names other addresses: tokens and logs do not go
// there.
func TestAttackSessionNamesOtherHosts(t *testing.T) {
	t.Parallel()
	for name, pinned := range map[string]bool{"as trust.json says": true, "as the first session said": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			if !pinned {
				trust, err := r.dir.LoadTrust()
				if err != nil {
					t.Fatal(err)
				}
				trust.LogURL, trust.Registry = "", ""
				if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
					t.Fatal(err)
				}
				stop := r.start()
				r.plane.until(t, "a session", func() bool { return len(r.plane.asked) > 0 })
				if err := stop(); err != nil {
					t.Fatal(err)
				}
			}
			r.plane.change(func() { r.plane.registry, r.plane.asked = "evil.example.com", nil })
			r.start()
			r.plane.until(t, "two more sessions", func() bool { return len(r.plane.sessions) >= 3 })
			r.plane.mu.Lock()
			asked := len(r.plane.asked)
			r.plane.mu.Unlock()
			if asked != 0 {
				t.Error("the runner works in a session that names another registry")
			}
			status, err := os.ReadFile(r.dir.Status())
			if err != nil || !strings.Contains(string(status), "evil.example.com") {
				t.Errorf("the status does not say why: %s, %v", status, err)
			}
		})
	}
}
