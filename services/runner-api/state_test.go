package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/runnerapi"
)

// digest makes a well-formed digest of one letter.
func digest(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

func (a *agent) lock(j runnerapi.Assignment, lockID string, fence int64) *runnerapi.LockStateResponse {
	a.w.t.Helper()
	resp, err := a.LockStateWithResponse(a.w.t.Context(), a.o.resource, runnerapi.LockRequest{
		JobID: j.JobID, Attempt: j.Attempt, Fence: fence, LockID: lockID, Info: map[string]any{"ID": lockID, "Who": "test"},
	})
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func (a *agent) unlock(j runnerapi.Assignment, lockID string) *runnerapi.UnlockStateResponse {
	a.w.t.Helper()
	resp, err := a.UnlockStateWithResponse(a.w.t.Context(), a.o.resource, runnerapi.UnlockRequest{JobID: j.JobID, Attempt: j.Attempt, LockID: lockID})
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func (a *agent) putState(j runnerapi.Assignment, lockID string, fence, serial int64, letter string) *runnerapi.PutStateResponse {
	a.w.t.Helper()
	resp, err := a.PutStateWithResponse(a.w.t.Context(), a.o.resource, runnerapi.StateWrite{
		JobID: j.JobID, Attempt: j.Attempt, Fence: fence, LockID: lockID, Serial: serial, Lineage: "lineage",
		Digest: digest(letter), Body: []byte("sealed " + letter), Summary: &map[string]any{"resources": 1},
	})
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func (a *agent) getState(j runnerapi.Assignment) *runnerapi.GetStateResponse {
	a.w.t.Helper()
	resp, err := a.GetStateWithResponse(a.w.t.Context(), a.o.resource, &runnerapi.GetStateParams{JobID: j.JobID, Attempt: j.Attempt})
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func TestStateOfAnApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	apply, plan := a.lease(job{fence: 1}), a.lease(job{})

	must(t, a.getState(apply), nil, http.StatusNoContent)
	refused(t, a.putState(apply, "L", 1, 1, "a"), nil, http.StatusConflict, "state_refused") // not locked yet
	refused(t, a.lock(plan, "P", 1), nil, http.StatusForbidden, "not_mutating")
	refused(t, a.lock(apply, "L", 9), nil, http.StatusConflict, "superseded")
	must(t, a.lock(apply, "L", 1), nil, http.StatusOK)
	must(t, a.lock(apply, "L", 1), nil, http.StatusOK) // a lost reply
	busy := a.lock(apply, "M", 1)
	refused(t, busy, nil, http.StatusLocked, "locked")
	if holder := busy.ApplicationProblemJSON423.Holder; holder.LockID != "L" || holder.JobID != apply.JobID || holder.Info["Who"] != "test" {
		t.Errorf("holder is %+v", holder)
	}

	first := a.putState(apply, "L", 1, 1, "b")
	must(t, first, nil, http.StatusOK)
	again := a.putState(apply, "L", 1, 1, "b")
	must(t, again, nil, http.StatusOK)
	if first.JSON200.StateID != again.JSON200.StateID {
		t.Error("a repeated write made another state")
	}
	must(t, a.putState(apply, "L", 1, 4, "c"), nil, http.StatusOK)
	refused(t, a.putState(apply, "L", 1, 3, "d"), nil, http.StatusConflict, "state_refused")

	for _, j := range []runnerapi.Assignment{apply, plan} {
		read := a.getState(j)
		must(t, read, nil, http.StatusOK)
		if read.JSON200.Serial != 4 || string(read.JSON200.Body) != "sealed c" || read.JSON200.Digest != digest("c") || read.JSON200.Lock == nil || read.JSON200.Lock.LockID != "L" {
			t.Errorf("%s reads %+v", j.Operation, read.JSON200)
		}
	}
	refused(t, a.unlock(plan, "L"), nil, http.StatusLocked, "locked")
	must(t, a.unlock(apply, "L"), nil, http.StatusNoContent)
	must(t, a.unlock(apply, "L"), nil, http.StatusNoContent)

	kinds := one[string](w, `select string_agg(kind || ' ' || serial, ', ' order by created_at, id) from tf_states`)
	if diff := cmp.Diff("orphaned 1, superseded 1, current 4, orphaned 3", kinds); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

// A zombie: the attempt is over, its process is not.
func TestLateStateIsKeptAsEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	old := a.lease(job{fence: 1})
	must(t, a.lock(old, "L", 1), nil, http.StatusOK)
	must(t, a.putState(old, "L", 1, 1, "a"), nil, http.StatusOK)

	// The change after it got the resource, and takes the lock that was left.
	w.exec(`update leases set state = 'ended' where job_id = $1`, old.JobID)
	w.exec(`update runner_jobs set state = 'failed' where id = $1`, old.JobID)
	fresh := a.lease(job{fence: 2})
	must(t, a.lock(fresh, "N", 2), nil, http.StatusOK)
	must(t, a.putState(fresh, "N", 2, 2, "b"), nil, http.StatusOK)

	late := a.putState(old, "L", 1, 7, "f")
	refused(t, late, nil, http.StatusConflict, "state_refused")
	kept := late.ApplicationProblemJSON409.StateID
	if again := a.putState(old, "L", 1, 7, "f"); again.ApplicationProblemJSON409.StateID != kept {
		t.Error("the same evidence was kept twice")
	}
	row := one[string](w, `select kind || '|' || convert_from(body, 'UTF8') || '|' || reason from tf_states where id = $1`, kept)
	if diff := cmp.Diff("orphaned|sealed f|attempt 1 of the job is over", row); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	refused(t, a.lock(old, "L", 1), nil, http.StatusConflict, "superseded")
	refused(t, a.unlock(old, "N"), nil, http.StatusLocked, "locked")
	refused(t, a.getState(old), nil, http.StatusNotFound, "not_found")
	if read := a.getState(fresh); read.JSON200 == nil || read.JSON200.Serial != 2 {
		t.Errorf("the live state is %s", read.Body)
	}
}

func TestAnExpiredLeaseKeepsItsLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	apply := a.lease(job{fence: 1})
	must(t, a.lock(apply, "L", 1), nil, http.StatusOK)
	w.exec(`update leases set state = 'lost', expires_at = now() - interval '1 hour' where job_id = $1`, apply.JobID)
	// Expired is not dead: it writes, and nobody else locks.
	must(t, a.putState(apply, "L", 1, 1, "a"), nil, http.StatusOK)
	other := a.lease(job{fence: 1})
	refused(t, a.lock(other, "M", 1), nil, http.StatusLocked, "locked")
}

// A runner that goes on and on does not fill the disk.
func TestOlderEvidenceKeepsItsDigestOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	apply := a.lease(job{fence: 1})
	const refusedStates, whole = 23, 20
	for serial := range int64(refusedStates) { // it never locked
		refused(t, a.putState(apply, "L", 1, serial+1, "a"), nil, http.StatusConflict, "state_refused")
	}
	refused(t, a.putState(apply, "L", 1, 1, "a"), nil, http.StatusConflict, "state_refused") // known by its digest
	got := one[string](w, `select count(*) || ' kept, ' || count(body) || ' whole, from serial ' || min(serial) filter (where body is not null)
		|| ', digests ' || count(*) filter (where digest = $1) from tf_states`, digest("a"))
	if diff := cmp.Diff(fmt.Sprintf("%d kept, %d whole, from serial %d, digests %d", refusedStates, whole, refusedStates-whole+1, refusedStates), got); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}
