package workflow_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/model"
)

// judged reports the plan of a step's change with what rules say of it.
func (r *rig) judged(workflowID, step, what string, j policy.Judgement) {
	r.t.Helper()
	r.judgedAs(workflowID, step, what, jobspec.OutcomeSucceeded, j)
}

func (r *rig) judgedAs(workflowID, step, what string, outcome jobspec.Outcome, j policy.Judgement) {
	r.t.Helper()
	jobID, spec := r.openJob(workflowID, step)
	effect := capsule.Effect{OrgID: r.org, InstallID: r.install, ChangeKind: "deploy", Component: what, PlanDigest: what}
	if spec.Resource != nil {
		effect.ResourceID = spec.Resource.ID
	}
	result := model.JobResult{Plan: &model.Plan{
		Attempt: 1, Effect: effect, EffectDigest: effect.Digest(), Pinned: "sha256:" + strings.Repeat("0", 64), Summary: jobspec.PlanSummary{Create: 1}, Judgement: &j,
	}}
	raw, err := json.Marshal(result)
	if err != nil {
		r.t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(raw, &stored); err != nil {
		r.t.Fatal(err)
	}
	stored["outcome"] = outcome
	if text := j.Denies(); text != "" { // as runner-api stores it
		stored["denied"] = model.Denial{Text: text, EffectDigest: effect.Digest()}
	}
	r.report(workflowID, jobID, string(outcome), stored)
}

// consent is a word of the customer on the change that a step is at, as runner-api stores it.
func (r *rig) consent(workflowID, step, state, why string) {
	r.t.Helper()
	r.exec(`insert into consents (org_id, install_id, change_id, effect_digest, state, why, answered_by)
		select c.org_id, c.install_id, c.id, c.effect_digest, $3, $4, '{ada}' from changes c join steps s on s.change_id = c.id where s.workflow_id = $1 and s.name = $2
		on conflict (org_id, change_id) do update set state = excluded.state, why = excluded.why`, workflowID, step, state, why)
}

func denial() policy.Judgement {
	return policy.Judgement{Engine: "test 1", Vendor: []policy.Verdict{
		{Policy: "no-privileged", Document: "Pod shop/web", Component: "api", Result: policy.Fail, On: policy.Deny, Message: "privileged"},
		{Policy: "labels", Document: "Pod shop/web", Component: "api", Result: policy.Pass},
	}, Answer: policy.Allow}
}

func liveRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.provisionWithoutChecks()
	r.exec(`update installs set approval_option = 'approve_all'`)
	return r
}

// A policy of the vendor ends the change, whatever was approved ahead. The same effect
// passes once an admin has overridden it, and another one does not.
func TestPolicyDeniesAPlan(t *testing.T) {
	t.Parallel()
	r := liveRig(t)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"card"}})
	r.judged(w, "component/card", "one", denial())
	if got := r.steps(w)["component/card"]; got != "failed denied" {
		t.Fatalf("it is %q", got)
	}
	if got := r.value(`select ended || ' by ' || ended_by from workflows where id = $1`, w); got != "denied by "+flow.ByPolicies {
		t.Errorf("the workflow ended %s", got)
	}
	change := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/card'`, w)
	got := r.value(`select string_agg(side || ' ' || policy || ' ' || answer || ' ' || passed || '/' || failed || ' ' || findings::text, '; ' order by policy) from policy_reports where change_id = $1`, change)
	if !strings.Contains(got, "vendor labels allow 1/0 []; vendor no-privileged deny 0/1 [") || !strings.Contains(got, "Pod shop/web") {
		t.Errorf("reports: %s", got)
	}
	if text := r.value(`select error || ' | ' || remedy from changes where id = $1`, change); !strings.Contains(text, "no-privileged: privileged") || !strings.Contains(text, "berth policies override "+change) {
		t.Errorf("it says: %s", text)
	}

	r.exec(`insert into policy_overrides (org_id, install_id, change_id, effect_digest, reason, actor, until) select org_id, install_id, id, effect_digest, 'seen', 'ann', now() + interval '1 day' from changes where id = $1`, change)
	retry := func() {
		t.Helper()
		r.tx(func(ctx context.Context, tx *database.Tx) error {
			_, err := workflow.Retry(ctx, tx, r.value(`select id from steps where workflow_id = $1 and name = 'component/card'`, w), "ann")
			return err
		})
		r.advance(w)
	}
	retry()
	r.judged(w, "component/card", "another", denial())
	if got := r.steps(w)["component/card"]; got != "failed denied" {
		t.Fatalf("another effect passes by the override: it is %q", got)
	}
	retry()
	r.judged(w, "component/card", "one", denial())
	if got := r.steps(w)["component/card"]; got != "running executing" {
		t.Errorf("with the override it is %q", got)
	}
	r.exec(`update policy_overrides set until = now() - interval '1 minute'`)
	r.applied(w, "component/card", jobspec.OutcomeStale, nil)
	r.judged(w, "component/card", "one", denial())
	if got := r.steps(w)["component/card"]; got != "failed denied" {
		t.Errorf("after the override's time it is %q", got)
	}
}

