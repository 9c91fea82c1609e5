package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/logdb"
)

var tick = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// reportRun must succeed.
func (a *agent) reportRun(runID, state string, at time.Time) runnerapi.RunRecorded {
	a.w.t.Helper()
	resp, err := a.PutRunWithResponse(a.w.t.Context(), runID, jobspec.Run{Action: "health", ScheduledAt: at, State: state, StartedAt: at})
	must(a.w.t, resp, err, http.StatusOK)
	return *resp.JSON200
}

// appendLine does to a stream what log-ingest does, with its rights.
func (w *world) appendLine(stream, token string) (expired, revoked bool) {
	w.t.Helper()
	st, hash := w.db.AsRole(store.RoleLog), auth.Hash(token)
	var org string
	err := st.System(w.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		org, err = logdb.New(tx.DB()).OrgOfLogToken(ctx, hash)
		return err
	})
	if err != nil || org == "" {
		w.t.Fatalf("the log token is of org %q: %v", org, err)
	}
	err = st.Tx(w.t.Context(), org, func(ctx context.Context, tx *store.Tx) error {
		q := logdb.New(tx.DB())
		head, err := q.LockLogStream(ctx, logdb.LockLogStreamParams{StreamID: stream, TokenHash: hash})
		if err != nil {
			return err
		}
		expired, revoked = head.TokenExpired, head.TokenRevoked
		if err := q.InsertLogChunk(ctx, logdb.InsertLogChunkParams{
			StreamID: stream, FirstSeq: head.NextSeq, LastSeq: head.NextSeq, PrevHash: head.HeadHash, RawBytes: 1, Body: []byte("x"),
		}); err != nil {
			return err
		}
		return q.MoveLogHead(ctx, logdb.MoveLogHeadParams{StreamID: stream, NextSeq: head.NextSeq + 1, HeadHash: head.HeadHash, AddedBytes: 1})
	})
	if err != nil {
		w.t.Fatalf("append to stream %s: %v", stream, err)
	}
	return expired, revoked
}

func TestAScheduledRunHasALog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publish(a.o, jobspec.SettingsLifetime, "health")
	runID := id.New(id.ActionRun)
	first := a.reportRun(runID, "running", tick)
	again := a.reportRun(runID, "running", tick) // a lost reply
	// It is known by its tick, whatever a restarted runner calls it.
	ended := a.reportRun(id.New(id.ActionRun), "succeeded", tick)
	tokens := map[string]bool{}
	for _, got := range []runnerapi.RunRecorded{first, again, ended} {
		if got.StreamID == nil || got.LogToken == nil {
			t.Fatalf("answered %+v, want a stream and a token", got)
		}
		if got.RunID != runID || *got.StreamID != *first.StreamID {
			t.Errorf("answered run %s with stream %s, want %s with %s", got.RunID, *got.StreamID, runID, *first.StreamID)
		}
		tokens[*got.LogToken] = true
		if expired, revoked := w.appendLine(*got.StreamID, *got.LogToken); expired || revoked {
			t.Errorf("a fresh token is expired: %t, revoked: %t", expired, revoked)
		}
	}
	if len(tokens) != 3 {
		t.Errorf("%d tokens for 3 reports", len(tokens))
	}
	got := one[string](w, `select s.install_id || ' ' || s.run_id || ' ' || s.next_seq || ' ' || s.state
		from log_streams s join action_runs r on r.stream_id = s.id`)
	if diff := cmp.Diff(a.o.install+" "+runID+" 4 open", got); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}

	// The machine is replaced: its tokens are worth nothing.
	w.machine(a.o, w.url).enrol(w.enrolment(a.o, a.id, true))
	if _, revoked := w.appendLine(*ended.StreamID, *ended.LogToken); !revoked {
		t.Error("a replaced machine's log token is good")
	}
	if state := one[string](w, `select state from log_streams`); state != "closed" {
		t.Errorf("the stream of a replaced machine is %s, want closed", state)
	}
}

func TestAMissedRunHasNoLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publish(a.o, jobspec.SettingsLifetime, "health")
	if got := a.reportRun(id.New(id.ActionRun), "missed", tick); got.StreamID != nil || got.LogToken != nil {
		t.Errorf("a run that never began has stream %v", *got.StreamID)
	}
	// One that had begun to speak may say the rest.
	later := tick.Add(time.Minute)
	began := a.reportRun(id.New(id.ActionRun), "running", later)
	missed := a.reportRun(began.RunID, "missed", later)
	if missed.StreamID == nil || *missed.StreamID != *began.StreamID {
		t.Errorf("answered %+v, want stream %s", missed, *began.StreamID)
	}
	if n := one[int](w, `select count(*) from log_streams`); n != 1 {
		t.Errorf("%d streams, want one", n)
	}
}

