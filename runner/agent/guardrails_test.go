package agent_test

import (
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/guards"
)

// installPolicy puts the policy engine where the runner looks for it, as `make build` made it.
func installPolicy(t *testing.T, r *runner) {
	t.Helper()
	from, err := filepath.Abs(filepath.Join(os.Getenv("BERTH_LIBEXEC"), "berth-policy"))
	if os.Getenv("BERTH_LIBEXEC") == "" {
		from, err = filepath.Abs("../../.bin/berth-policy")
	}
	if err != nil {
		t.Fatal(err)
	}
	if !exists(from) {
		t.Skip("there is no berth-policy: run `make build`")
	}
	to := filepath.Join(filepath.Dir(r.binary), "berth-policy")
	if os.Link(from, to) == nil {
		return
	}
	program, err := os.ReadFile(from) // on another disk
	if err == nil {
		err = os.WriteFile(to, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// guarded is a change of a module that replaces a database, on a runner whose guardrails count.
type guarded struct {
	*change
	result jobspec.Result // of the plan
}

type guardedCase struct {
	files  map[string]string // the customer's
	vars   map[string]any
	rules  []policy.Rules // the vendor's
	engine bool           // berth-policy is there
	tear   bool           // it is a teardown
	before func(*runner)
}

func newGuarded(t *testing.T, tc guardedCase) guarded {
	t.Helper()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.guardrails(guardrail.AnswersFile, "")
	for name, text := range tc.files {
		r.guardrails(name, text)
	}
	if tc.engine {
		installPolicy(t, r)
	}
	if tc.before != nil {
		tc.before(r)
	}
	c := changeWithoutPlan(t, r, here, func(s *jobspec.Spec) {
		s.Policies, s.Destroy = tc.rules, tc.tear
		for name, value := range tc.vars {
			s.TerraformModule.Vars[name] = value
		}
	})
	g := guarded{change: c}
	spec := c.spec(jobspec.OperationPlan)
	spec.State = r.sealed(map[string]any{"secret": "correct-horse-battery"})
	job := r.plane.give(spec)
	g.result = r.plane.result(t, job)
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	c.plan = r.plane.plans[job]
	return g
}

var database = map[string]any{"replaces": "aws_db_instance"}

const denyAll = `package berth
deny contains msg if {
	some r in input.plan.resource_changes
	msg := sprintf("%s had the password %s", [r.address, r.change.before.password])
}`

// appliedAnyway is the apply that a control plane orders which says that all was approved.
func (g guarded) appliedAnyway() jobspec.Result {
	g.t.Helper()
	result := g.plane.result(g.t, g.order(asItIs))
	if effects := g.effects(); len(effects) > 0 && result.Outcome != jobspec.OutcomeSucceeded {
		g.t.Errorf("effects of a change that was not to happen: %v", effects)
	}
	return result
}

func differs(r jobspec.Result, field string) bool {
	return slices.ContainsFunc(r.Differs, func(d jobspec.Difference) bool { return d.Field == field })
}

func TestGuardrailThatAsks(t *testing.T) {
	t.Parallel()
	var key ed25519.PrivateKey
	g := newGuarded(t, guardedCase{vars: database, engine: true, before: func(r *runner) { key = r.asking(consent.ModeVendor) }})
	j := g.plan.Judgement
	if g.result.Outcome != jobspec.OutcomeSucceeded || j == nil || j.Answer != policy.Ask || j.Development || !strings.HasPrefix(j.Engine, "berth-policy ") {
		t.Fatalf("plan: %+v, judgement %+v", g.result, j)
	}
	if c := g.plan.Consent; c == nil || c.State != runnerapi.ConsentStateNeeded || c.ChangeID != g.id || c.EffectDigest != g.plan.EffectDigest || !strings.Contains(*c.Why, "aws_db_instance.main") {
		t.Errorf("consent: %+v", c)
	}
	if e := g.plan.Effect; !strings.HasPrefix(e.GuardrailsDigest, "sha256:") || !strings.HasPrefix(e.Verdict, "ask sha256:") {
		t.Errorf("effect: %+v", e)
	}
	if r := g.appliedAnyway(); r.Outcome != jobspec.OutcomeRefused || !differs(r, "consent") || !strings.Contains(r.Error, "has not agreed") || !strings.Contains(r.Remedy, "berth-runner approve "+g.id) {
		t.Errorf("apply: %+v", r)
	}
	g.says(g.planned(), key, consent.Approve)
	if r := g.plane.result(t, g.order(asItIs)); r.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("apply once the customer agreed: %+v", r)
	}
}

// Whatever the control plane orders, and whatever its database says.
func TestGuardrailThatDenies(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, guardedCase{files: map[string]string{"no-databases.rego": denyAll}, vars: database, engine: true})
	if g.result.Outcome != jobspec.OutcomeRefused || !strings.Contains(g.result.Error, "no-databases") || g.plan.Judgement == nil || g.plan.Judgement.Answer != policy.Deny {
		t.Fatalf("plan: %+v, judgement %+v", g.result, g.plan.Judgement)
	}
	said, err := json.Marshal([]any{g.plan, g.result})
	if err != nil || strings.Contains(string(said), "correct-horse-battery") {
		t.Errorf("a message of a guardrail told a secret: %s", said)
	}
	// A denied plan pins nothing; the control plane makes something up.
	g.plan.Pinned = "sha256:" + strings.Repeat("a", 64)
	g.plan.PlanBytesDigest = g.plan.Pinned
	if r := g.appliedAnyway(); r.Outcome != jobspec.OutcomeRefused || !differs(r, "guardrails") {
		t.Errorf("apply: %+v", r)
	}
}

func TestGuardrailsThatChangeAfterThePlan(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, guardedCase{vars: map[string]any{"replaces": "random_pet"}, engine: true})
	if g.result.Outcome != jobspec.OutcomeSucceeded || g.plan.Judgement.Answer != policy.Allow || g.plan.Consent != nil {
		t.Fatalf("plan: %+v, judgement %+v", g.result, g.plan.Judgement)
	}
	g.guardrails("no-databases.rego", denyAll)
	if r := g.appliedAnyway(); r.Outcome != jobspec.OutcomeStale || !differs(r, "guardrails_digest") || !strings.Contains(r.Error, "guardrails changed since the plan") {
		t.Errorf("apply: %+v", r)
	}
	g.guardrails("no-databases.rego", "")
	if r := g.plane.result(t, g.order(asItIs)); r.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("apply with the guardrails of the plan: %+v", r)
	}
}

