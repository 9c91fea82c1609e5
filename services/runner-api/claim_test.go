package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

func TestClaimIsRepeatable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.replica()
	a := w.agent(w.org(), "install")
	apply := a.queue(job{fence: 7})
	plan := a.queue(job{})
	later := a.queue(job{})

	first := a.claim("claim-one", 2, 0)
	again := a.at(second).claim("claim-one", 2, 0) // the reply was lost
	if len(first) != 2 || len(again) != 2 {
		t.Fatalf("claimed %d, then %d; want 2 and the same 2", len(first), len(again))
	}
	for i, want := range []string{apply, plan} {
		if first[i].JobID != want || again[i].JobID != want || first[i].Attempt != 1 || again[i].Attempt != 1 || first[i].StreamID != again[i].StreamID {
			t.Errorf("job %d: got %+v, then %+v; want attempt 1 of %s both times", i, first[i], again[i], want)
		}
	}
	if first[0].Fence == nil || *first[0].Fence != 7 || first[0].Order == nil || first[1].Fence != nil || first[1].Order == nil {
		t.Errorf("fence and order: %+v; want an order with each, and the fence with the apply only", first)
	}
	if first[0].Trace.Traceparent == nil || !strings.Contains(string(first[0].Spec), apply) || first[0].Operation != string(jobspec.OperationApply) {
		t.Errorf("assignment is not complete: %+v", first[0])
	}
	if w.jobState(later) != "queued/0" {
		t.Error("a repeated claim took one more job")
	}
	if next := a.claim("claim-two", 2, 0); len(next) != 1 || next[0].JobID != later {
		t.Errorf("the next claim got %+v, want %s", next, later)
	}
	tokens := one[int](w, `select count(*) from log_tokens`)
	if tokens != 5 {
		t.Errorf("%d log tokens, want one per answered job", tokens)
	}
}

// What was signed reaches the runner as it stands in the row: spaces, escapes,
// order of keys and digits.
func TestClaimPassesOnWhatWasSigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	jobID := a.queue(job{})
	const spec = `{"z": 1.50,  "a":"<&>\u003c é", "state" : {"n":12345678901234567890, "n2": 1e400}}`
	w.exec(`update runner_jobs set spec = $2 where id = $1`, jobID, spec)
	jobs := a.claim("claim-exact", 1, 0)
	if len(jobs) != 1 || string(jobs[0].Spec) != spec {
		t.Fatalf("spec = %s, want %s", jobs[0].Spec, spec)
	}
	if jobs[0].Order == nil || jobs[0].Order.PayloadType != "t<" {
		t.Errorf("order = %+v", jobs[0].Order)
	}
}

func TestAHeldClaimIsWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.replica()
	a := w.agent(w.org(), "install")
	if jobs := a.claim("claim-nothing", 1, 0); len(jobs) != 0 {
		t.Fatalf("claimed %+v of nothing", jobs)
	}
	for i, url := range []string{w.url, second, w.url} {
		claims := make(chan []runnerapi.Assignment, 1)
		go func() { claims <- a.at(url).claim(fmt.Sprintf("claim-held-%d", i), 1, 50) }()
		jobID := a.queue(job{})
		select {
		case jobs := <-claims:
			if len(jobs) != 1 || jobs[0].JobID != jobID {
				t.Errorf("claimed %+v, want %s", jobs, jobID)
			}
		case <-time.After(patience):
			t.Fatal("the claim was not woken")
		}
	}
}

// The notification of a job may be lost with the process that was to send it.
func TestALostWakeUpIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	a.claim("claim-nothing", 1, 0)
	jobID := id.New(id.Job)
	w.exec(`insert into runner_jobs (id, org_id, runner_id, kind, operation, spec, timeout_seconds) values ($1, $2, $3, 'action', 'run', '{}', 60)`, jobID, a.o.id, a.id)
	if jobs := a.claim("claim-held", 1, 50); len(jobs) != 1 || jobs[0].JobID != jobID {
		t.Errorf("claimed %+v, want %s", jobs, jobID)
	}
}

func TestNoJobIsLeasedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.replica()
	a := w.agent(w.org(), "install")
	const jobs, claimers = 60, 50
	for range jobs {
		a.queue(job{})
	}
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for i := range claimers {
		caller := a.at([]string{w.url, second}[i%2])
		wg.Go(func() {
			for n := 0; ; n++ {
				claimed := caller.claim(fmt.Sprintf("claimer-%d-%d", i, n), 2, 0)
				if len(claimed) == 0 {
					return
				}
				mu.Lock()
				for _, j := range claimed {
					got[j.JobID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for jobID, n := range got {
		if n != 1 {
			t.Errorf("job %s was leased %d times", jobID, n)
		}
	}
	if len(got) != jobs {
		t.Errorf("%d jobs were leased, want %d", len(got), jobs)
	}
	if open := one[int](w, `select count(*) from leases where state = 'active'`); open != jobs {
		t.Errorf("%d leases, want %d", open, jobs)
	}
}

func TestWhatIsNotHandedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	cancelled := a.queue(job{})
	w.exec(`update runner_jobs set cancel_requested_at = now() where id = $1`, cancelled)
	apply := a.queue(job{fence: 1})
	plan := a.queue(job{})

	claim := func(claimID string, s runnerapi.Switch) []string {
		t.Helper()
		resp, err := a.ClaimJobsWithResponse(t.Context(), runnerapi.ClaimRequest{ClaimID: claimID, Slots: 4, Switch: s})
		must(t, resp, err, http.StatusOK)
		ids := []string{}
		for _, j := range resp.JSON200.Jobs {
			ids = append(ids, j.JobID)
		}
		return ids
	}
	for _, s := range []runnerapi.Switch{runnerapi.SwitchPause, runnerapi.SwitchStopNow, runnerapi.SwitchSever} {
		if got := claim("claim-"+string(s), s); len(got) != 0 {
			t.Errorf("%s: got %v, want nothing", s, got)
		}
	}
	if got := one[string](w, `select switch from runners where id = $1`, a.id); got != "sever" {
		t.Errorf("switch is shown as %q, want sever", got)
	}
	if diff := cmp.Diff([]string{plan}, claim("claim-read-only", runnerapi.SwitchReadOnly)); diff != "" {
		t.Errorf("read_only (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{apply}, claim("claim-run", runnerapi.SwitchRun)); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}

// Why and since when the customer's switch stands where it does is kept with it; a
// runner that does not say since when is believed from its first report.
func TestClaimsTellWhyTheSwitchIsSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	since := time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
	freeze, later := "change freeze", "until Monday"
	for i, tt := range []struct {
		request runnerapi.ClaimRequest
		want    string
	}{
		{runnerapi.ClaimRequest{Switch: runnerapi.SwitchPause, SwitchReason: &freeze, SwitchSince: &since}, "pause/change freeze/1 h"},
		{runnerapi.ClaimRequest{Switch: runnerapi.SwitchPause, SwitchReason: &later, SwitchSince: &since}, "pause/until Monday/1 h"},
		{runnerapi.ClaimRequest{Switch: runnerapi.SwitchRun}, "run//0 h"},
	} {
		tt.request.ClaimID = fmt.Sprintf("claim-switch-%d", i)
		resp, err := a.ClaimJobsWithResponse(t.Context(), tt.request)
		must(t, resp, err, http.StatusOK)
		got := one[string](w, `select concat(switch, '/', switch_reason, '/', extract(hour from now() - switch_since), ' h') from runners where id = $1`, a.id)
		if got != tt.want {
			t.Errorf("claim %d: the runner shows %q, want %q", i, got, tt.want)
		}
	}
}

// What a runner says of why it takes no work is shown until it says no more, and
// keeps what else is known of its machine.
func TestClaimsTellOfProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.exec(`update runners set facts = '{"hostname": "laptop"}' where id = $1`, a.id)
	for i, problem := range []string{"disk full: /data", "disk full: /data", "", "disk full: /other", ""} {
		request := runnerapi.ClaimRequest{ClaimID: fmt.Sprintf("claim-problem-%d", i), Switch: runnerapi.SwitchRun}
		if problem != "" {
			request.Problem = &problem
		}
		resp, err := a.ClaimJobsWithResponse(t.Context(), request)
		must(t, resp, err, http.StatusOK)
		want := "laptop/" + problem
		if got := one[string](w, `select concat(facts->>'hostname', '/', facts->>'problem') from runners where id = $1`, a.id); got != want {
			t.Errorf("claim %d: the runner shows %q, want %q", i, got, want)
		}
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Lease = time.Hour })
	a := w.agent(w.org(), "install")
	good, expired, cancelled := a.lease(job{}), a.lease(job{fence: 1}), a.lease(job{})
	superseded := a.lease(job{fence: 1})
	w.exec(`update leases set state = 'lost', expires_at = now() - interval '1 minute' where job_id = $1`, expired.JobID)
	w.exec(`update runner_jobs set cancel_requested_at = now() where id = $1`, cancelled.JobID)
	renew := func() map[string]runnerapi.LeaseAnswer {
		t.Helper()
		named := []runnerapi.Attempt{
			{JobID: good.JobID, Attempt: 1}, {JobID: expired.JobID, Attempt: 1}, {JobID: cancelled.JobID, Attempt: 1},
			{JobID: superseded.JobID, Attempt: 1}, {JobID: good.JobID, Attempt: 2},
		}
		resp, err := a.RenewLeasesWithResponse(t.Context(), runnerapi.RenewRequest{Leases: named})
		must(t, resp, err, http.StatusOK)
		got := map[string]runnerapi.LeaseAnswer{}
		for i, l := range resp.JSON200.Leases {
			if l.JobID != named[i].JobID || (l.ExpiresAt == nil) != (l.Answer == runnerapi.LeaseAnswerLost) {
				t.Errorf("answer %d is %+v", i, l)
			}
			got[fmt.Sprintf("%s/%d", l.JobID, l.Attempt)] = l.Answer
		}
		return got
	}
	want := map[string]runnerapi.LeaseAnswer{
		good.JobID + "/1": "ok", expired.JobID + "/1": "ok", cancelled.JobID + "/1": "cancel", superseded.JobID + "/1": "ok", good.JobID + "/2": "lost",
	}
	if diff := cmp.Diff(want, renew()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := one[string](w, `select state from leases where job_id = $1`, expired.JobID); got != "active" {
		t.Errorf("a renewed lease is %s", got)
	}
	// Once the resource has a new grant, the older grant is over, in all jobs.
	w.exec(`update resources set fence = 2 where id = $1`, a.o.resource)
	want[superseded.JobID+"/1"], want[expired.JobID+"/1"] = "lost", "lost"
	if diff := cmp.Diff(want, renew()); diff != "" {
		t.Errorf("after a newer grant (-want +got):\n%s", diff)
	}
}

// What an engine does is kept on its lease until the next renewal or the end of the
// attempt, whichever comes first.
func TestRenewTellsProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	busy, idle := a.lease(job{}), a.lease(job{})
	renew := func(progress ...runnerapi.JobProgress) {
		t.Helper()
		named := []runnerapi.Attempt{{JobID: idle.JobID, Attempt: 1}, {JobID: busy.JobID, Attempt: 1}}
		resp, err := a.RenewLeasesWithResponse(t.Context(), runnerapi.RenewRequest{Leases: named, Progress: progress})
		must(t, resp, err, http.StatusOK)
	}
	kept := func(of runnerapi.Assignment) string {
		return one[string](w, `select coalesce(progress::text, '') || ' ' || (coalesce(progress_at, now()) between now() - interval '1 minute' and now())::text
			from leases where job_id = $1`, of.JobID)
	}
	of := func(a runnerapi.Assignment, attempt int) runnerapi.JobProgress {
		return runnerapi.JobProgress{JobID: a.JobID, Attempt: attempt, What: `aws_db_instance.x["a"]`, Doing: "creating", Seconds: 190, Done: 4, Total: 12}
	}
	renew(of(busy, 1), of(idle, 2))
	const want = `{"done": 4, "what": "aws_db_instance.x[\"a\"]", "doing": "creating", "total": 12, "seconds": 190} true`
	if got := kept(busy); got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if got := kept(idle); got != " true" {
		t.Errorf("of another attempt it kept %s", got)
	}
	renew()
	if got := kept(busy); got != " true" {
		t.Errorf("what is not told any more is still there: %s", got)
	}
	renew(of(busy, 1))
	must(t, a.report(busy, jobspec.OutcomeFailed), nil, http.StatusOK)
	if got := kept(busy); got != " true" {
		t.Errorf("after the end of the attempt it is still there: %s", got)
	}
	long := of(idle, 1)
	long.What = strings.Repeat("x", 201)
	resp, err := a.RenewLeasesWithResponse(t.Context(), runnerapi.RenewRequest{Leases: []runnerapi.Attempt{}, Progress: []runnerapi.JobProgress{long}})
	if err != nil || resp.StatusCode() != http.StatusUnprocessableEntity && resp.StatusCode() != http.StatusBadRequest {
		t.Errorf("a text that is too long: %v, %v", resp.StatusCode(), err)
	}
}
