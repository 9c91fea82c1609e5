package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/runner-api/internal/heldback"
)

// remediation is a report about the check health.
func remediation(seq int64, state jobspec.RemediationState) jobspec.Remediation {
	return jobspec.Remediation{
		Check: "health", Action: "repair", Seq: seq, State: state, Attempts: 1, Of: 3, BeganAt: tick, ChangedAt: tick.Add(time.Duration(seq) * time.Second),
	}
}

// remedied reports, and returns why the next attempt should wait.
func (a *agent) remedied(rmd string, r jobspec.Remediation) string {
	a.w.t.Helper()
	resp, err := a.PutRemediationWithResponse(a.w.t.Context(), rmd, r)
	must(a.w.t, resp, err, http.StatusOK)
	if resp.JSON200.Hold == nil {
		return ""
	}
	return *resp.JSON200.Hold
}

// A remediation is what its newest report says, in whatever order reports come, and its runs
// are told apart from those of the schedule.
func TestRemediationIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publishRemedies(a.o, "repair", "health")
	rmd := id.New(id.Remediation)
	a.remedied(rmd, remediation(3, jobspec.RemediationHelped))
	a.remedied(rmd, remediation(2, jobspec.RemediationRunning))
	a.remedied(rmd, remediation(3, jobspec.RemediationHelped)) // a lost reply
	last := remediation(9, jobspec.RemediationNeedsAttention)
	last.Why, last.Attempts, last.Reverted = "still unhealthy", 3, true
	a.remedied(rmd, last)
	a.remedied(rmd, last)
	got := one[string](w, `select install_id || ' ' || check_name || ' ' || state || ' ' || attempts || '/' || attempts_of || ' ' || reverted || ' ' || why from remediations`)
	if diff := cmp.Diff(a.o.install+" health needs_attention 3/3 true still unhealthy", got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if n := one[int](w, `select count(*) from event_outbox where kind = 'remediation.needs_attention'`); n != 1 {
		t.Errorf("%d events that it needs attention, want 1", n)
	}

	run := jobspec.Run{Action: "repair", ScheduledAt: tick, State: "succeeded", StartedAt: tick, FinishedAt: tick, Remedy: &jobspec.RunRemedy{Remediation: rmd, Check: "health", Attempt: 2, Of: 3}}
	for range 2 {
		resp, err := a.PutRunWithResponse(t.Context(), id.New(id.ActionRun), run)
		must(t, resp, err, http.StatusOK)
	}
	if got := one[string](w, `select string_agg(trigger || ' ' || remediation_id || ' ' || remediation_attempt || ' ' || state, ',') from action_runs`); got != "remediation "+rmd+" 2 succeeded" {
		t.Errorf("run = %s", got)
	}
	run.Remedy = nil
	resp, err := a.PutRunWithResponse(t.Context(), id.New(id.ActionRun), run)
	refused(t, resp, err, http.StatusUnprocessableEntity, "action_unknown") // no schedule has it

	other := remediation(1, jobspec.RemediationRunning)
	other.Check = "another"
	unknown, err := a.PutRemediationWithResponse(t.Context(), id.New(id.Remediation), other)
	refused(t, unknown, err, http.StatusUnprocessableEntity, "check_unknown")
}

// Another install cannot touch a remediation, even with its id.
func TestAttackRemediationOfAnotherInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, thief := w.agent(w.org(), "install"), w.agent(w.org(), "install")
	w.publishRemedies(a.o, "repair", "health")
	w.publishRemedies(thief.o, "repair", "health")
	rmd := id.New(id.Remediation)
	a.remedied(rmd, remediation(1, jobspec.RemediationNeedsAttention))
	thief.remedied(rmd, remediation(99, jobspec.RemediationHelped))
	if got := one[string](w, `select state from remediations where install_id = '`+a.o.install+`'`); got != "needs_attention" {
		t.Errorf("another org's runner made it %s", got)
	}
}

// What else happens in the install and the org holds an attempt back.
func TestAttemptIsHeldBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publishRemedies(a.o, "repair", "health")
	asks := remediation(1, jobspec.RemediationWaiting)
	asks.Asks = true
	asked := func(want string) {
		t.Helper()
		asks.Seq++
		if got := a.remedied("rmd_"+a.o.install[3:], asks); got != want {
			t.Errorf("held back by %q, want %q", got, want)
		}
	}
	asked("")
	if state := one[string](w, `select state from remediations`); state != "running" {
		t.Errorf("after a yes it is %s, want running: the next one who asks counts it", state)
	}
	w.exec(`update resources set locked_by = 'chg_1', locked_at = now() where id = $1`, a.o.resource)
	asked("a change has locked api")
	w.exec(`update resources set locked_by = null, locked_at = null`)
	w.exec(`insert into workflows (id, org_id, install_id, number, kind, state, inputs_version, created_by) values ('wfl_1', $1, $2, 7, 'deploy', 'running', 1, 'ada')`, a.o.id, a.o.install)
	asked("workflow 7 of the install runs")
	w.exec(`update workflows set state = 'queued'`)
	asked("")

	// Others of the org: each install counts once, and not those that are long silent.
	others := func(n int, state, changed string) {
		t.Helper()
		w.exec(`delete from remediations where install_id <> $1`, a.o.install)
		for i := range n {
			w.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by)
				select $1, org_id, customer_id, app_id, $1, 'local', 'test' from installs where id = $2 on conflict do nothing`, fmt.Sprintf("ins_%d", i), a.o.install)
			for _, r := range []string{"a", "b"} {
				w.exec(`insert into remediations (id, org_id, install_id, check_name, action, seq, state, attempts, attempts_of, began_at, changed_at)
					values ($1, $2, $3, 'health', 'repair', 1, $4, 1, 3, now(), now() - $5::interval)`, fmt.Sprintf("rmd_%d%s", i, r), a.o.id, fmt.Sprintf("ins_%d", i), state, changed)
			}
		}
	}
	others(heldback.AtOnce-1, "running", "1 minute")
	asked("")
	others(heldback.AtOnce, "running", "1 minute")
	asked("remediations run in 10 installs of the org now")
	others(heldback.AtOnce, "running", "61 minutes")
	asked("")
	others(heldback.FailedInAnHour, "needs_attention", "1 minute")
	asked("action repair did not help in 3 installs in the last hour: look at these first")
	others(heldback.FailedInAnHour, "needs_attention", "61 minutes")
	asked("")
}