// A rule that looks at the clock is asked again before the apply.
func TestGuardrailThatLooksAtTheClock(t *testing.T) {
	t.Parallel()
	var g guarded
	var freeze time.Time
	for wait := 5 * time.Second; ; wait *= 2 { // until the machine is quick enough to plan before the freeze
		freeze = time.Now().Add(wait) // the clock of the rule is the real one
		g = newGuarded(t, guardedCase{vars: map[string]any{"replaces": "random_pet"}, engine: true, files: map[string]string{
			"freeze.rego": "package berth\nallowed := time.now_ns() < " + nanoseconds(freeze) + "\ndeny contains \"the freeze has begun\" if not allowed\n",
		}})
		if g.plan.Judgement.Answer == policy.Allow || wait > time.Minute {
			break
		}
	}
	if g.result.Outcome != jobspec.OutcomeSucceeded || g.plan.Judgement.Answer != policy.Allow {
		t.Fatalf("plan: %+v, judgement %+v", g.result, g.plan.Judgement)
	}
	time.Sleep(time.Until(freeze))
	if r := g.appliedAnyway(); r.Outcome != jobspec.OutcomeRefused || !strings.Contains(r.Error, "the freeze has begun") {
		t.Errorf("apply: %+v", r)
	}
}

func nanoseconds(at time.Time) string {
	raw, err := json.Marshal(at.UnixNano())
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestVendorsPoliciesAreJudgedWithThePlan(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, guardedCase{vars: map[string]any{"replaces": "random_pet"}, engine: true, rules: []policy.Rules{
		{Name: "pets", Language: policy.Rego, Type: policy.TypeTerraformModule, Text: "package nuon\ndeny contains \"no pets\" if input.plan.resource_changes[_].type == \"random_pet\""},
	}})
	j := g.plan.Judgement
	if g.result.Outcome != jobspec.OutcomeSucceeded || j == nil || j.Answer != policy.Allow || len(j.Vendor) != 1 || j.Vendor[0].Policy != "pets" || j.Vendor[0].Result != policy.Fail {
		t.Errorf("plan: %+v, judgement %+v", g.result, j)
	}
}

