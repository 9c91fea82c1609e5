package main

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/runnerapi"
)

// The database goes away and comes back under a held claim: the claim is
// answered with the job that was queued meanwhile, whose notification nobody
// heard.
func TestAHeldClaimOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	a.claim("claim-nothing", 1, 0)
	claims := make(chan []runnerapi.Assignment, 1)
	go func() { claims <- a.claim("claim-held", 1, 50) }()

	w.exec(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'berth-runner-api' and datname = current_database()`)
	jobID := a.queue(job{})
	select {
	case jobs := <-claims:
		if len(jobs) != 1 || jobs[0].JobID != jobID {
			t.Errorf("claimed %+v, want %s", jobs, jobID)
		}
	case <-time.After(patience):
		t.Fatal("the claim was not answered")
	}
}

func TestExpiredIsLostAndNotDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Lease = 2 * time.Second })
	a := w.agent(w.org(), "install")
	j := a.lease(job{fence: 1})
	plan := a.lease(job{})
	w.until("both leases to be lost", `select count(*) = 2 from leases where state = 'lost'`)
	// It re-dispatches nothing…
	if jobs := a.claim("claim-more", 4, 0); len(jobs) != 0 {
		t.Errorf("claimed %+v after the leases expired, want nothing", jobs)
	}
	for _, jobID := range []string{j.JobID, plan.JobID} {
		if got := w.jobState(jobID); got != "leased/1" {
			t.Errorf("job is %s, want leased/1", got)
		}
	}
	// …and the runner goes on.
	resp, err := a.RenewLeasesWithResponse(t.Context(), runnerapi.RenewRequest{Leases: []runnerapi.Attempt{{JobID: j.JobID, Attempt: 1}}})
	must(t, resp, err, 200)
	if answer := resp.JSON200.Leases[0].Answer; answer != runnerapi.LeaseAnswerOk {
		t.Errorf("a lost lease is answered %s, want ok", answer)
	}
}

// cutOff ends all connections of runner-api; none can be made until allow
// is called.
func (w *world) cutOff() (allow func()) {
	w.t.Helper()
	name := one[string](w, `select quote_ident(current_database())`)
	w.exec(`alter database ` + name + ` connection limit 0`) // does not count superusers
	w.exec(`select pg_terminate_backend(pid, 10000) from pg_stat_activity where usename = 'berth_runner' and datname = current_database()`)
	return func() {
		w.t.Helper()
		w.exec(`alter database ` + name + ` connection limit -1`)
	}
}

// After a start nothing expires for one lease time: runners could not renew.
func TestExpiryIsHeldBackAfterAStart(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	w := newWorld(t, func(c *Config) { c.Lease = time.Hour })
	a := w.agent(w.org(), "install")
	a.lease(job{})
	w.exec(`update leases set expires_at = now() - interval '1 minute'`)
	before := time.Now()
	w.replica(func(c *Config) { c.Lease = lease })
	w.until("the lease to be lost", `select state = 'lost' from leases`)
	if took := time.Since(before); took < lease {
		t.Errorf("a lease was lost %s after a start, want not before %s", took, lease)
	}
}

// Nor for one lease time after the database was away.
func TestExpiryIsHeldBackAfterAnOutage(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	w := newWorld(t, func(c *Config) { c.Lease = lease })
	a := w.agent(w.org(), "install")
	j := a.lease(job{fence: 1})
	w.until("the hold-back after the start to end", `select state = 'lost' from leases`)
	resp, err := a.RenewLeasesWithResponse(t.Context(), runnerapi.RenewRequest{Leases: []runnerapi.Attempt{{JobID: j.JobID, Attempt: 1}}})
	must(t, resp, err, 200)

	allow := w.cutOff()
	w.until("the lease to run out", `select expires_at < now() - interval '1 second' from leases`)
	back := time.Now()
	allow()
	w.until("the lease to be lost", `select state = 'lost' from leases`)
	if took := time.Since(back); took < lease {
		t.Errorf("a lease was lost %s after the outage, want not before %s", took, lease)
	}
}

func TestLastSeenIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.exec(`update runners set last_seen_at = now() - interval '1 hour'`)
	claimed := make(chan struct{})
	go func() {
		defer close(claimed)
		a.claim("claim-idle", 1, 30)
	}()
	w.until("last_seen_at to be written", `select last_seen_at > now() - interval '1 minute' from runners where id = $1`, a.id)
	a.queue(job{}) // ends the claim
	<-claimed
	if n := one[int](w, `select count(*) from leases`); n != 1 {
		t.Errorf("%d leases, want 1", n)
	}
}