// A warning denies nothing, and is written down.
func TestPolicyWarns(t *testing.T) {
	t.Parallel()
	r := liveRig(t)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"card"}})
	r.judged(w, "component/card", "one", policy.Judgement{Engine: "test 1", Vendor: []policy.Verdict{{Policy: "labels", Document: "d", Result: policy.Fail, On: policy.Warn}},
		Guardrails: []policy.Verdict{{Policy: "labels", Document: "d", Result: policy.Unknown}}})
	if got := r.steps(w)["component/card"]; got != "running executing" {
		t.Errorf("it is %q", got)
	}
	if got := r.value(`select string_agg(side || ' ' || answer, ', ' order by side) from policy_reports`); got != "customer ask, vendor warn" {
		t.Errorf("reports: %s", got)
	}
}

// The reports of a plan that the customer's guardrails deny are kept, although the runner
// refuses it.
func TestGuardrailsDenyAPlan(t *testing.T) {
	t.Parallel()
	r := liveRig(t)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"card"}})
	r.judgedAs(w, "component/card", "one", jobspec.OutcomeRefused, policy.Judgement{Engine: "test 1", Answer: policy.Deny,
		Guardrails: []policy.Verdict{{Policy: "no-host-path", Document: "d", Result: policy.Fail, On: policy.Deny}}})
	if got := r.steps(w)["component/card"]; got != "failed refused" {
		t.Errorf("it is %q", got)
	}
	if got := r.value(`select string_agg(side || ' ' || policy || ' ' || answer, ', ') from policy_reports`); got != "customer no-host-path deny" {
		t.Errorf("reports: %s", got)
	}
}

// An approved change waits for the customer where the runner asks for that, says so, and
// goes on by itself; a denial of the customer ends it.
func TestChangeWaitsForConsent(t *testing.T) {
	t.Parallel()
	r := liveRig(t)
	r.exec(`update installs set approval_option = 'prompt'`)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"card"}})
	r.planned(w, "component/card", "one")
	r.consent(w, "component/card", "needed", "guardrail keeps-data asks")
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		return workflow.ApproveAll(ctx, tx, workflow.Standing{WorkflowID: w, Actor: "ann"})
	})
	r.advance(w)
	if got := r.steps(w)["component/card"]; got != "waiting approved" {
		t.Fatalf("it is %q", got)
	}
	change := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/card'`, w)
	if codes, text := r.why(w); codes != "consent customer" || !strings.Contains(text, "the customer has to agree to it: guardrail keeps-data asks | the customer runs, on the runner's machine: berth-runner approve "+change) {
		t.Errorf("it waits for %s: %s", codes, text)
	}
	if stuck := r.value(`select berth.stuck_workflows()::text`); stuck != "{}" {
		t.Errorf("the sweep takes it for stuck: %s", stuck)
	}
	r.consent(w, "component/card", "given", "")
	if stuck := r.value(`select berth.stuck_workflows()::text`); !strings.Contains(stuck, w) {
		t.Errorf("the sweep does not see that it can go on: %s", stuck)
	}
	r.advance(w)
	if got := r.steps(w)["component/card"]; got != "running executing" {
		t.Errorf("with the consent it is %q", got)
	}
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)

	w = r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"card"}})
	r.planned(w, "component/card", "two")
	r.consent(w, "component/card", "denied", "not before Monday")
	r.advance(w)
	if got := r.steps(w)["component/card"]; got != "failed denied" {
		t.Errorf("denied by the customer it is %q", got)
	}
	want := []string{"denied by " + flow.ByCustomer, "ada denied it: not before Monday"}
	got := []string{r.value(`select ended || ' by ' || ended_by from workflows where id = $1`, w), r.value(`select c.error from changes c join steps s on s.change_id = c.id where s.workflow_id = $1 and s.name = 'component/card'`, w)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if kinds := r.value(`select string_agg(kind, ' ' order by n) from event_outbox where kind like 'consent.%'`); kinds != "consent.needed consent.given consent.denied" {
		t.Errorf("events: %s", kinds)
	}
}
