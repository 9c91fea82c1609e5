package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// change is an open change of the agent's install, whose workflow waits; "" for no effect yet.
func (a *agent) change(effect string) (changeID string) {
	a.w.t.Helper()
	workflow, step := id.New(id.Workflow), id.New(id.Step)
	changeID = id.New(id.Change)
	a.w.exec(`insert into workflows (id, org_id, install_id, number, kind, inputs_version, created_by)
		values ($1, $2, $3, (select count(*) + 1 from workflows where install_id = $3), 'deploy', 1, 'x')`, workflow, a.o.id, a.o.install)
	a.w.exec(`insert into steps (id, org_id, workflow_id, install_id, idx, name, kind, reason) values ($1, $2, $3, $4, 1, 's', 'deploy', 'x')`, step, a.o.id, workflow, a.o.install)
	a.w.exec(`insert into changes (id, org_id, install_id, workflow_id, step_id, kind, inputs_version, state_version, effect_digest)
		values ($1, $2, $3, $4, $5, 'deploy', 1, 1, nullif($6, ''))`, changeID, a.o.id, a.o.install, workflow, step, effect)
	return changeID
}

// tell reports the customer's word on a change.
func (a *agent) tell(consents ...runnerapi.Consent) *runnerapi.PutConsentsResponse {
	a.w.t.Helper()
	resp, err := a.PutConsentsWithResponse(a.w.t.Context(), runnerapi.ConsentsReport{Consents: consents})
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func (w *world) consent(changeID string) string {
	return one[string](w, `select coalesce((select state || ' ' || why || ' ' || array_to_string(answered_by, ',') from consents where change_id = $1), 'none')`, changeID)
}

// What the customer's side says of a change is kept for that effect, only of the runner's
// own install, and the newest word counts.
func TestConsents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, stranger := w.agent(w.org(), "install"), w.agent(w.org(), "install")
	change := a.change(digest("a"))
	why, by, now := "the guardrail asks", []string{"ada", "bob"}, time.Now().UTC()
	needed := runnerapi.Consent{ChangeID: change, EffectDigest: digest("a"), State: runnerapi.ConsentStateNeeded, Why: &why}
	given := runnerapi.Consent{ChangeID: change, EffectDigest: digest("a"), State: runnerapi.ConsentStateGiven, By: &by, At: &now}

	other := given
	other.EffectDigest = digest("b")
	for name, tell := range map[string]func() *runnerapi.PutConsentsResponse{
		"a stranger":     func() *runnerapi.PutConsentsResponse { return stranger.tell(given) },
		"another effect": func() *runnerapi.PutConsentsResponse { return a.tell(other) },
	} {
		if got := tell(); got.StatusCode() != http.StatusNoContent || w.consent(change) != "none" {
			t.Errorf("%s: %d, and %s", name, got.StatusCode(), w.consent(change))
		}
	}
	for _, step := range []struct {
		told runnerapi.Consent
		want string
	}{{needed, "needed the guardrail asks "}, {needed, "needed the guardrail asks "}, {given, "given  ada,bob"}, {needed, "needed the guardrail asks "}} {
		if got := a.tell(step.told); got.StatusCode() != http.StatusNoContent {
			t.Fatalf("%d %s", got.StatusCode(), got.Body)
		}
		if got := w.consent(change); got != step.want {
			t.Errorf("it says %q, want %q", got, step.want)
		}
	}
	// An event for each word that is new, and none for one that was told before.
	if got := one[string](w, `select string_agg(kind, ' ' order by n) from event_outbox where kind like 'consent.%' and org_id = $1`, a.o.id); got != "consent.needed consent.given consent.needed" {
		t.Errorf("events: %s", got)
	}
	if n := one[int](w, `select count(*)::int from consents`); n != 1 {
		t.Errorf("%d rows", n)
	}
	wrong := given
	wrong.State = "fine"
	refused(t, a.tell(wrong), nil, http.StatusUnprocessableEntity, "invalid")
}

// A plan tells what rules say of it, and whether the customer is asked. What the vendor's
// policies deny stands with the job, for the engine to see without unpacking the plan.
func TestPlanWithJudgement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	j, change := a.lease(job{}), a.change("")
	w.exec(`update runner_jobs set change_id = $2 where id = $1`, j.JobID, change)
	verdict := policy.Verdict{Policy: "no-privileged", Document: "Pod shop/web", Result: policy.Fail, On: policy.Deny}
	judged := func(changeID string) func(*runnerapi.Plan) {
		return func(p *runnerapi.Plan) {
			p.Judgement = &policy.Judgement{Engine: "e", Vendor: []policy.Verdict{verdict}, Answer: policy.Ask}
			p.Consent = &runnerapi.Consent{ChangeID: changeID, EffectDigest: p.EffectDigest, State: runnerapi.ConsentStateNeeded}
		}
	}
	refused(t, a.plan(j, judged(a.change(""))), nil, http.StatusUnprocessableEntity, "invalid")
	if got := a.plan(j, judged(change)); got.StatusCode() != http.StatusNoContent {
		t.Fatalf("%d %s", got.StatusCode(), got.Body)
	}
	if got := w.consent(change); got != "needed  " {
		t.Errorf("the consent is %q", got)
	}
	stored := one[string](w, `select result::text from runner_jobs where id = $1`, j.JobID)
	if !strings.Contains(stored, `"denied by policy: Pod shop/web fail: no-privileged"`) {
		t.Errorf("stored: %s", stored)
	}
	// Of a runner that judges nothing, a plan with policies is denied.
	w.exec(`update runner_jobs set result = jsonb_set(result::jsonb, '{plan,attempt}', '0'), spec = (spec::jsonb || '{"policies": [{"name": "p"}]}')::json where id = $1`, j.JobID)
	if got := a.plan(j, nil); got.StatusCode() != http.StatusNoContent {
		t.Fatalf("%d %s", got.StatusCode(), got.Body)
	}
	if stored := one[string](w, `select result::jsonb->'denied'->>'text' from runner_jobs where id = $1`, j.JobID); !strings.Contains(stored, "berth runners update") {
		t.Errorf("stored: %s", stored)
	}
	w.exec(`update runner_jobs set spec = (spec::jsonb - 'policies')::json where id = $1`, j.JobID)
	// Another attempt's plan is judged by itself.
	w.exec(`update runner_jobs set result = jsonb_set(result::jsonb, '{plan,attempt}', '0') where id = $1`, j.JobID)
	if got := a.plan(j, nil); got.StatusCode() != http.StatusNoContent {
		t.Fatalf("%d %s", got.StatusCode(), got.Body)
	}
	var left any
	if diff := cmp.Diff(left, one[any](w, `select result::jsonb->'denied' from runner_jobs where id = $1`, j.JobID)); diff != "" {
		t.Errorf("the denial of before (-want +got):\n%s", diff)
	}
}
