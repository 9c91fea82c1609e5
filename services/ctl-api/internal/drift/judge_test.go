package drift_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/drift"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// rig is an install with one component that is live.
type rig struct {
	t                      *testing.T
	pg                     *pgtest.DB
	ctl                    *database.Store
	org, install, resource string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pg := pgtest.New(t)
	r := &rig{t: t, pg: pg, ctl: database.New(pg.AsRole(store.RoleCtl)), org: id.New(id.Org), install: id.New(id.Install), resource: id.New(id.Resource)}
	app, customer := id.New(id.App), id.New(id.Customer)
	r.exec(`insert into orgs (org_id, name) values ($1, 'vendor')`, r.org)
	r.exec(`insert into apps (id, org_id, name) values ($1, $2, 'hello')`, app, r.org)
	r.exec(`insert into customers (id, org_id, name) values ($1, $2, 'acme')`, customer, r.org)
	r.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by) values ($1, $2, $3, $4, 'acme', 'local', 'test')`,
		r.install, r.org, customer, app)
	r.exec(`insert into resources (id, org_id, install_id, kind, name, type, state, live_change_id) values ($1, $2, $3, 'component', 'web', 'helm_chart', 'live', 'chg_1')`,
		r.resource, r.org, r.install)
	return r
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pg.Admin().Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

// look is one that a runner reported; digest "" for a clean one.
func (r *rig) look(hour int, change, digest string) {
	r.t.Helper()
	d := jobspec.Drift{Change: change, Digest: digest, Objects: []jobspec.DriftObject{{Address: "ConfigMap a"}}}
	if digest != "" {
		d.Class = "human_edit"
	}
	report, err := json.Marshal(d)
	if err != nil {
		r.t.Fatal(err)
	}
	at := start.Add(time.Duration(hour) * time.Hour)
	r.exec(`insert into drift_looks (org_id, install_id, resource_id, scheduled_at, change_id, run_id, looked_at, report) values ($1, $2, $3, $4, $5, 'arn_1', $4, $6)`,
		r.org, r.install, r.resource, at, change, report)
}

func (r *rig) failed(hour int, change string) {
	r.t.Helper()
	r.exec(`insert into drift_looks (org_id, install_id, resource_id, scheduled_at, change_id, run_id, looked_at, error) values ($1, $2, $3, $4, $5, 'arn_1', $4, 'no answer')`,
		r.org, r.install, r.resource, start.Add(time.Duration(hour)*time.Hour), change)
}

// judge judges twice, as after a crash, and tells how things stand.
func (r *rig) judge() string {
	r.t.Helper()
	for range 2 {
		err := r.ctl.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
			resources, err := tx.ResourcesOfInstall(ctx, r.install)
			if err != nil {
				return err
			}
			var surveys []releaseview.Survey
			for _, res := range resources {
				if res.State == "live" {
					surveys = append(surveys, releaseview.Survey{Resource: res, Look: &jobspec.Scheduled{Drift: &jobspec.DriftLook{Change: *res.LiveChangeID}}})
				}
			}
			return drift.Judge(ctx, tx, drift.Judged{Install: ctldb.Install{ID: r.install}, Surveys: surveys, Now: start.Add(100 * time.Hour)})
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	var text string
	err := r.pg.Admin().QueryRow(r.t.Context(), `select r.drift || coalesce((select string_agg(' ' || e.change_id || ' ' || e.digest || ' ' || coalesce(e.closed_by, 'open'), ',' order by e.opened_at, e.id)
		from drift_episodes e where e.resource_id = r.id), '') from resources r where r.id = $1`, r.resource).Scan(&text)
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

func TestJudge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := func(want string) {
		t.Helper()
		if got := r.judge(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want("unknown")
	r.look(0, "chg_1", "")
	want("none")
	r.look(1, "chg_1", "one")
	want("none")
	r.failed(2, "chg_1") // says nothing, and is no break
	want("none")
	r.look(3, "chg_1", "one")
	want("drifted chg_1 one open")
	r.look(4, "chg_1", "two")
	want("drifted chg_1 two open")
	r.look(5, "chg_1", "")
	want("drifted chg_1 two open")
	r.look(6, "chg_1", "")
	want("none chg_1 two clean")
	r.look(7, "chg_1", "three")
	r.look(8, "chg_1", "three")
	want("drifted chg_1 two clean, chg_1 three open")

	// A deploy ends it; looks of before count no more.
	r.exec(`update resources set state = 'changing' where id = $1`, r.resource)
	want("drifted chg_1 two clean, chg_1 three open")
	r.exec(`update resources set state = 'live', live_change_id = 'chg_2', drift = 'none' where id = $1`, r.resource)
	want("none chg_1 two clean, chg_1 three deployed")

	// Somebody asked, so one look is enough.
	r.exec(`update resources set drift_asked_at = $2 where id = $1`, r.resource, start.Add(9*time.Hour))
	r.look(9, "chg_2", "four")
	want("drifted chg_1 two clean, chg_1 three deployed, chg_2 four open")
	r.exec(`update resources set state = 'absent' where id = $1`, r.resource)
	want("unknown chg_1 two clean, chg_1 three deployed, chg_2 four not_looked_at")

	var events []string
	rows, err := r.pg.Admin().Query(t.Context(), `select body ->> 'from' || '-' || (body ->> 'to') from event_outbox where kind = 'drift.changed' order by n`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		events = append(events, text)
	}
	if got := fmt.Sprint(events); got != "[unknown-none none-drifted drifted-none none-drifted drifted-none none-drifted drifted-unknown]" {
		t.Errorf("events %s", got)
	}
}

// However long a runner looks, only the newest looks and episodes are kept, and one list of objects.
func TestJudgeKeepsLittle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for hour := range 60 {
		r.look(hour, "chg_1", "")
	}
	for i := range 130 {
		r.exec(`insert into drift_episodes (id, org_id, install_id, resource_id, change_id, class, digest, opened_at, seen_at, closed_at, closed_by)
			values ($1, $2, $3, $4, 'chg_0', 'real', 'x', $5, $5, $5, 'clean')`, id.New(id.Drift), r.org, r.install, r.resource, start.Add(time.Duration(i-200)*time.Hour))
	}
	r.look(60, "chg_1", "one")
	r.look(61, "chg_1", "one")
	r.judge()
	r.exec(`update resources set live_change_id = 'chg_2' where id = $1`, r.resource)
	r.judge()
	var looks, lists, episodes int
	err := r.pg.Admin().QueryRow(t.Context(), `select (select count(*) from drift_looks), (select count(*) from drift_looks where report ? 'objects'), (select count(*) from drift_episodes)`).
		Scan(&looks, &lists, &episodes)
	if err != nil {
		t.Fatal(err)
	}
	if looks != 20 || lists != 1 || episodes != 100 {
		t.Errorf("%d looks, %d lists of objects, %d episodes", looks, lists, episodes)
	}
}
