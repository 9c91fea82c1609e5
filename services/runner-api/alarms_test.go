package main

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// alarms are those of a runner, oldest first, with who was woken for them.
func (w *world) alarms(runnerID string) string {
	w.t.Helper()
	return one[string](w, `select coalesce(string_agg(kind || ' ' || subject || ' ' || detail, E'\n' order by created_at, id), '') from alarms where runner_id = $1`, runnerID)
}

func (w *world) woken(objectID string) int {
	w.t.Helper()
	return one[int](w, `select count(*) from river_ctl.river_job where kind = 'install_advance' and args ->> 'install_id' = $1`, objectID)
}

func TestALateResultRaisesAnAlarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	j := a.lease(job{fence: 1})
	before := w.woken(a.o.install)
	a.start() // a new life that knows of nothing
	for range 2 {
		refused(t, a.report(j, jobspec.OutcomeSucceeded), nil, http.StatusConflict, "superseded")
	}
	digest := one[string](w, `select result -> 'late' -> 0 ->> 'digest' from runner_jobs where id = $1`, j.JobID)
	want := "late_result " + j.JobID + "/1 " + digest + ` {"fence": 1, "outcome": "succeeded", "job_state": "failed", "job_attempt": 1}`
	if diff := cmp.Diff(want, w.alarms(a.id)); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
	// Once for the uncertain end of the attempt's own job, once for the alarm.
	if got := w.woken(a.o.install) - before; got != 2 {
		t.Errorf("ctl-api was woken %d times, want 2", got)
	}
}

// What a Build Runner does is of no install: ctl-api is woken for the org.
func TestAlarmsOfABuildRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.org()
	a := w.agent(o, "build")
	stranger := w.machine(o, w.url)
	text := w.enrolment(o, a.id, false)
	for range 2 {
		resp, err := stranger.EnrolWithResponse(t.Context(), stranger.enrolment(text))
		refused(t, resp, err, http.StatusForbidden, "runner_enrolled")
	}
	enrolment := one[string](w, `select id from enrolments where alarmed_at is not null`)
	want := "enrolment " + enrolment + ` {"key_id": "` + capsule.KeyID(stranger.public()) + `", "refused": "refuse_enrolled"}`
	if diff := cmp.Diff(want, w.alarms(a.id)); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
	if got := w.woken(o.id); got != 1 {
		t.Errorf("ctl-api was woken for the org %d times, want once", got)
	}
	if got := one[string](w, `select berth.org_of($1)`, o.id); got != o.id {
		t.Errorf("the org of org %s is %q", o.id, got)
	}
	if got := one[*string](w, `select berth.org_of($1)`, id.New(id.Org)); got != nil {
		t.Errorf("an org that is not there is of org %s", *got)
	}
}

func TestAForkRaisesOneAlarmPerHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	stored, head := a.lines(chain.Head{}, "one", "two")
	must(t, a.append(stored), nil, http.StatusOK)
	before := w.woken(a.o.install)
	var first string
	for i, what := range []string{"TWO", "two!", "2"} {
		forked, _ := a.lines(chain.Head{}, "one", what)
		refused(t, a.append(forked), nil, http.StatusConflict, "chain_fork")
		if i == 0 {
			first = capsule.DigestBytes(forked[0].Body)
		}
	}
	want := "chain_fork record 2 " + head.Hash + ` {"records": 2, "first_seq": 1, "first_digest": "` + first + `"}`
	if diff := cmp.Diff(want, w.alarms(a.id)); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
	if got := w.woken(a.o.install) - before; got != 1 {
		t.Errorf("ctl-api was woken %d times, want once", got)
	}
	// A gap is no fork.
	_, ahead := a.lines(head, "three")
	gap, _ := a.lines(ahead, "four")
	refused(t, a.append(gap), nil, http.StatusConflict, "chain_gap")
	if n := one[int](w, `select count(*) from alarms`); n != 1 {
		t.Errorf("%d alarms, want one", n)
	}
}
