package alertwatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/alertwatch"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// world is an org with live installs of one release, each with a runner and a component.
type world struct {
	t                      *testing.T
	pg                     *pgtest.DB
	st                     *database.Store
	org, app, customer     string
	release                string
	clock                  time.Time
	installs, runners, web []string
}

func newWorld(t *testing.T, installs int) *world {
	t.Helper()
	w := &world{
		t: t, pg: pgtest.New(t), org: id.New(id.Org), app: id.New(id.App), customer: id.New(id.Customer), release: id.New(id.Release),
		clock: time.Now().UTC().Truncate(time.Second),
	}
	w.st = database.New(w.pg.AsRole(store.RoleCtl))
	w.exec(`insert into orgs (org_id, name) values ($1, 'vendor')`, w.org)
	w.exec(`insert into apps (id, org_id, name) values ($1, $2, 'shop')`, w.app, w.org)
	w.exec(`insert into customers (id, org_id, name) values ($1, $2, 'acme')`, w.customer, w.org)
	w.exec(`insert into blobs (org_id, digest, size_bytes, body) values ($1, 'sha256:' || repeat('0', 64), 1, 'x')`, w.org)
	w.exec(`insert into configs (id, org_id, app_id, number, digest, bundle_digest, body, created_by) values ('cfg_1', $1, $2, 1, 'd', 'sha256:' || repeat('0', 64), '{}', 'ada')`, w.org, w.app)
	w.exec(`insert into releases (id, org_id, app_id, number, config_id, made_by, digest) values ($1, $2, $3, 7, 'cfg_1', 'sync', 'd')`, w.release, w.org, w.app)
	for i := range installs {
		install, runner, web := id.New(id.Install), id.New(id.Runner), id.New(id.Resource)
		w.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, state, release_id, created_by) values ($1, $2, $3, $4, $5, 'local', 'live', $6, 'test')`,
			install, w.org, w.customer, w.app, fmt.Sprintf("acme-%d", i), w.release)
		w.exec(`insert into runners (id, org_id, install_id, kind, name, state, version, online, last_seen_at) values ($1, $2, $3, 'install', 'r', 'active', 'v1', true, $4)`,
			runner, w.org, install, w.clock)
		w.exec(`insert into resources (id, org_id, install_id, kind, name, type, state, live_release_id) values ($1, $2, $3, 'component', 'web', 'helm_chart', 'live', $4)`,
			web, w.org, install, w.release)
		w.exec(`insert into checks (org_id, install_id, name, verdict, since) values ($1, $2, 'component/web', 'healthy', $3)`, w.org, install, w.clock)
		w.installs, w.runners, w.web = append(w.installs, install), append(w.runners, runner), append(w.web, web)
	}
	return w
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pg.Admin().Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// text is the one value of a query.
func (w *world) text(sql string, args ...any) (out string) {
	w.t.Helper()
	if err := w.pg.Admin().QueryRow(w.t.Context(), sql, args...).Scan(&out); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// verdict is what the check of an install's component says from now on.
func (w *world) verdict(n int, verdict string) {
	w.t.Helper()
	w.exec(`update checks set verdict = $2, since = $3 where install_id = $1`, w.installs[n], verdict, w.clock)
}

var errKilled = errors.New("killed before the commit")

// look looks at an install, and says when to look next.
func (w *world) look(n int) time.Time {
	w.t.Helper()
	next, err := w.try(n, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return next
}

func (w *world) try(n int, end error) (next time.Time, err error) {
	err = w.st.Tx(w.t.Context(), w.org, func(ctx context.Context, tx *database.Tx) error {
		install, err := tx.LockInstallRow(ctx, w.installs[n])
		if err != nil {
			return err
		}
		if next, err = alertwatch.Look(ctx, tx, install, w.clock); err != nil {
			return err
		}
		return end
	})
	return next, err
}

func (w *world) pass(d time.Duration) { w.clock = w.clock.Add(d) }

// wantNext checks when the next look is due; zero for never. Ends of other things are later.
func (w *world) wantNext(got time.Time, in time.Duration) {
	w.t.Helper()
	if in == 0 && !got.IsZero() || in != 0 && !got.Equal(w.clock.Add(in)) {
		w.t.Errorf("the next look is at %s, want in %s after %s", got, in, w.clock)
	}
}

// events are those of alerts and incidents so far, and which installs have none numbered is
// no matter: the outbox has them all in order.
func (w *world) events() string {
	w.t.Helper()
	return w.text(`select coalesce(string_agg(kind, ' ' order by n), '') from event_outbox where kind like 'alert.%' or kind like 'incident.%'`)
}

func (w *world) wantEvents(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(strings.Join(want, " "), w.events()); diff != "" {
		w.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// One episode is one alert, told once, whatever happens to those who look.
func TestOneEpisode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.wantNext(w.look(0), 0)
	w.verdict(0, "unhealthy")
	if _, err := w.try(0, errKilled); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	w.wantNext(w.look(0), 30*time.Second)
	w.wantEvents() // it may be the same elsewhere
	w.pass(30 * time.Second)
	w.wantNext(w.look(0), 0)
	w.wantEvents("alert.opened")
	for range 3 {
		w.pass(time.Minute)
		w.look(0)
		w.verdict(0, "healthy")
		w.wantNext(w.look(0), 5*time.Minute)
		w.pass(time.Minute)
		w.verdict(0, "unhealthy")
		w.wantNext(w.look(0), 0)
	}
	w.verdict(0, "unknown")
	w.wantNext(w.look(0), 0)
	w.verdict(0, "healthy")
	w.look(0)
	w.pass(5 * time.Minute)
	if _, err := w.try(0, errKilled); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	w.wantNext(w.look(0), 0)
	w.look(0)
	w.wantEvents("alert.opened", "alert.closed")
	if got, want := w.text(`select string_agg(concat_ws(' ', state, text, relapses, closed_because), ', ') from alerts`), "closed component/web is unhealthy 3 recovered"; got != want {
		t.Errorf("the alerts are %q, want %q", got, want)
	}
	w.verdict(0, "unhealthy")
	w.look(0)
	if got := w.text(`select count(*)::text from alerts`); got != "2" {
		t.Errorf("%s alerts after two episodes", got)
	}
}

// The control plane was away, every runner looks silent for a moment, and nobody is called.
func TestRunnersComeBackAfterAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.exec(`update runners set last_seen_at = $1, online = false`, w.clock.Add(-time.Hour))
	for n := range 2 {
		w.wantNext(w.look(n), 30*time.Second)
	}
	w.pass(10 * time.Second)
	w.exec(`update runners set last_seen_at = $1, online = true`, w.clock)
	for n := range 2 {
		w.wantNext(w.look(n), 5*time.Minute)
	}
	w.pass(5 * time.Minute)
	for n := range 2 {
		w.wantNext(w.look(n), 0)
	}
	w.wantEvents()
	if got := w.text(`select count(*)::text from alerts`); got != "0" {
		t.Errorf("%s alerts are left", got)
	}
}

// Replicas that look at the same time open one alert; rows say so even without the lock.
func TestReplicasOpenOneAlert(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.verdict(0, "unhealthy")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := w.try(0, nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := w.text(`select count(*)::text from alerts`); got != "1" {
		t.Errorf("%s alerts of one episode", got)
	}
	_, err := w.pg.Admin().Exec(t.Context(), `insert into alerts (id, org_id, install_id, kind, subject, state, text, since, opened_at, tell_at, told_at)
		select 'alt_2', org_id, install_id, kind, subject, state, text, since, opened_at, tell_at, now() from alerts`)
	if err == nil || !strings.Contains(err.Error(), "alerts_one") {
		t.Errorf("a second open alert: %v", err)
	}
}

// What a thief of the service's password can do to what people were told: nothing.
func TestToldAlertsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.verdict(0, "unhealthy")
	w.look(0)
	w.pass(30 * time.Second)
	w.look(0)
	err := w.st.Tx(t.Context(), w.org, func(ctx context.Context, tx *database.Tx) error {
		_, err := tx.DB().Exec(ctx, `delete from alerts`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.text(`select count(*)::text from alerts`); got != "1" {
		t.Errorf("%s alerts are left of 1", got)
	}
}

// The same component of the same release in three installs is one incident, told once.
func TestIncident(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	for n := range 3 {
		w.verdict(n, "unhealthy")
		w.look(n)
	}
	w.pass(30 * time.Second)
	for n := range 3 {
		w.look(n)
	}
	w.wantEvents("incident.opened", "alert.joined", "alert.joined", "alert.joined")
	if got, want := w.text(`select kind || ' ' || about || ' ' || (release_id = $1) || ' ' || installs from incidents`, w.release), "unhealthy component/web true 3"; got != want {
		t.Errorf("the incident is %q, want %q", got, want)
	}
	// One more, hours later: the incident is still open.
	w.pass(3 * time.Hour)
	w.verdict(3, "unhealthy")
	w.look(3)
	w.pass(30 * time.Second)
	w.look(3)
	for n := range 4 {
		w.verdict(n, "healthy")
		w.look(n)
		w.pass(5 * time.Minute)
		if w.look(n); n < 3 && strings.Contains(w.events(), "incident.closed") {
			t.Fatalf("the incident is closed with %d open alerts", 3-n)
		}
	}
	w.wantEvents("incident.opened", "alert.joined", "alert.joined", "alert.joined", "alert.joined",
		"alert.closed", "alert.closed", "alert.closed", "alert.closed", "incident.closed")
	if got := w.text(`select count(*)::text from alerts where incident_id is not null`); got != "4" {
		t.Errorf("%s alerts are of the incident, want 4", got)
	}
}

// One that people know alone joins the incident that a second install makes of it.
func TestSecondInstallMakesTheIncident(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.verdict(0, "unhealthy")
	w.look(0)
	w.pass(time.Minute)
	w.look(0)
	w.pass(10 * time.Minute)
	w.verdict(1, "unhealthy")
	w.look(1)
	w.pass(time.Minute)
	w.look(1)
	if got := w.text(`select count(*)::text from river_ctl.river_job where kind = 'install_advance' and args->>'install_id' = $1`, w.installs[0]); got != "1" {
		t.Errorf("the first install has %s wake-ups, want 1", got)
	}
	w.look(0)
	w.look(0)
	w.wantEvents("alert.opened", "incident.opened", "alert.joined", "alert.joined")
}

// An incident does not stay open for an alert that was over before anybody was told.
func TestIncidentClosesWithAnUntoldAlert(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	for n := range 2 {
		w.verdict(n, "unhealthy")
		w.look(n)
	}
	w.pass(30 * time.Second)
	w.look(0)
	w.look(1)
	for n := range 2 {
		w.verdict(n, "healthy")
		w.look(n)
	}
	w.pass(4 * time.Minute)
	w.verdict(2, "unhealthy")
	w.look(2)
	w.pass(time.Second)
	w.verdict(2, "healthy")
	w.look(2)
	w.pass(time.Minute)
	w.look(0)
	w.look(1)
	if strings.Contains(w.events(), "incident.closed") {
		t.Error("the incident is closed while an alert of its cause is open")
	}
	w.pass(5 * time.Minute)
	w.look(2)
	w.wantEvents("incident.opened", "alert.joined", "alert.joined", "alert.closed", "alert.closed", "incident.closed")
}

// Who looks late finds that one episode is over and another has begun, told or not.
func TestLateLook(t *testing.T) {
	t.Parallel()
	for _, told := range []time.Duration{0, 30 * time.Second} {
		w := newWorld(t, 1)
		w.verdict(0, "unhealthy")
		w.look(0)
		w.pass(told)
		w.look(0)
		w.verdict(0, "healthy")
		w.look(0)
		w.pass(10 * time.Minute)
		w.verdict(0, "unhealthy")
		w.wantNext(w.look(0), 30*time.Second)
		want := "open"
		if told > 0 {
			want = "closed open"
		}
		if got := w.text(`select string_agg(state, ' ' order by created_at, id) from alerts`); got != want {
			t.Errorf("told after %s: the alerts are %s, want %s", told, got, want)
		}
	}
}

// Many installs at once make one incident.
func TestOneIncidentOfManyReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 12)
	for n := range w.installs {
		w.verdict(n, "unhealthy")
		w.look(n)
	}
	w.pass(30 * time.Second)
	both := func() {
		var group sync.WaitGroup
		for n := range w.installs {
			group.Go(func() {
				if _, err := w.try(n, nil); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	both()
	if got := w.text(`select count(*) || ' ' || (select count(*) from alerts where incident_id is not null) from incidents`); got != "1 12" {
		t.Errorf("incidents and their alerts: %s", got)
	}
	for n := range w.installs {
		w.verdict(n, "healthy")
	}
	both()
	w.pass(5 * time.Minute)
	both()
	if got := w.text(`select count(*)::text from incidents where closed_at is not null`); got != "1" {
		t.Errorf("%s incidents are closed, want 1", got)
	}
	if n := strings.Count(w.events(), "incident.closed"); n != 1 {
		t.Errorf("%d events of its close", n)
	}
}

func TestMuted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	mute := func(until time.Time, install, kind, subject any) {
		w.exec(`insert into alert_mutes (id, org_id, install_id, kind, subject, reason, created_by, until, created_at) values ($1, $2, $3, $4, $5, 'x', 'ada', $6, $7)`,
			id.New(id.AlertMute), w.org, install, kind, subject, until, w.clock)
	}
	mute(w.clock.Add(time.Hour), w.installs[0], nil, nil)
	mute(w.clock.Add(time.Hour), w.installs[1], "unhealthy", "component/db")
	mute(w.clock.Add(time.Hour), nil, "runner_silent", nil)
	for n := range 2 {
		w.verdict(n, "unhealthy")
	}
	w.wantNext(w.look(0), time.Hour)
	w.wantNext(w.look(1), 30*time.Second) // another subject is muted
	// The trouble is over before the mute is: nobody hears of it.
	w.verdict(0, "healthy")
	w.wantNext(w.look(0), 0)
	w.verdict(0, "unhealthy")
	w.look(0)
	w.pass(time.Hour)
	w.wantNext(w.look(0), 30*time.Second)
	if got := w.text(`select string_agg(state, ' ' order by id) from alerts where install_id = $1`, w.installs[0]); got != "open" {
		t.Errorf("after the mute: %s", got)
	}
}

// A change of the component holds its alert back, until a while after its end.
func TestPlannedWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`insert into workflows (id, org_id, install_id, number, kind, inputs_version, created_by, state, started_at) values ('wfl_1', $1, $2, 1, 'deploy', 1, 'ada', 'running', now())`, w.org, w.installs[0])
	w.exec(`insert into steps (id, org_id, workflow_id, install_id, idx, name, kind, reason, resource_id, state, started_at) values ('stp_1', $1, 'wfl_1', $2, 1, 'component/web', 'deploy', 'x', $3, 'running', now())`, w.org, w.installs[0], w.web[0])
	w.exec(`insert into changes (id, org_id, install_id, workflow_id, step_id, kind, inputs_version, state_version, resource_id, state, executed_at, effect, effect_digest, approved_effect_digest, fence)
		values ('chg_1', $1, $2, 'wfl_1', 'stp_1', 'deploy', 1, 1, $3, 'executing', $4, '{}', 'd', 'd', 1)`,
		w.org, w.installs[0], w.web[0], w.clock)
	w.pass(time.Minute)
	w.verdict(0, "unhealthy")
	w.wantNext(w.look(0), 10*time.Minute)
	w.pass(2 * time.Minute)
	w.exec(`update changes set state = 'applied', finished_at = $1`, w.clock)
	w.exec(`update workflows set state = 'succeeded', finished_at = $1`, w.clock)
	w.pass(4 * time.Minute)
	w.wantNext(w.look(0), 6*time.Minute)
	w.wantEvents()
	w.pass(6 * time.Minute)
	w.wantNext(w.look(0), 30*time.Second)
	w.pass(30 * time.Second)
	w.look(0)
	w.wantEvents("alert.opened")
}

// The runner falls silent: ctl-api hears of it by presence, and waits before it tells.
func TestSilentRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.exec(`update runners set last_seen_at = now() - interval '3 minutes' where id = $1`, w.runners[0])
	w.clock = time.Now().UTC()
	present := func() {
		err := w.st.System(t.Context(), func(ctx context.Context, tx *database.Tx) error {
			_, err := tx.NotePresence(ctx, 120)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	present()
	present()
	if got := w.text(`select string_agg(args->>'install_id', ' ') from river_ctl.river_job where kind = 'install_advance'`); got != w.installs[0] {
		t.Errorf("woken are %s, want %s", got, w.installs[0])
	}
	next := w.look(0)
	if in := next.Sub(w.clock); in < 6*time.Minute || in > 7*time.Minute {
		t.Errorf("the next look is in %s, want about 7 min", in)
	}
	w.wantNext(w.look(1), 0)
	w.clock = next
	w.look(0)
	w.pass(30 * time.Second)
	w.look(0)
	w.wantEvents("alert.opened")
	w.exec(`update runners set last_seen_at = now(), online = true where id = $1`, w.runners[0])
	w.wantNext(w.look(0), 5*time.Minute)
	// A revoked runner is not silent, it is gone.
	w.exec(`update runners set state = 'revoked', revoked_at = now() where id = $1`, w.runners[0])
	w.look(0)
	w.wantEvents("alert.opened", "alert.closed")
	if got := w.text(`select closed_because from alerts`); got != "gone" {
		t.Errorf("closed because %s", got)
	}
}

// What failed, what waits and what ends, from their rows.
func TestOtherSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`insert into workflows (id, org_id, install_id, number, kind, inputs_version, created_by, state, release_id, started_at, finished_at, error)
		values ('wfl_1', $1, $2, 1, 'deploy', 1, 'ada', 'failed', $3, $4, $4, 'x')`, w.org, w.installs[0], w.release, w.clock)
	w.exec(`insert into steps (id, org_id, workflow_id, install_id, idx, name, kind, reason, state, started_at, finished_at, error) values ('stp_1', $1, 'wfl_1', $2, 1, 'component/web', 'deploy', 'x', 'failed', now(), now(), 'secret output')`, w.org, w.installs[0])
	w.exec(`insert into workflows (id, org_id, install_id, number, kind, inputs_version, created_by, state, started_at, wait_reason, wait_on, wait_deadline)
		values ('wfl_2', $1, $2, 2, 'action_run', 1, 'ada', 'waiting', $3, 'decision', 'an approver', now() + interval '1 day')`, w.org, w.installs[0], w.clock)
	w.exec(`insert into steps (id, org_id, workflow_id, install_id, idx, name, kind, reason, state, started_at, wait_reason, wait_on, wait_deadline)
		values ('stp_2', $1, 'wfl_2', $2, 1, 'action/repair', 'action', 'x', 'waiting', $3, 'decision', 'an approver', now() + interval '1 day')`, w.org, w.installs[0], w.clock.Add(-time.Hour))
	w.exec(`update workflows set created_at = $1`, w.clock.Add(-time.Hour))
	w.exec(`insert into settings_versions (org_id, install_id, version, digest, envelope, created_at, expires_at) values ($1, $2, 1, 'd', '{}', $3, $4)`,
		w.org, w.installs[0], w.clock.Add(-6*24*time.Hour), w.clock.Add(20*time.Hour))
	w.exec(`insert into chain_heads (org_id, chain, seq, hash, updated_at) values ($1, $2, 4, 'h', $3)`, w.org, w.installs[0], w.clock.Add(-time.Hour))
	w.exec(`insert into runner_jobs (id, org_id, runner_id, install_id, kind, operation, mutates, fence, state, spec, timeout_seconds, leased_at)
		values ('job_1', $1, $2, $3, 'helm_chart', 'apply', true, 1, 'succeeded', '{}', 60, $4)`, w.org, w.runners[0], w.installs[0], w.clock.Add(-20*time.Minute))
	w.look(0)
	got := strings.Split(w.text(`select string_agg(concat_ws(' | ', kind, subject, state, hold, text), E'\n' order by kind) from alerts`), "\n")
	want := []string{
		"chain_unreported | chain | open | the runner changes things, and has not reported its chain since " + w.clock.Add(-time.Hour).Format(time.RFC3339),
		"expiring | settings | open | the runner's signed settings end at " + w.clock.Add(20*time.Hour).Format(time.RFC3339) + ", and were not renewed",
		"waiting_too_long | action run #2 | held | too_early | action run #2 waits at action/repair for a decision since " + w.clock.Add(-time.Hour).Format(time.RFC3339),
		"workflow_failed | changes | open | deploy #1 failed at component/web",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts (-want +got):\n%s", diff)
	}
	w.pass(30 * time.Second)
	w.look(0)
	// All of it is settled: a retry works, the step goes on, settings are renewed, the chain is there.
	w.exec(`update workflows set state = 'succeeded', error = null, wait_reason = null, wait_on = null, wait_deadline = null, finished_at = now()`)
	w.exec(`update steps set state = 'succeeded', wait_reason = null, wait_on = null, wait_deadline = null, error = null`)
	w.exec(`insert into settings_versions (org_id, install_id, version, digest, envelope, expires_at) values ($1, $2, 2, 'd', '{}', $3)`, w.org, w.installs[0], w.clock.Add(7*24*time.Hour))
	w.exec(`update chain_heads set updated_at = $1`, w.clock)
	w.pass(time.Minute)
	w.look(0)
	w.pass(5 * time.Minute)
	next := w.look(0)
	if got := w.text(`select string_agg(kind || ' ' || closed_because, ', ' order by kind) from alerts where state = 'closed'`); got != "chain_unreported recovered, expiring recovered, workflow_failed recovered" {
		t.Errorf("closed: %s", got)
	}
	if got := w.text(`select count(*)::text from alerts where state <> 'closed'`); got != "0" {
		t.Errorf("%s are left", got)
	}
	if next.Before(w.clock.Add(5 * 24 * time.Hour)) {
		t.Errorf("the next look is at %s, before the settings end", next)
	}
}

// A rehearsal has no alerts, and an install that is taken down closes its own.
func TestInstallGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	rehearsed := id.New(id.Install)
	w.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, state, rehearsal, created_by) values ($1, $2, $3, $4, 'rehearsed', 'local', 'live', '{}', 'test')`,
		rehearsed, w.org, w.customer, w.app)
	w.exec(`insert into checks (org_id, install_id, name, verdict, since) values ($1, $2, 'answers', 'unhealthy', $3)`, w.org, rehearsed, w.clock)
	w.installs = append(w.installs, rehearsed)
	w.verdict(0, "unhealthy")
	w.look(1)
	if got := w.text(`select count(*)::text from alerts`); got != "0" {
		t.Errorf("a rehearsal has %s alerts", got)
	}
	w.look(0)
	w.pass(30 * time.Second)
	w.look(0)
	w.exec(`update installs set state = 'deprovisioned' where id = $1`, w.installs[0])
	w.look(0)
	if got := w.text(`select state || ' ' || closed_because from alerts`); got != "closed gone" {
		t.Errorf("the alert is %s", got)
	}
	w.wantEvents("alert.opened", "alert.closed")
}

