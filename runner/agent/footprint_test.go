package agent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/order"
)

var publicDatabase = map[string]any{"exposes": "aws_db_instance"}

// A plan says what it newly needs and exposes, without secrets; the effect covers it, and so
// does the runner's own record of the plan.
func TestFootprintOfAPlan(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, guardedCase{vars: publicDatabase, files: map[string]string{guardrail.AnswersFile: `{"only_warn": true, "reason": "a test"}`}})
	const by = "aws_db_instance.(redacted)"
	want := &footprint.Footprint{
		CloudActions: []footprint.CloudActions{{
			Provider: "aws", Type: "aws_db_instance", By: by,
			Actions: []string{"iam:PassRole", "rds:AddTagsToResource", "rds:CreateDBInstance", "rds:DescribeDBInstances", "rds:ListTagsForResource"},
		}},
		Exposed: []footprint.Exposure{{Kind: footprint.PublicService, By: by, At: "publicly_accessible"}},
	}
	got := g.plan.Summary.Footprint
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if digest, err := got.Digest(); err != nil || g.plan.Effect.FootprintDigest != digest {
		t.Errorf("the effect covers %q, want %q, %v", g.plan.Effect.FootprintDigest, digest, err)
	}
	if r := g.plane.result(t, g.order(asItIs)); r.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("the apply of the effect: %+v", r)
	}
}

// A plan that is the same again after a change of uncertain outcome has the same footprint,
// whatever of it is there by then: an approval of it holds.
func TestFootprintOfAPlanThatContinues(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, guardedCase{vars: publicDatabase})
	first := g.plan
	spec := g.spec(jobspec.OperationPlan)
	spec.ChangeID, spec.Continues, spec.State = id.New(id.Change), g.id, g.sealed(map[string]any{"secret": "correct-horse-battery"})
	job := g.plane.give(spec)
	if r := g.plane.result(t, job); r.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("%+v", r)
	}
	g.plane.mu.Lock()
	defer g.plane.mu.Unlock()
	again := g.plane.plans[job]
	if again.Effect.PlanDigest != first.Effect.PlanDigest {
		t.Fatal("the test does not plan the same again")
	}
	if diff := cmp.Diff(first.Summary.Footprint, again.Summary.Footprint); diff != "" || again.Effect.FootprintDigest != first.Effect.FootprintDigest {
		t.Errorf("(-first +again):\n%s", diff)
	}
}

// An order for an effect that leaves out what the plan newly exposes is refused.
func TestAttackFootprint(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, guardedCase{vars: publicDatabase})
	var record order.Record
	if _, err := datadir.ReadJSON(g.dir.Plan(g.id), &record); err != nil {
		t.Fatal(err)
	}
	if record.Effect.FootprintDigest == "" {
		t.Fatal("the record of the plan has no footprint")
	}
	record.Effect.FootprintDigest = ""
	hidden := record.Effect.Digest()
	if hidden == record.EffectDigest {
		t.Fatal("an effect with and one without a footprint are the same")
	}
	g.plan.EffectDigest = hidden
	if r := g.appliedAnyway(); r.Outcome != jobspec.OutcomeRefused || !differs(r, "effect_digest") {
		t.Errorf("%+v", r)
	}
}

// The customer's rule sees the footprint of a plan and denies it; one that does not speak of
// footprints is not held against it.
func TestFootprintIsJudged(t *testing.T) {
	t.Parallel()
	const denyPublic = `package berth
deny contains msg if {
	some e in input.footprint.exposed
	e.kind == "public_service"
	msg := sprintf("%s becomes public", [e.by])
}`
	const onlyPlans = `package berth
deny contains "this is no plan" if not input.plan`
	g := newGuarded(t, guardedCase{vars: publicDatabase, engine: true, files: map[string]string{"public.rego": denyPublic, "plans.rego": onlyPlans}})
	j := g.plan.Judgement
	if g.result.Outcome != jobspec.OutcomeRefused || j == nil || j.Answer != policy.Deny || !strings.Contains(g.result.Error, "becomes public") {
		t.Fatalf("%+v, judgement %+v", g.result, j)
	}
	for _, v := range j.Guardrails {
		if v.Policy == "plans" && v.Result != policy.Pass || strings.Contains(v.String(), "correct-horse-battery") {
			t.Errorf("%s", v)
		}
	}
}

// A plan of which nothing can be read does not look like one that needs nothing.
func TestFootprintOfNothing(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, guardedCase{})
	if f := g.plan.Summary.Footprint; f == nil || len(f.Unknown) != 1 || g.plan.Effect.FootprintDigest == "" {
		t.Errorf("%+v", f)
	}
}
