package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

func (a *agent) plan(j runnerapi.Assignment, change func(*runnerapi.Plan)) *runnerapi.PutPlanResponse {
	a.w.t.Helper()
	effect := capsule.Effect{OrgID: a.o.id, InstallID: a.o.install, ResourceID: a.o.resource, ChangeKind: "deploy", Component: "api"}
	plan := runnerapi.Plan{
		Attempt: j.Attempt, Effect: effect, EffectDigest: effect.Digest(), Pinned: digest("1"), PlanBytesDigest: digest("1"),
		Summary: jobspec.PlanSummary{Create: 1, Text: "+ one"},
	}
	if change != nil {
		change(&plan)
	}
	resp, err := a.PutPlanWithResponse(a.w.t.Context(), j.JobID, plan)
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func (a *agent) report(j runnerapi.Assignment, outcome jobspec.Outcome) *runnerapi.PutResultResponse {
	a.w.t.Helper()
	resp, err := a.PutResultWithResponse(a.w.t.Context(), j.JobID, runnerapi.ResultReport{
		Attempt: j.Attempt, Fence: j.Fence,
		Result: jobspec.Result{
			JobID: j.JobID, Attempt: j.Attempt, Outcome: outcome, StartedAt: time.Unix(1, 0).UTC(), FinishedAt: time.Unix(2, 0).UTC(),
			Outputs: jobspec.Outputs{"url": {Value: []byte(`"x"`)}},
		},
	})
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func TestPlanThenResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	j := a.lease(job{})
	refused(t, a.report(j, jobspec.OutcomeSucceeded), nil, http.StatusConflict, "plan_missing")
	refused(t, a.plan(j, func(p *runnerapi.Plan) { p.EffectDigest = digest("0") }), nil, http.StatusUnprocessableEntity, "invalid")
	refused(t, a.plan(j, func(p *runnerapi.Plan) {
		p.Effect.InstallID = "ins_other"
		p.EffectDigest = p.Effect.Digest()
	}), nil, http.StatusUnprocessableEntity, "invalid")
	must(t, a.plan(j, nil), nil, http.StatusNoContent)
	must(t, a.plan(j, nil), nil, http.StatusNoContent)
	refused(t, a.plan(j, func(p *runnerapi.Plan) { p.Summary.Create = 2 }), nil, http.StatusConflict, "plan_differs")

	for range 2 { // the report, and again after a lost reply
		resp := a.report(j, jobspec.OutcomeSucceeded)
		must(t, resp, nil, http.StatusOK)
		if resp.JSON200.State != runnerapi.JobStateSucceeded {
			t.Errorf("state %s, want succeeded", resp.JSON200.State)
		}
	}
	got := one[string](w, `select concat_ws(' ', j.state, result ->> 'outcome', result #>> '{outputs,url,value}', result #>> '{plan,summary,text}',
		l.state, l.end_reason) from runner_jobs j join leases l on l.job_id = j.id`)
	if diff := cmp.Diff("succeeded succeeded x + one ended succeeded", got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if n := one[int](w, `select count(*) from river_ctl.river_job where kind = 'install_advance' and args ->> 'install_id' = $1`, a.o.install); n != 2 {
		t.Errorf("ctl-api was woken %d times, want for the enrolment and for the result", n)
	}
	// Another report of the same attempt is evidence.
	refused(t, a.report(j, jobspec.OutcomeFailed), nil, http.StatusConflict, "superseded")
	refused(t, a.report(j, jobspec.OutcomeFailed), nil, http.StatusConflict, "superseded")
	late := one[string](w, `select state || ' ' || jsonb_array_length(result -> 'late') || ' ' || (result #>> '{late,0,result,outcome}') from runner_jobs`)
	if diff := cmp.Diff("succeeded 1 failed", late); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}

func TestAResultUnderAnOldFenceIsEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	j := a.lease(job{fence: 1})
	w.exec(`update resources set fence = 2 where id = $1`, a.o.resource)
	refused(t, a.report(j, jobspec.OutcomeSucceeded), nil, http.StatusConflict, "superseded")
	if got := w.jobState(j.JobID); got != "leased/1" {
		t.Errorf("job is %s, want it untouched", got)
	}
}

func TestNotStartedWaitsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	j := a.lease(job{fence: 1})
	for range 2 {
		resp := a.report(j, jobspec.OutcomeNotStarted)
		must(t, resp, nil, http.StatusOK)
		if resp.JSON200.State != runnerapi.JobStateQueued {
			t.Errorf("state %s, want queued", resp.JSON200.State)
		}
	}
	next := a.claim("claim-next", 1, 10)
	if len(next) != 1 || next[0].JobID != j.JobID || next[0].Attempt != 2 || next[0].StreamID == j.StreamID {
		t.Fatalf("claimed %+v, want attempt 2 with a stream of its own", next)
	}
	must(t, a.report(next[0], jobspec.OutcomeUncertain), nil, http.StatusOK)
	if got := w.jobState(j.JobID); got != "failed/2" {
		t.Errorf("job is %s, want failed/2: an uncertain apply never runs again", got)
	}
}

// A job that its runner cannot bring to its end fails, and its error does not
// sound as if it were tried again.
func TestNotStartedTooOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	j := a.lease(job{})
	for attempt := 1; ; attempt++ {
		must(t, a.report(j, jobspec.OutcomeNotStarted), nil, http.StatusOK)
		if attempt == 3 {
			break
		}
		next := a.claim(fmt.Sprintf("claim-next-%d", attempt), 1, 10)
		if len(next) != 1 {
			t.Fatalf("claimed %+v", next)
		}
		j = next[0]
	}
	got := one[string](w, `select state || ': ' || (result ->> 'error') from runner_jobs where id = $1`, j.JobID)
	if !strings.HasPrefix(got, "failed: was given out 3 times and never came to its end") {
		t.Errorf("job is %s", got)
	}
}

func TestABuildWakesTheBuilder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.org()
	a := w.agent(o, "build")
	build, revision := id.New(id.Build), id.New(id.Revision)
	w.exec(`insert into component_revisions (id, org_id, component_id, type, build_digest, deploy_digest, spec) values ($1, $2, $3, 't', 'b', 'd', '{}')`, revision, o.id, o.component)
	w.exec(`insert into builds (id, org_id, app_id, component_id, revision_id, build_digest, source, requested_by) values ($1, $2, $3, $4, $5, 'b', '{}', 'test')`,
		build, o.id, o.app, o.component, revision)
	j := a.lease(job{build: build})
	if got := one[string](w, `select state from builds where id = $1`, build); got != "running" {
		t.Errorf("a claimed build is %s", got)
	}
	must(t, a.report(j, jobspec.OutcomeFailed), nil, http.StatusOK)
	if n := one[int](w, `select count(*) from river_builder.river_job where kind = 'build_advance' and args ->> 'build_id' = $1`, build); n != 1 {
		t.Errorf("the builder was woken %d times, want once", n)
	}
	pushed, err := a.CreateRegistryTokenWithResponse(t.Context(), runnerapi.RegistryTokenRequest{Actions: []runnerapi.RegistryAction{"pull", "push"}})
	must(t, pushed, err, http.StatusOK)
	a.start()
	if open := one[int](w, `select count(*) from registry_tokens where revoked_at is null`); open != 0 {
		t.Errorf("%d registry tokens outlive their session", open)
	}
	install := w.agent(o, "install")
	push, err := install.CreateRegistryTokenWithResponse(t.Context(), runnerapi.RegistryTokenRequest{Actions: []runnerapi.RegistryAction{"push"}})
	refused(t, push, err, http.StatusForbidden, "push_refused")
}
