package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

func (a *agent) settings(after int64, wait int) *runnerapi.GetSettingsResponse {
	a.w.t.Helper()
	resp, err := a.GetSettingsWithResponse(a.w.t.Context(), &runnerapi.GetSettingsParams{AfterVersion: &after, WaitSeconds: &wait})
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func (a *agent) addSettings(version int64) {
	a.w.t.Helper()
	a.w.exec(`insert into settings_versions (org_id, install_id, version, digest, envelope, expires_at)
		values ($1, $2, $3, 'd', '{"payloadType":"t","payload":"cA==","signatures":[]}', now() + interval '7 days')`, a.o.id, a.o.install, version)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	must(t, a.settings(0, 0), nil, http.StatusNoContent)

	for version, notified := range map[int64]bool{1: true, 2: false} { // a lost notification is found too
		answers := make(chan *runnerapi.GetSettingsResponse, 1)
		before := one[int64](w, `select coalesce(max(version), 0) from settings_versions`)
		go func() { answers <- a.settings(before, 50) }()
		a.addSettings(before + 1)
		if notified {
			w.notify("berth_settings", a.id)
		}
		select {
		case resp := <-answers:
			must(t, resp, nil, http.StatusOK)
			if resp.JSON200.Version != before+1 || resp.JSON200.Envelope.Payload != "cA==" {
				t.Errorf("case %d: got %s", version, resp.Body)
			}
		case <-time.After(patience):
			t.Fatalf("case %d: not answered", version)
		}
	}
	must(t, a.settings(2, 0), nil, http.StatusNoContent)
	if resp := a.settings(1, 0); resp.JSON200 == nil || resp.JSON200.Version != 2 {
		t.Errorf("who has 1 gets %s", resp.Body)
	}
	if opened := a.start(); opened.SettingsVersion != 2 {
		t.Errorf("a new session is told of settings %d, want 2", opened.SettingsVersion)
	}
	build := w.agent(a.o, "build")
	refused(t, build.settings(0, 0), nil, http.StatusNotFound, "not_found")
}

func TestRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publish(a.o, jobspec.SettingsLifetime, "health")
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	put := func(runID string, r jobspec.Run) *runnerapi.PutRunResponse {
		t.Helper()
		r.Action, r.ScheduledAt = "health", at
		resp, err := a.PutRunWithResponse(t.Context(), runID, r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	first, second := id.New(id.ActionRun), id.New(id.ActionRun)
	must(t, put(first, jobspec.Run{State: "running", StartedAt: at}), nil, http.StatusOK)
	// The agent died, forgot its id, and reports the same tick.
	ended := put(second, jobspec.Run{State: "failed", ExitCode: 3, Error: "no", StartedAt: at, FinishedAt: at.Add(time.Second)})
	must(t, ended, nil, http.StatusOK)
	if ended.JSON200.RunID != first {
		t.Errorf("the run is known as %s, want %s", ended.JSON200.RunID, first)
	}
	must(t, put(first, jobspec.Run{State: "failed", ExitCode: 3, Error: "no"}), nil, http.StatusOK)
	must(t, put(first, jobspec.Run{State: "running"}), nil, http.StatusOK)
	refused(t, put(first, jobspec.Run{State: "succeeded"}), nil, http.StatusConflict, "run_finished")
	got := one[string](w, `select count(*) || ' ' || min(key) || ' ' || min(state) || ' ' || min(exit_code) || ' ' || min(trigger) from action_runs`)
	if diff := cmp.Diff("1 health@2026-11-20T10:00:00Z failed 3 cron", got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if n := one[int](w, `select count(*) from river_ctl.river_job where kind = 'install_advance'`); n != 2 {
		t.Errorf("ctl-api was woken %d times, want for the enrolment and for the end of the run", n)
	}
}