// What cannot be judged asks.
func TestGuardrailsInDoubt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		guardedCase
		says string
	}{
		"the engine leaves no documents":      {guardedCase{engine: true}, "left no documents"},
		"its documents tell something else":   {guardedCase{engine: true, vars: map[string]any{"replaces": "aws_db_instance", "lies": true}}, "has other resource_changes than the plan that is shown"},
		"there is no policy engine":           {guardedCase{vars: map[string]any{"replaces": "random_pet"}}, "the policy engine gave no answer"},
		"a guardrail that does not load":      {guardedCase{engine: true, vars: map[string]any{"replaces": "random_pet"}, files: map[string]string{"half.rego": "package berth\n\ndeny contains"}}, "guardrails/half.rego:3"},
		"answers that are no JSON":            {guardedCase{engine: true, vars: map[string]any{"replaces": "random_pet"}, files: map[string]string{"answers.json": "{\n\"only_warn\": 1}"}}, "guardrails/answers.json:2"},
		"a loosening of nothing":              {guardedCase{engine: true, vars: map[string]any{"replaces": "random_pet"}, files: map[string]string{"answers.json": `{"answers": [{"guardrail": "data-resorce", "answer": "allow", "reason": "x"}]}`}}, `no guardrail "data-resorce"`},
		"a file of somebody else":             {guardedCase{engine: true, vars: map[string]any{"replaces": "random_pet"}, before: givenAway}, "belongs to user 12345"},
		"a folder that others may write":      {guardedCase{engine: true, vars: map[string]any{"replaces": "random_pet"}, before: opened}, "can be written by others"},
		"a rule that does not come to an end": {guardedCase{engine: true, vars: map[string]any{"replaces": "random_pet"}, files: map[string]string{"loop.rego": loop}}, "loop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, tc.guardedCase)
			j := g.plan.Judgement
			if g.result.Outcome != jobspec.OutcomeSucceeded || j == nil || j.Answer != policy.Ask || g.plan.Consent == nil {
				t.Fatalf("plan: %+v, judgement %+v", g.result, j)
			}
			against := guardrail.Against(*j, policy.Ask)
			if len(against) != 1 || !strings.Contains(against[0], tc.says) {
				t.Errorf("got %q, want one that says %q", against, tc.says)
			}
			if r := g.appliedAnyway(); r.Outcome != jobspec.OutcomeRefused {
				t.Errorf("apply: %+v", r)
			}
		})
	}
}

// loop is a rule that takes about forever.
const loop = `package berth
deny contains "found" if {
	n := numbers.range(1, 100000)
	some a in n
	some b in n
	some c in n
	a * b * c == 17
	a > 17
}`

// givenAway has a guardrail that loosens everything, made by another user.
func givenAway(r *runner) {
	r.guardrails("answers.json", `{"only_warn": true, "reason": "let me in"}`)
	if os.Geteuid() != 0 {
		r.t.Skip("only root gives files away")
	}
	if err := os.Chown(filepath.Join(r.dir.Guardrails(), "answers.json"), 12345, 12345); err != nil {
		r.t.Fatal(err)
	}
}

func opened(r *runner) {
	r.guardrails("answers.json", `{"only_warn": true, "reason": "let me in"}`)
	if err := os.Chmod(r.dir.Guardrails(), 0o777); err != nil {
		r.t.Fatal(err)
	}
}

// A teardown that the customer permitted is not asked about.
func TestPermittedTeardown(t *testing.T) {
	t.Parallel()
	permit := func(r *runner) {
		if err := datadir.WriteJSON(r.dir.Deprovision(), guards.Permit{Until: time.Now().Add(time.Hour), Reason: "we move", Components: []string{"api"}}); err != nil {
			r.t.Fatal(err)
		}
	}
	g := newGuarded(t, guardedCase{vars: database, engine: true, tear: true, before: permit})
	if g.result.Outcome != jobspec.OutcomeSucceeded || g.plan.Judgement == nil || g.plan.Judgement.Answer != policy.Warn || g.plan.Consent != nil {
		t.Fatalf("plan: %+v, judgement %+v", g.result, g.plan.Judgement)
	}
	if err := datadir.Remove(g.dir.Deprovision()); err != nil {
		t.Fatal(err)
	}
	if r := g.appliedAnyway(); r.Outcome != jobspec.OutcomeRefused || !differs(r, "consent") {
		t.Errorf("apply once the permission is gone: %+v", r)
	}
	permit(g.runner)
	if r := g.plane.result(t, g.order(asItIs)); r.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("apply: %+v", r)
	}
	again := newGuarded(t, guardedCase{vars: database, engine: true, before: permit})
	if again.plan.Judgement == nil || again.plan.Judgement.Answer != policy.Ask {
		t.Errorf("a permission for teardowns let a deploy through: %+v", again.plan.Judgement)
	}
}