// What was closed long ago is dropped, by a role that may do nothing else to it.
func TestDropOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`insert into incidents (id, org_id, kind, cause, about, installs, closed_at) values ('inc_1', $1, 'unhealthy', 'c', 'web', 2, now() - interval '401 days')`, w.org)
	for i, age := range []int{399, 401} {
		w.exec(`insert into alerts (id, org_id, install_id, kind, subject, state, text, since, opened_at, tell_at, told_at, closed_at, closed_because)
			values ($1, $2, $3, 'unhealthy', 'x', 'closed', 'x', now(), now(), now(), now(), now() - make_interval(days => $4), 'gone')`, fmt.Sprintf("alt_%d", i), w.org, w.installs[0], age)
	}
	err := w.st.System(t.Context(), func(ctx context.Context, tx *database.Tx) error {
		dropped, err := tx.DropOldAlerts(ctx, alertwatch.KeepDays)
		if dropped != 1 {
			t.Errorf("dropped %d", dropped)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.text(`select string_agg(id, ' ') || ' ' || (select count(*) from incidents) from alerts`); got != "alt_0 0" {
		t.Errorf("left are %s", got)
	}
}

// A certificate is told once before its end, and no more when another one is in its place or
// nobody has seen it for a day.
func TestCertificateEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	put := func(ends time.Duration) {
		t.Helper()
		w.exec(`delete from certificates`)
		w.exec(`insert into certificates (org_id, install_id, check_name, place, subject, fingerprint, not_before, not_after, seen_at)
		        values ($1, $2, 'component/web', 'Secret shop/tls', 'shop.example.com', 'f', $3, $4, $5)`,
			w.org, w.installs[0], w.clock.Add(ends-90*24*time.Hour), w.clock.Add(ends), w.clock)
	}
	told := func(want string) {
		t.Helper()
		if got := w.text(`select coalesce(string_agg(state || ' ' || subject, ', ' order by id), '') from alerts where kind = 'expiring'`); got != want {
			t.Errorf("alerts %q, want %q", got, want)
		}
	}
	put(15 * 24 * time.Hour)
	w.wantNext(w.look(0), 24*time.Hour)
	told("")
	w.pass(24 * time.Hour)
	w.exec(`update certificates set seen_at = $1`, w.clock)
	w.look(0)
	told("open certificate Secret shop/tls")
	if got, want := w.text(`select text from alerts`), "the certificate for shop.example.com (Secret shop/tls) ends at "; !strings.HasPrefix(got, want) {
		t.Errorf("the alert says %q, want %q…", got, want)
	}
	put(90 * 24 * time.Hour) // renewed
	w.look(0)
	told("closed certificate Secret shop/tls")
	put(-time.Hour) // it has ended
	w.look(0)
	told("closed certificate Secret shop/tls, open certificate Secret shop/tls")
	w.pass(25 * time.Hour) // what looks tell was switched off
	w.look(0)
	told("closed certificate Secret shop/tls, closed certificate Secret shop/tls")
}

// An install that was unhealthy for longer than its objective allows has one alert, until
// enough of what is allowed is left again. The history is read once an hour.
func TestObjectiveIsMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`delete from resource_history`)
	past := func(ago time.Duration, health string) {
		w.exec(`insert into resource_history (org_id, resource_id, at, type, state, health, drift) values ($1, $2, $3, 'helm_chart', 'live', $4, 'none')`, w.org, w.web[0], w.clock.Add(-ago), health)
	}
	told := func(want string) {
		t.Helper()
		if got := w.text(`select coalesce(string_agg(state, ' ' order by id), '') from alerts where kind = 'objective'`); got != want {
			t.Errorf("alerts %q, want %q", got, want)
		}
	}
	past(60*24*time.Hour, "healthy")
	past(48*time.Hour, "unhealthy") // an hour
	past(47*time.Hour, "healthy")
	w.look(0)
	told("") // no objective
	w.exec(`update installs set health_objective = 99.9`)
	w.wantNext(w.look(0), time.Hour)
	told("open")
	want := "unhealthy for 1h0m0s of the last 30 days; the objective of 99.9 % allows 43m12s"
	if got := w.text(`select text from alerts where kind = 'objective'`); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	w.exec(`delete from resource_history where health = 'unhealthy'`)
	w.pass(59 * time.Minute)
	w.wantNext(w.look(0), time.Minute)
	told("open") // it has not counted again
	w.pass(time.Minute)
	w.look(0)
	told("closed")

	past(24*time.Hour, "unhealthy") // 40 minutes: what is allowed is nearly used
	past(24*time.Hour-40*time.Minute, "healthy")
	w.pass(time.Hour)
	w.look(0)
	told("closed")
	past(12*time.Hour, "unhealthy") // 5 more
	past(12*time.Hour-5*time.Minute, "healthy")
	w.pass(time.Hour)
	w.look(0)
	told("closed open")
	w.exec(`update installs set health_objective = 99.89`) // is looked at at once: 47 min 31 s
	w.look(0)
	told("closed open")
	w.exec(`update installs set health_objective = 99.5`)
	w.look(0)
	told("closed closed")
	w.exec(`update installs set health_objective = 99.99`)
	w.look(0)
	told("closed closed open")
	w.exec(`update installs set health_objective = null`)
	w.look(0)
	told("closed closed closed")
}
