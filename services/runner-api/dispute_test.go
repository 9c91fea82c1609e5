package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/runnerapi"
)

// opening is a random id, by name.
func opening(name string) *string {
	text := strings.Repeat("0", 32-len(name)*2)
	for _, c := range []byte(name) {
		text += string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15])
	}
	return &text
}

// ask asks for a session by name, after another; "" names none.
func (a *agent) ask(name, before string, running ...runnerapi.Attempt) *runnerapi.OpenSessionResponse {
	a.w.t.Helper()
	request := a.sessionRequest(running...)
	if name != "" {
		request.Opening = opening(name)
	}
	if before != "" {
		request.Before = opening(before)
	}
	resp, err := a.OpenSessionWithResponse(a.w.t.Context(), request)
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

// opens asks for a session, which must come, and works with it.
func (a *agent) opens(name, before string, running ...runnerapi.Attempt) *runnerapi.Session {
	a.w.t.Helper()
	resp := a.ask(name, before, running...)
	must(a.w.t, resp, nil, http.StatusOK)
	a.transport.SetSession(resp.JSON200.Token)
	return resp.JSON200
}

// uses makes a first request in the session.
func (a *agent) uses() {
	a.w.t.Helper()
	a.claim("claim-"+strings.Repeat("u", 8), 0, 0)
}

// copyOf is another process with the same key.
func (a *agent) copyOf() *agent {
	a.w.t.Helper()
	other := a.w.machineWith(a.o, a.w.url, a.key)
	other.id = a.id
	other.transport.SetRunner(a.id)
	return other
}

// fresh is an enrolled runner without any session.
func (w *world) fresh(o org) *agent {
	w.t.Helper()
	a := w.machine(o, w.url)
	a.enrol(w.enrolment(o, w.runner(o, "install"), false))
	return a
}

func (a *agent) disputed() bool {
	a.w.t.Helper()
	return one[bool](a.w, `select disputed_since is not null from runners where id = $1`, a.id)
}

// Every row of the table of session.Judge, on real rows: an honest agent that is
// killed anywhere, and everybody else who holds its key.
func TestPredecessors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tc := range []struct {
		name string
		// story ends with a request, whose answer it returns.
		story    func(a *agent) *runnerapi.OpenSessionResponse
		refused  string // the code of the answer, "" for a session
		disputed bool
	}{
		{name: "the first session", story: func(a *agent) *runnerapi.OpenSessionResponse { return a.ask("a", "") }},
		{name: "killed before it stores the id, or before it asks", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.uses()
			return a.ask("b", "a")
		}},
		{name: "killed before the answer", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.uses()
			a.ask("b", "a")
			return a.ask("b", "a")
		}},
		{name: "killed before the first answer of all", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.ask("a", "")
			return a.ask("a", "")
		}},
		{name: "killed before the first use", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			return a.ask("b", "a")
		}},
		{name: "a request that was late, while the session is in use", refused: "opening_over", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.uses()
			return a.ask("a", "")
		}},
		{name: "a request that was late, after the next session", refused: "opening_over", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.opens("b", "a")
			return a.ask("a", "")
		}},
		{name: "an agent of before, again and again", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.start()
			a.uses()
			return a.ask("", "")
		}},
		{name: "an agent that was updated", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.start()
			a.uses()
			return a.ask("a", "")
		}},
		{name: "an agent of before, after one that named its session", disputed: true, story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			return a.ask("", "")
		}},
		{name: "the thief is second, with an older copy", disputed: true, story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.opens("b", "a")
			return a.copyOf().ask("t", "a")
		}},
		{name: "the thief is first, with the latest copy", disputed: true, story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.uses()
			thief := a.copyOf()
			thief.opens("t", "a")
			thief.uses()
			return a.ask("b", "a")
		}},
		{name: "the thief asks for the session whose answer was lost", disputed: true, story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.uses()
			a.ask("b", "a") // the answer is lost
			thief := a.copyOf()
			thief.opens("b", "a")
			thief.uses()
			refused(a.w.t, a.ask("b", "a"), nil, http.StatusConflict, "opening_over")
			return a.ask("c", "a")
		}},
		{name: "a snapshot that was restored", disputed: true, story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.opens("b", "a")
			a.opens("c", "b")
			return a.ask("d", "a")
		}},
		{name: "the session's file was lost", disputed: true, story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			return a.ask("b", "")
		}},
		{name: "a restored control plane", disputed: true, story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			return a.ask("d", "c") // b and c were after the backup
		}},
		{name: "a restored control plane that was told to forget", story: func(a *agent) *runnerapi.OpenSessionResponse {
			a.opens("a", "")
			a.w.exec(`update runners set session_opening = null where id = $1`, a.id)
			return a.ask("d", "c")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, db: w.db, sql: w.sql, url: w.url}
			a := w.fresh(w.org())
			got := tc.story(a)
			if tc.refused != "" {
				refused(t, got, nil, http.StatusConflict, tc.refused)
			} else {
				must(t, got, nil, http.StatusOK)
				if (got.JSON200.Disputed != nil) != tc.disputed {
					t.Errorf("the answer says %+v", got.JSON200.Disputed)
				}
			}
			if a.disputed() != tc.disputed {
				t.Errorf("disputed %v, want %v", a.disputed(), tc.disputed)
			}
			if alarms := w.alarms(a.id); (strings.Count(alarms, "runner_disputed") == 1) != tc.disputed || tc.disputed != (alarms != "") {
				t.Errorf("alarms: %q", alarms)
			}
		})
	}
}