// The same tick of another install, even of the same org, is another run.
func TestARunIsOfItsInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent(w.org(), "install"), w.agent(w.org(), "install")
	w.publish(a.o, jobspec.SettingsLifetime, "health")
	w.publish(b.o, jobspec.SettingsLifetime, "health")
	runID := id.New(id.ActionRun)
	one := a.reportRun(runID, "running", tick)
	other := b.reportRun(id.New(id.ActionRun), "running", tick)
	if one.RunID == other.RunID || *one.StreamID == *other.StreamID {
		t.Errorf("two installs share run %s or stream %s", one.RunID, *one.StreamID)
	}
	resp, err := a.PutRunWithResponse(t.Context(), runID, jobspec.Run{Action: "health", ScheduledAt: tick, State: "failed"})
	must(t, resp, err, http.StatusOK)
	resp, err = a.PutRunWithResponse(t.Context(), runID, jobspec.Run{Action: "health", ScheduledAt: tick, State: "succeeded"})
	refused(t, resp, err, http.StatusConflict, "run_finished")
}

// Only what settings scheduled is recorded, by any that were good at that time:
// a run may have been begun by older ones, and be told after those have expired.
func TestAttackRunsOfUnknownActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	other := w.agent(w.org(), "install")
	put := func(action string, at time.Time) *runnerapi.PutRunResponse {
		t.Helper()
		resp, err := a.PutRunWithResponse(t.Context(), id.New(id.ActionRun), jobspec.Run{Action: action, ScheduledAt: at, State: "running"})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	now := time.Now().UTC().Truncate(time.Minute)
	refused(t, put("health", now), nil, http.StatusUnprocessableEntity, "action_unknown") // no settings at all
	w.publish(other.o, jobspec.SettingsLifetime, "theirs")
	w.publish(a.o, -time.Hour, "expired")
	w.publish(a.o, time.Hour, "removed", "component/api")
	w.publish(a.o, jobspec.SettingsLifetime, "health", "component/api")
	for _, action := range []string{"health", "removed", "component/api"} {
		must(t, put(action, now), nil, http.StatusOK)
	}
	must(t, put("expired", now.Add(-2*time.Hour)), nil, http.StatusOK)
	for _, action := range []string{"made-up", "expired", "theirs", "component/other", "component/health", "api"} {
		refused(t, put(action, now), nil, http.StatusUnprocessableEntity, "action_unknown")
	}
	// One that is known stays known: its end comes when all settings are gone.
	w.exec(`delete from settings_versions`)
	must(t, put("health", now), nil, http.StatusOK)
}

// A report from the future would stand before all that really comes after it.
func TestAttackReportsFromTheFuture(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publish(a.o, jobspec.SettingsLifetime, "health")
	ahead := time.Now().Add(6 * time.Minute)
	for _, run := range []jobspec.Run{
		{ScheduledAt: ahead, State: "running"},
		{ScheduledAt: tick, State: "running", StartedAt: ahead},
		{ScheduledAt: tick, State: "succeeded", StartedAt: tick, FinishedAt: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		run.Action = "health"
		resp, err := a.PutRunWithResponse(t.Context(), id.New(id.ActionRun), run)
		refused(t, resp, err, http.StatusUnprocessableEntity, "dated_in_future")
	}
	a.reportRun(id.New(id.ActionRun), "running", time.Now().Add(time.Minute)) // clocks differ a little

	job := a.lease(job{})
	report := runnerapi.ResultReport{Attempt: 1, Result: jobspec.Result{
		JobID: job.JobID, Attempt: 1, Outcome: jobspec.OutcomeFailed, StartedAt: tick, FinishedAt: ahead,
	}}
	resp, err := a.PutResultWithResponse(t.Context(), job.JobID, report)
	refused(t, resp, err, http.StatusUnprocessableEntity, "dated_in_future")
	report.Result.FinishedAt = time.Now()
	resp, err = a.PutResultWithResponse(t.Context(), job.JobID, report)
	must(t, resp, err, http.StatusOK)
}
