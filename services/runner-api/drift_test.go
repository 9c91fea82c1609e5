package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// liveComponent makes a component of an install that a change made live.
func (w *world) liveComponent(o org, name, change string) (resource string) {
	w.t.Helper()
	resource = id.New(id.Resource)
	w.exec(`insert into resources (id, org_id, install_id, kind, name, type, state, live_change_id) values ($1, $2, $3, 'component', $4, 'helm_chart', 'live', $5)`,
		resource, o.id, o.install, name, change)
	return resource
}

func looked(name string, at time.Time, drift *jobspec.Drift) jobspec.Run {
	return jobspec.Run{Action: jobspec.DriftPrefix + name, ScheduledAt: at, State: "succeeded", StartedAt: at, FinishedAt: at.Add(time.Second), Drift: drift}
}

func (a *agent) look(run jobspec.Run) runnerapi.RunRecorded {
	a.w.t.Helper()
	resp, err := a.PutRunWithResponse(a.w.t.Context(), id.New(id.ActionRun), run)
	must(a.w.t, resp, err, http.StatusOK)
	return *resp.JSON200
}

func (w *world) looks(resource string) (n int) {
	w.t.Helper()
	if err := w.db.Admin().QueryRow(w.t.Context(), `select count(*) from drift_looks where resource_id = $1`, resource).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// What a look found is kept once for each component and tick. One about another change than
// the live one is stale, and so is one that comes while a change goes on.
func TestLooksForDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	web := w.liveComponent(a.o, "web", "chg_1")
	w.publish(a.o, jobspec.SettingsLifetime, "drift/web")
	found := &jobspec.Drift{Change: "chg_1", Looked: 3, Class: "human_edit", Digest: "sha256:1"}
	for range 2 { // a report may come twice, under another id too
		if got := a.look(looked("web", tick, found)); got.Drift == nil || *got.Drift != runnerapi.RunRecordedDriftTaken {
			t.Fatalf("got %+v", got)
		}
	}
	if n := w.looks(web); n != 1 {
		t.Errorf("%d looks are kept", n)
	}
	failed := looked("web", tick.Add(time.Minute), nil)
	failed.State, failed.Error = "failed", "the cluster does not answer"
	if got := a.look(failed); got.Drift == nil || *got.Drift != runnerapi.RunRecordedDriftTaken {
		t.Errorf("got %+v", got)
	}
	if n := w.looks(web); n != 2 {
		t.Errorf("%d looks are kept", n)
	}
	stale := func(at time.Time) {
		t.Helper()
		if got := a.look(looked("web", at, found)); got.Drift == nil || *got.Drift != runnerapi.RunRecordedDriftStale {
			t.Errorf("got %+v", got)
		}
	}
	w.exec(`update resources set state = 'changing' where id = $1`, web)
	stale(tick.Add(2 * time.Minute))
	w.exec(`update resources set state = 'live', live_change_id = 'chg_2' where id = $1`, web)
	stale(tick.Add(3 * time.Minute))
	if n := w.looks(web); n != 2 {
		t.Errorf("%d looks are kept", n)
	}
}

// Looks at the sandbox are its own, also where a component has its name.
func TestLooksAtTheSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	component, sandbox := w.liveComponent(a.o, "sandbox", "chg_1"), id.New(id.Resource)
	w.exec(`insert into resources (id, org_id, install_id, kind, name, type, state, live_change_id) values ($1, $2, $3, 'sandbox', 'sandbox', 'terraform_module', 'live', 'chg_2')`,
		sandbox, a.o.id, a.o.install)
	w.publish(a.o, jobspec.SettingsLifetime, "drift/sandbox", "drift/sandbox/sandbox")
	for _, tc := range []struct {
		name, change              string
		ofComponent, ofTheSandbox int
	}{{"sandbox/sandbox", "chg_2", 0, 1}, {"sandbox", "chg_1", 1, 1}} {
		got := a.look(looked(tc.name, tick, &jobspec.Drift{Change: tc.change, Looked: 3}))
		if got.Drift == nil || *got.Drift != runnerapi.RunRecordedDriftTaken {
			t.Errorf("%s: got %+v", tc.name, got)
		}
		if w.looks(component) != tc.ofComponent || w.looks(sandbox) != tc.ofTheSandbox {
			t.Errorf("%s: %d looks at the component, %d at the sandbox", tc.name, w.looks(component), w.looks(sandbox))
		}
	}
}

// A runner tells of the drift of its own install alone, of what its settings name, and
// nothing that cannot be.
func TestAttackLooksForDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent(w.org(), "install"), w.agent(w.org(), "install")
	mine, theirs := w.liveComponent(a.o, "web", "chg_1"), w.liveComponent(b.o, "web", "chg_1")
	secret := w.liveComponent(b.o, "secret", "chg_1")
	w.publish(a.o, jobspec.SettingsLifetime, "drift/web", "health")
	w.publish(b.o, jobspec.SettingsLifetime, "drift/secret")
	put := func(run jobspec.Run) *runnerapi.PutRunResponse {
		t.Helper()
		resp, err := a.PutRunWithResponse(t.Context(), id.New(id.ActionRun), run)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	found := jobspec.Drift{Change: "chg_1", Class: "real", Digest: "sha256:1"}
	refused(t, put(looked("secret", tick, &found)), nil, http.StatusUnprocessableEntity, "action_unknown")
	refused(t, put(looked("../web", tick, &found)), nil, http.StatusUnprocessableEntity, "action_unknown")
	run := looked("web", tick, &found)
	run.Action = "health"
	refused(t, put(run), nil, http.StatusUnprocessableEntity, "drift_invalid")
	for _, bad := range []jobspec.Drift{
		{}, {Change: "chg_1", Class: "controller", Digest: "sha256:1"}, {Change: "chg_1", Digest: "sha256:1"},
		{Change: "chg_1", Objects: []jobspec.DriftObject{{Address: strings.Repeat("x", jobspec.MaxDrift)}}},
	} {
		refused(t, put(looked("web", tick, &bad)), nil, http.StatusUnprocessableEntity, "drift_invalid")
	}
	a.look(looked("web", tick, &found))
	if w.looks(mine) != 1 || w.looks(theirs) != 0 || w.looks(secret) != 0 {
		t.Errorf("looks: %d of ours, %d and %d of theirs", w.looks(mine), w.looks(theirs), w.looks(secret))
	}
}
