package main

import (
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/services/runner-api/internal/presence"
)

func TestANewSessionVoidsTheOneBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.replica()
	a := w.agent(w.org(), "install")
	zombie := w.machineWith(a.o, second, a.key)
	zombie.id = a.id
	zombie.transport.SetRunner(a.id)
	older := zombie.start() // epoch 2, at the other replica, which now has it in memory
	zombie.claim("claim-zombie", 1, 0)
	newer := a.start()
	if newer.Epoch != older.Epoch+1 {
		t.Errorf("epochs %d, %d: want them to count up", older.Epoch, newer.Epoch)
	}
	// Whatever writes is refused at once, also where the older one is cached.
	resp, err := zombie.CreateRegistryTokenWithResponse(t.Context(), runnerapi.RegistryTokenRequest{Actions: []runnerapi.RegistryAction{"pull"}})
	refused(t, resp, err, http.StatusUnauthorized, "session_overtaken")
	a.claim("claim-of-a", 1, 0)
}

func TestSessionResumesWhatStillRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	running, runningApply := a.lease(job{}), a.lease(job{fence: 1})
	deadPlan, deadApply := a.lease(job{}), a.lease(job{fence: 1})

	unknown := id.New(id.Job)
	opened := a.start(
		runnerapi.Attempt{JobID: running.JobID, Attempt: 1},
		runnerapi.Attempt{JobID: runningApply.JobID, Attempt: 1},
		runnerapi.Attempt{JobID: deadPlan.JobID, Attempt: 7}, // never was
		runnerapi.Attempt{JobID: unknown, Attempt: 1},
	)
	want := []runnerapi.ResumedJob{
		{JobID: running.JobID, Attempt: 1, State: runnerapi.ResumedStateResumed, StreamID: &running.StreamID},
		{JobID: runningApply.JobID, Attempt: 1, State: runnerapi.ResumedStateResumed, StreamID: &runningApply.StreamID},
		{JobID: deadPlan.JobID, Attempt: 7, State: runnerapi.ResumedStateVoid},
		{JobID: unknown, Attempt: 1, State: runnerapi.ResumedStateVoid},
	}
	if diff := cmp.Diff(want, opened.Jobs, cmpopts.IgnoreFields(runnerapi.ResumedJob{}, "LogToken", "LeaseExpiresAt")); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if opened.Jobs[0].LogToken == nil || *opened.Jobs[0].LogToken == running.LogToken || opened.Jobs[0].LeaseExpiresAt == nil {
		t.Errorf("a resumed job comes without a fresh log token or lease: %+v", opened.Jobs[0])
	}
	got := map[string]string{
		"running": w.jobState(running.JobID), "running apply": w.jobState(runningApply.JobID),
		"dead plan": w.jobState(deadPlan.JobID), "dead apply": w.jobState(deadApply.JobID),
	}
	wantStates := map[string]string{"running": "leased/1", "running apply": "leased/1", "dead plan": "queued/1", "dead apply": "failed/1"}
	if diff := cmp.Diff(wantStates, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	closed := one[int](w, `select count(*) from log_streams s where state = 'closed' and
		not exists (select from log_tokens t where t.stream_id = s.id and t.revoked_at is null)`)
	if closed != 2 {
		t.Errorf("%d streams are closed with their tokens, want those of the two dead attempts", closed)
	}
	renewed, err := a.RenewLeasesWithResponse(t.Context(), runnerapi.RenewRequest{Leases: []runnerapi.Attempt{{JobID: running.JobID, Attempt: 1}}})
	must(t, renewed, err, http.StatusOK)
	if renewed.JSON200.Leases[0].Answer != runnerapi.LeaseAnswerOk {
		t.Errorf("a resumed lease is answered %s", renewed.JSON200.Leases[0].Answer)
	}
}

func TestAJobIsGivenUpAfterThreeDeaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	jobID := a.lease(job{}).JobID
	for attempt := 1; attempt < 3; attempt++ {
		a.start() // the process died
		if jobs := a.claim("claim-again-"+string(rune('a'+attempt)), 1, 10); len(jobs) != 1 || jobs[0].Attempt != attempt+1 {
			t.Fatalf("claimed %+v, want attempt %d", jobs, attempt+1)
		}
	}
	a.start()
	if got := w.jobState(jobID); got != "failed/3" {
		t.Errorf("job is %s, want failed/3", got)
	}
}

func TestRevocationCutsHeldClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.replica()
	a := w.agent(w.org(), "install")
	type end struct {
		resp *runnerapi.ClaimJobsResponse
		err  error
	}
	sent, ends := make(chan struct{}, 2), make(chan end, 2)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { sent <- struct{}{} },
	})
	for _, held := range []*agent{a, a.at(second)} {
		held.claim("claim-nothing", 1, 0) // the session is in the memory of both replicas
		go func() {
			resp, err := held.ClaimJobsWithResponse(ctx, runnerapi.ClaimRequest{ClaimID: "claim-held", Slots: 1, WaitSeconds: 50, Switch: runnerapi.SwitchRun})
			ends <- end{resp, err}
		}()
	}
	for range 2 {
		<-sent
	}
	w.exec(`update runners set state = 'revoked', revoked_at = now() where id = $1`, a.id)
	start := time.Now()
	w.notify("berth_revoked", a.id)
	for range 2 {
		e := <-ends
		refused(t, e.resp, e.err, http.StatusUnauthorized, "runner_revoked")
	}
	// Without the notification the next sweep would have found it.
	if took := time.Since(start); took > presence.Interval/2 {
		t.Errorf("cutting the claims took %s", took)
	}
	opened, err := a.OpenSessionWithResponse(t.Context(), a.sessionRequest())
	refused(t, opened, err, http.StatusUnauthorized, "runner_revoked")
}

func TestSessionNeedsTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	thief := w.machine(a.o, w.url)
	thief.id = a.id
	thief.transport.SetRunner(a.id)
	resp, err := thief.OpenSessionWithResponse(t.Context(), thief.sessionRequest())
	refused(t, resp, err, http.StatusUnauthorized, "signature_refused")
	thief.id = id.New(id.Runner)
	thief.transport.SetRunner(thief.id)
	resp, err = thief.OpenSessionWithResponse(t.Context(), thief.sessionRequest())
	refused(t, resp, err, http.StatusUnauthorized, "signature_refused")

	// A stolen token is nothing without the key.
	thief.transport.SetRunner(a.id)
	thief.transport.SetSession(a.start().Token)
	claim, err := thief.ClaimJobsWithResponse(t.Context(), runnerapi.ClaimRequest{ClaimID: "claim-thief", Slots: 1, Switch: runnerapi.SwitchRun})
	refused(t, claim, err, http.StatusUnauthorized, "signature_refused")
}

func TestAnOldRunnerIsSentAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.MinRunnerVersion = "1.0.0" })
	o := w.org()
	a := w.machine(o, w.url)
	a.enrol(w.enrolment(o, w.runner(o, "install"), false))
	resp, err := a.OpenSessionWithResponse(t.Context(), a.sessionRequest())
	refused(t, resp, err, http.StatusForbidden, "runner_outdated")
}
