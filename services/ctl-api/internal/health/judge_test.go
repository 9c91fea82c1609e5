package health_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/health"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// world is a live install with two components and no checks yet.
type world struct {
	t                *testing.T
	pg               *pgtest.DB
	org, install     string
	chart, terraform string // resources
	clock            time.Time
	runs             int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, pg: pgtest.New(t), org: id.New(id.Org), install: id.New(id.Install), chart: id.New(id.Resource), terraform: id.New(id.Resource),
		clock: time.Now().UTC().Truncate(time.Second),
	}
	app, customer := id.New(id.App), id.New(id.Customer)
	w.exec(`insert into orgs (org_id, name) values ($1, 'vendor')`, w.org)
	w.exec(`insert into apps (id, org_id, name) values ($1, $2, 'shop')`, app, w.org)
	w.exec(`insert into customers (id, org_id, name) values ($1, $2, 'acme')`, customer, w.org)
	w.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, state, created_by) values ($1, $2, $3, $4, 'acme', 'local', 'live', 'test')`,
		w.install, w.org, customer, app)
	for _, r := range []struct{ id, name, typ string }{{w.chart, "web", "helm_chart"}, {w.terraform, "data", "terraform_module"}} {
		w.exec(`insert into resources (id, org_id, install_id, kind, name, type, state) values ($1, $2, $3, 'component', $4, $5, 'live')`,
			r.id, w.org, w.install, r.name, r.typ)
	}
	return w
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pg.Admin().Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// report is a run of an action or a probe, a minute after the one before.
func (w *world) report(name, state string) {
	w.t.Helper()
	w.clock = w.clock.Add(time.Minute)
	w.runs++
	w.exec(`insert into action_runs (id, org_id, install_id, action, trigger, key, scheduled_at, state, created_by, finished_at)
		values ($1, $2, $3, $4, 'cron', $5, $6, $7, 'runner', $6)`,
		id.New(id.ActionRun), w.org, w.install, name, fmt.Sprint(w.runs), w.clock, state)
}

// judge returns the verdicts by name, of resources and of checks.
func (w *world) judge(app *appconfig.App, probes ...jobspec.Probe) map[string]string {
	w.t.Helper()
	got := map[string]string{}
	err := database.New(w.pg.AsRole(store.RoleCtl)).Tx(w.t.Context(), w.org, func(ctx context.Context, tx *database.Tx) error {
		if _, err := health.Judge(ctx, tx, health.Judged{Install: ctldb.Install{ID: w.install, OrgID: w.org, State: "live"}, App: app, Probes: probes, Now: w.clock.Add(time.Second)}); err != nil {
			return err
		}
		resources, err := tx.ResourcesOfInstall(ctx, w.install)
		if err != nil {
			return err
		}
		for _, r := range resources {
			got[r.Name] = string(r.Health)
		}
		checks, err := tx.ListChecks(ctx, w.install)
		for _, c := range checks {
			got["check "+c.Check.Name] = string(c.Check.Verdict)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func (w *world) want(got, want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestProbeJudgesItsComponent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	probe := jobspec.Probe{Kind: jobspec.KindHelmChart, Resource: jobspec.Resource{ID: w.chart, Kind: "component", Name: "web"}}
	answers := &appconfig.App{Actions: []appconfig.Action{{Name: "answers", Labels: map[string]string{"type": "health-check"}}}}

	w.report("answers", "succeeded")
	w.want(w.judge(answers, probe), map[string]string{"web": "healthy", "data": "healthy", "check answers": "healthy"})

	w.report("component/web", "failed")
	w.report("component/web", "failed")
	w.want(w.judge(answers, probe), map[string]string{
		"web": "unhealthy", "data": "healthy", "check answers": "healthy", "check component/web": "unhealthy",
	})

	w.report("component/web", "succeeded")
	w.want(w.judge(answers, probe), map[string]string{
		"web": "healthy", "data": "healthy", "check answers": "healthy", "check component/web": "healthy",
	})

	// The component is gone, and so is what was said of it.
	w.want(w.judge(answers), map[string]string{"web": "healthy", "data": "healthy", "check answers": "healthy"})
}

// A look that found nothing wrong, and objects of which nobody can tell, is unknown; what is
// wrong is worse.
func TestProbeOfWhatNobodyKnows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	probe := jobspec.Probe{Kind: jobspec.KindHelmChart, Resource: jobspec.Resource{ID: w.chart, Kind: "component", Name: "web"}}
	finds := func(state, findings string) {
		w.report("component/web", state)
		w.exec(`update action_runs set outputs = $1 where scheduled_at = $2`, findings, w.clock)
	}
	finds("succeeded", `{"findings": [{"object": "Basket shop/a", "unknown": true}]}`)
	w.want(w.judge(&appconfig.App{}, probe), map[string]string{"web": "unknown", "data": "unknown", "check component/web": "unknown"})
	finds("succeeded", `{}`)
	w.want(w.judge(&appconfig.App{}, probe), map[string]string{"web": "healthy", "data": "unknown", "check component/web": "healthy"})
	for range 2 {
		finds("failed", `{"findings": [{"object": "Deployment shop/web"}, {"object": "Basket shop/a", "unknown": true}]}`)
	}
	w.want(w.judge(&appconfig.App{}, probe), map[string]string{"web": "unhealthy", "data": "unknown", "check component/web": "unhealthy"})
}

// The same of a probe that an app writes and that could not look. Outputs of another action say
// nothing.
func TestAppProbeOfWhatNobodyKnows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := &appconfig.App{Actions: []appconfig.Action{
		{Name: "probe.web.ready", Labels: map[string]string{"type": "health-check"}}, {Name: "look", Labels: map[string]string{"type": "health-check"}},
	}}
	for _, name := range []string{"probe.web.ready", "look"} {
		w.report(name, "succeeded")
		w.exec(`update action_runs set outputs = $1 where scheduled_at = $2`, `{"findings": [{"object": "action probe.web.ready", "condition": "nobody can tell", "unknown": true}]}`, w.clock)
	}
	got := w.judge(app)
	w.want(map[string]string{"ready": got["check probe.web.ready"], "look": got["check look"]}, map[string]string{"ready": "unknown", "look": "healthy"})
}

// A probe that an app writes is about its component, as one of objects is; where a component
// has several, the worst counts.
func TestAppProbeJudgesItsComponent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := &appconfig.App{
		Components: []appconfig.Component{{Name: "web", Health: &appconfig.ComponentHealth{Probes: []map[string]string{
			{"type": "http", "name": "ready", "target": "http://web.internal/ready"}, {"type": "tcp", "name": "open", "target": "web.internal:80"},
		}}}},
		Actions: []appconfig.Action{{Name: "answers", Labels: map[string]string{"type": "health-check"}}},
	}
	app.Actions = append(app.Actions, app.Components[0].ProbeActions()...)
	look := func(ready, open, answers string) map[string]string {
		for range 3 {
			w.report("probe.web.ready", ready)
			w.report("probe.web.open", open)
			w.report("answers", answers)
		}
		got := w.judge(app)
		return map[string]string{"web": got["web"], "data": got["data"]}
	}
	w.want(look("succeeded", "succeeded", "succeeded"), map[string]string{"web": "healthy", "data": "healthy"})
	w.want(look("failed", "succeeded", "succeeded"), map[string]string{"web": "unhealthy", "data": "healthy"})
	w.want(look("succeeded", "succeeded", "failed"), map[string]string{"web": "healthy", "data": "unhealthy"})

	// With one of objects too.
	probe := jobspec.Probe{Kind: jobspec.KindHelmChart, Resource: jobspec.Resource{ID: w.chart, Kind: "component", Name: "web"}}
	w.report("component/web", "succeeded")
	if got := w.judge(app, probe); got["web"] != "healthy" {
		t.Errorf("web is %s", got["web"])
	}
	w.report("probe.web.open", "failed")
	w.report("probe.web.open", "failed")
	if got := w.judge(app, probe); got["web"] != "unhealthy" {
		t.Errorf("web is %s, with healthy objects and a port that is closed", got["web"])
	}
}

func TestSilentProbeIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	probe := jobspec.Probe{Kind: jobspec.KindHelmChart, Resource: jobspec.Resource{ID: w.chart, Kind: "component", Name: "web"}}
	w.report("component/web", "succeeded")
	w.want(w.judge(&appconfig.App{}, probe), map[string]string{"web": "healthy", "data": "unknown", "check component/web": "healthy"})

	w.clock = w.clock.Add(10 * time.Minute)
	w.want(w.judge(&appconfig.App{}, probe), map[string]string{"web": "unknown", "data": "unknown", "check component/web": "unknown"})
}

// A health check of the app says how many runs in a row change its verdict.
func TestCheckIsJudgedByItsOwnThresholds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	checked := func(unhealthyAfter, healthyAfter int) *appconfig.App {
		return &appconfig.App{Actions: []appconfig.Action{{Name: "answers", Berth: &appconfig.ActionExtension{
			HealthCheck: &appconfig.HealthCheck{UnhealthyAfter: unhealthyAfter, HealthyAfter: healthyAfter},
		}}}}
	}
	w.report("answers", "succeeded")
	w.want(w.judge(checked(2, 2)), map[string]string{"web": "healthy", "data": "healthy", "check answers": "healthy"})
	w.report("answers", "failed")
	w.want(w.judge(checked(2, 2)), map[string]string{"web": "healthy", "data": "healthy", "check answers": "healthy"})
	w.want(w.judge(checked(1, 2)), map[string]string{"web": "unhealthy", "data": "unhealthy", "check answers": "unhealthy"})
	w.report("answers", "succeeded")
	w.want(w.judge(checked(1, 2)), map[string]string{"web": "unhealthy", "data": "unhealthy", "check answers": "unhealthy"})
	w.want(w.judge(checked(1, 1)), map[string]string{"web": "healthy", "data": "healthy", "check answers": "healthy"})
}

// A component says itself when its probe changes its verdict.
func TestProbeIsJudgedByItsOwnThresholds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	probe := jobspec.Probe{Resource: jobspec.Resource{ID: w.chart, Kind: "component", Name: "web"}}
	probed := func(unhealthyAfter, healthyAfter int) *appconfig.App {
		return &appconfig.App{Components: []appconfig.Component{{Name: "web", Berth: &appconfig.BlockExtension{
			HealthCheck: &appconfig.HealthCheck{UnhealthyAfter: unhealthyAfter, HealthyAfter: healthyAfter},
		}}}}
	}
	judged := func(app *appconfig.App, want string) {
		t.Helper()
		if got := w.judge(app, probe)["web"]; got != want {
			t.Errorf("web is %s, want %s", got, want)
		}
	}
	w.report("component/web", "succeeded")
	judged(probed(3, 2), "healthy")
	w.report("component/web", "failed")
	w.report("component/web", "failed")
	judged(probed(3, 2), "healthy")
	judged(&appconfig.App{}, "unhealthy")
	w.report("component/web", "succeeded")
	judged(probed(3, 2), "unhealthy")
	judged(&appconfig.App{}, "healthy")
}
