package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/services/internal/auth"
)

func TestEnrolIsRepeatable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.org()
	runner := w.runner(o, "install")
	text := w.enrolment(o, runner, false)
	a := w.machine(o, w.url)
	want := &runnerapi.Identity{RunnerID: runner, OrgID: o.id, InstallID: &o.install, Kind: runnerapi.RunnerKindInstall}
	for range 3 { // the first reply, and two after a lost one
		resp, err := a.EnrolWithResponse(t.Context(), a.enrolment(text))
		must(t, resp, err, http.StatusOK)
		if diff := cmp.Diff(want, resp.JSON200); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if n := one[int](w, `select count(*) from keys where install_id = $1`, o.install); n != 2 {
		t.Errorf("%d keys were kept, want the runner's and the seal's", n)
	}

	thief := w.machine(o, w.url)
	resp, err := thief.EnrolWithResponse(t.Context(), thief.enrolment(text))
	refused(t, resp, err, http.StatusForbidden, "enrolment_bound")
	if !one[bool](w, `select alarmed_at is not null from enrolments where runner_id = $1`, runner) {
		t.Error("a second key raised no alarm")
	}
	if n := one[int](w, `select count(*) from river_ctl.river_job where kind = 'install_advance'`); n != 2 {
		t.Errorf("ctl-api was woken %d times, want for the enrolment and for the alarm", n)
	}
}

func TestEnrolRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.org()
	second := w.replica()
	text := w.enrolment(o, w.runner(o, "install"), false)
	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		url := w.url
		if i%2 == 1 {
			url = second
		}
		a := w.machine(o, url)
		wg.Go(func() {
			resp, err := a.EnrolWithResponse(t.Context(), a.enrolment(text))
			if err != nil {
				t.Error(err)
				return
			}
			statuses[i] = resp.StatusCode()
		})
	}
	wg.Wait()
	count := map[int]int{}
	for _, status := range statuses {
		count[status]++
	}
	if diff := cmp.Diff(map[int]int{http.StatusOK: 1, http.StatusForbidden: 7}, count); diff != "" {
		t.Errorf("eight keys came with one secret (-want +got):\n%s", diff)
	}
}

func TestEnrolRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.org()
	t.Run("an unknown secret", func(t *testing.T) {
		a := w.machine(o, w.url)
		text, _ := auth.NewSecret(auth.EnrolmentPrefix)
		resp, err := a.EnrolWithResponse(t.Context(), a.enrolment(text))
		refused(t, resp, err, http.StatusUnauthorized, "secret_unknown")
	})
	t.Run("a key that did not sign", func(t *testing.T) {
		a, other := w.machine(o, w.url), w.machine(o, w.url)
		resp, err := a.EnrolWithResponse(t.Context(), other.enrolment(w.enrolment(o, w.runner(o, "build"), false)))
		refused(t, resp, err, http.StatusUnauthorized, "signature_refused")
	})
	t.Run("an expired secret", func(t *testing.T) {
		o := w.org()
		a, runner := w.machine(o, w.url), w.runner(o, "install")
		text := w.enrolment(o, runner, false)
		w.exec(`update enrolments set expires_at = now() - interval '1 second' where runner_id = $1`, runner)
		resp, err := a.EnrolWithResponse(t.Context(), a.enrolment(text))
		refused(t, resp, err, http.StatusForbidden, "enrolment_expired")
	})
	t.Run("another machine without consent", func(t *testing.T) {
		o := w.org()
		a := w.agent(o, "install")
		other := w.machine(o, w.url)
		resp, err := other.EnrolWithResponse(t.Context(), other.enrolment(w.enrolment(o, a.id, false)))
		refused(t, resp, err, http.StatusForbidden, "runner_enrolled")
	})
}

// otherRecipient is one more well-formed age recipient.
const otherRecipient = "age1lggyhqrw2nlhcxprm67z43rta597azn8gknawjehu9d9dl0jq3yqqvfafg"

func TestReplaceWithConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.org()
	old := w.agent(o, "install")
	plan, apply := old.lease(job{}), old.lease(job{fence: 1})
	waiting := old.queue(job{})

	fresh := w.machine(o, w.url)
	fresh.enrol(w.enrolment(o, old.id, true))

	// The machine before is out at once, with all it knows.
	resp, err := old.RenewLeasesWithResponse(t.Context(), runnerapi.RenewRequest{Leases: []runnerapi.Attempt{{JobID: apply.JobID, Attempt: 1}}})
	refused(t, resp, err, http.StatusUnauthorized, "session_void")
	opened, err := old.OpenSessionWithResponse(t.Context(), old.sessionRequest())
	refused(t, opened, err, http.StatusUnauthorized, "signature_refused")

	// Orders name a machine: what this one began or was to begin is not for another.
	jobs := map[string]string{}
	for name, id := range map[string]string{"plan": plan.JobID, "apply": apply.JobID, "waiting": waiting} {
		jobs[name] = w.jobState(id) + " " + one[string](w, `select result ->> 'outcome' || ' ' || (result ->> 'reason') from runner_jobs where id = $1`, id)
	}
	want := map[string]string{"plan": "failed/1 stale machine_replaced", "apply": "failed/1 uncertain host_ended", "waiting": "failed/0 stale machine_replaced"}
	if diff := cmp.Diff(want, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if n := one[int](w, `select count(*) from log_tokens where revoked_at is null`); n != 0 {
		t.Errorf("%d log tokens of the old machine are still good", n)
	}

	keyOf := func(a *agent) string { return capsule.KeyID(a.public()) }
	retired := func() (keys map[string]bool) {
		if err := json.Unmarshal(one[[]byte](w, `select jsonb_object_agg(key_id, retired_at is not null) from keys where install_id = $1`, o.install), &keys); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	// Both machines seal to the same recipient.
	if diff := cmp.Diff(map[string]bool{keyOf(old): true, keyOf(fresh): false, recipient: false}, retired()); diff != "" {
		t.Errorf("retired keys (-want +got):\n%s", diff)
	}

	fresh.start()
	if got := fresh.claim("claim-fresh", 4, 0); len(got) != 0 {
		t.Errorf("the new machine got %+v of the old one's", got)
	}

	// The first machine comes back, with a key of its own to seal to.
	again := w.machineWith(o, w.url, old.key)
	enrolment := again.enrolment(w.enrolment(o, old.id, true))
	enrolment.SealRecipient = otherRecipient
	back, err := again.EnrolWithResponse(t.Context(), enrolment)
	must(t, back, err, http.StatusOK)
	if diff := cmp.Diff(map[string]bool{keyOf(old): false, keyOf(fresh): true, recipient: true, otherRecipient: false}, retired()); diff != "" {
		t.Errorf("retired keys after its return (-want +got):\n%s", diff)
	}
}

func TestPhoneHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.org()
	stack := func(version int, expires string) string {
		text, hash := auth.NewSecret(auth.PhoneHomePrefix)
		w.exec(`insert into stack_versions (id, org_id, install_id, version, kind, phone_home_hash, expires_at)
			values ($1, $2, $3, $4, 'local', $5, now() + $6::interval)`, id.New("stk"), o.id, o.install, version, hash, expires)
		return text
	}
	a := w.machine(o, w.url)
	call := func(text string, outputs map[string]any) *runnerapi.PhoneHomeResponse {
		t.Helper()
		resp, err := a.PhoneHomeWithResponse(t.Context(), runnerapi.PhoneHome{Secret: text, Outputs: outputs})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	first, second, expired := stack(1, "1 hour"), stack(2, "1 hour"), stack(3, "-1 second")
	outputs := map[string]any{"install_dir": "/x", "n": 1.5, "nested": map[string]any{"b": 1, "a": []any{"z"}}}

	must(t, call(first, outputs), nil, http.StatusOK)
	again := call(first, outputs)
	must(t, again, nil, http.StatusOK)
	if diff := cmp.Diff(&runnerapi.StackActive{InstallID: o.install, StackVersion: 1}, again.JSON200); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	refused(t, call(first, map[string]any{"install_dir": "/y"}), nil, http.StatusConflict, "phone_home_used")
	refused(t, call(expired, outputs), nil, http.StatusForbidden, "phone_home_expired")
	unknown, _ := auth.NewSecret(auth.PhoneHomePrefix)
	refused(t, call(unknown, outputs), nil, http.StatusUnauthorized, "secret_unknown")

	must(t, call(second, outputs), nil, http.StatusOK)
	states := one[string](w, `select string_agg(state, ' ' order by version) from stack_versions`)
	if states != "outdated active pending" {
		t.Errorf("stack versions are %q, want the second active and the first outdated", states)
	}
	if n := one[int](w, `select count(*) from river_ctl.river_job where kind = 'install_advance'`); n != 2 {
		t.Errorf("ctl-api was woken %d times, want once per stack version", n)
	}
}