// A session whose answer was lost is one session: what the first answer carried is
// worth nothing, and nobody is told that somebody else opened one.
func TestALostAnswerIsGivenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.fresh(w.org())
	first := a.opens("a", "")
	late := a.copyOf()
	late.transport.SetSession(first.Token)
	second := a.opens("a", "")
	if first.SessionID != second.SessionID || second.Epoch != first.Epoch+1 {
		t.Errorf("sessions %s/%d and %s/%d, want one", first.SessionID, first.Epoch, second.SessionID, second.Epoch)
	}
	resp, err := late.GetChainHeadWithResponse(t.Context())
	must(t, resp, err, http.StatusUnauthorized)
	if body := string(resp.Body); strings.Contains(body, "session_overtaken") || strings.Contains(body, "session_void") {
		t.Errorf("the lost token is answered %s", body)
	}
	a.uses()
	if a.opens("b", "a").Disputed != nil {
		t.Error("it is disputed")
	}
}

// While a runner is disputed nothing is leased to it and nothing sealed is given to
// it, to neither process; what was in flight is uncertain. Another machine ends that.
func TestADisputedRunnerGetsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.fresh(w.org())
	a.opens("a", "")
	plan, apply := a.lease(job{}), a.lease(job{fence: 1})
	running := []runnerapi.Attempt{{JobID: plan.JobID, Attempt: 1}, {JobID: apply.JobID, Attempt: 1}}
	thief := a.copyOf()
	thief.opens("t", "a", running...)
	resp, err := a.RenewLeasesWithResponse(t.Context(), runnerapi.RenewRequest{Leases: running})
	refused(t, resp, err, http.StatusUnauthorized, "session_overtaken")
	opened := a.opens("b", "a", running...)
	if opened.Disputed == nil || len(opened.Jobs) != 2 || opened.Jobs[0].State != runnerapi.ResumedStateVoid || opened.Jobs[1].State != runnerapi.ResumedStateVoid {
		t.Errorf("the session says %+v", opened)
	}
	queued, change := a.queue(job{}), a.queue(job{fence: 2})
	nobodyGets := func(who *agent, claim string) {
		t.Helper()
		if jobs := who.claim(claim, 4, 0); len(jobs) > 0 {
			t.Errorf("leased %+v", jobs)
		}
		list, err := who.ListSealedWithResponse(t.Context())
		refused(t, list, err, http.StatusForbidden, "runner_disputed")
		sealed, err := who.GetSealedWithResponse(t.Context(), a.o.resource)
		refused(t, sealed, err, http.StatusForbidden, "runner_disputed")
	}
	nobodyGets(a, "claim-true")
	thief.opens("u", "t")
	nobodyGets(thief, "claim-thief")
	thief.opens("v", "u") // follows the last one: it stays disputed
	nobodyGets(thief, "claim-thief-again")

	want := map[string]string{"plan": "queued/1", "apply": "failed/1", "queued": "queued/0", "change": "queued/0", "outcome": "uncertain"}
	got := map[string]string{
		"plan": w.jobState(plan.JobID), "apply": w.jobState(apply.JobID), "queued": w.jobState(queued), "change": w.jobState(change),
		"outcome": one[string](w, `select result ->> 'outcome' from runner_jobs where id = $1`, apply.JobID),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if alarms := w.alarms(a.id); strings.Count(alarms, "runner_disputed") != 1 {
		t.Errorf("alarms: %q", alarms)
	}

	other := w.machine(a.o, w.url)
	other.enrol(w.enrolment(a.o, a.id, true))
	if a.disputed() {
		t.Error("it is still disputed")
	}
	if other.opens("x", "").Disputed != nil {
		t.Error("the new machine is disputed")
	}
	if jobs := other.claim("claim-other", 4, 0); len(jobs) != 0 {
		t.Errorf("leased %+v, whose orders name the machine before", jobs)
	}
	for _, id := range []string{plan.JobID, queued, change} {
		if reason := one[string](w, `select result ->> 'reason' from runner_jobs where id = $1`, id); reason != "machine_replaced" {
			t.Errorf("job %s ended for %q, want machine_replaced", id, reason)
		}
	}
	for _, old := range []*agent{a, thief} {
		refused(t, old.ask("y", "v"), nil, http.StatusUnauthorized, "signature_refused")
	}
	other.opens("z", "x")
	if other.disputed() {
		t.Error("the new machine is disputed after its second session")
	}
}

// A machine that comes back after another one starts from nothing.
func TestAMachineThatComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.fresh(w.org())
	a.opens("a", "")
	a.uses()
	a.ask("b", "a") // the answer is lost
	other := w.machine(a.o, w.url)
	other.enrol(w.enrolment(a.o, a.id, true))
	other.opens("x", "")
	back := w.machineWith(a.o, a.w.url, a.key)
	back.enrol(w.enrolment(a.o, a.id, true))
	a = back
	refused(t, a.ask("b", "a"), nil, http.StatusConflict, "opening_over")
	if a.opens("c", "a").Disputed != nil || a.disputed() {
		t.Error("it is disputed")
	}
}
