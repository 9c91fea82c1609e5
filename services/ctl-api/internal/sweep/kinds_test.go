package sweep_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/sweep"
	"github.com/berth-dev/berth/services/internal/metrictest"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// moving records what it is asked to move, and does it in the way of its kind.
type moving struct {
	did *[]string
	do  func(id string)
}

func (m moving) note(id string) error {
	*m.did = append(*m.did, id)
	m.do(id)
	return nil
}

type office struct{ moving }

func (o office) Advance(_ context.Context, _, bulkID string) error { return o.note(bulkID) }

type tender struct{ moving }

func (t tender) Advance(_ context.Context, installID string) error { return t.note(installID) }

// A bulk operation whose job was given up, and settings that nobody signs again, are
// moved and counted; not while somebody is about to, and not once they are done.
func TestWhatElseIsSwept(t *testing.T) {
	t.Parallel()
	metrictest.Start()
	pg := pgtest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pg.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`insert into orgs (org_id, name) values ('org_1', 'vendor')`)
	exec(`insert into apps (id, org_id, name) values ('app_1', 'org_1', 'shop')`)
	exec(`insert into customers (id, org_id, name) values ('cus_1', 'org_1', 'acme')`)
	exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by) values ('ins_1', 'org_1', 'cus_1', 'app_1', 'acme', 'local', 'ada')`)
	exec(`insert into runners (id, org_id, install_id, kind, name, state, seal_recipient) values ('rnr_1', 'org_1', 'ins_1', 'install', 'acme', 'active', 'age1')`)
	exec(`insert into bulk_operations (id, org_id, operation, request, version, created_by) values ('blk_1', 'org_1', 'deploy', '{}', 'v', 'ada'), ('blk_2', 'org_1', 'deploy', '{}', 'v', 'ada')`)
	exec(`update bulk_operations set finished_at = now() where id = 'blk_2'`)
	settings := func(version int, valid time.Duration) {
		t.Helper()
		exec(`insert into settings_versions (org_id, install_id, version, digest, envelope, expires_at) values ('org_1', 'ins_1', $1::int, 'd' || $1::int, '{}', now() + $2::interval)`, version, valid.String())
	}
	job := func(kind, args, state string) {
		t.Helper()
		exec(`delete from river_ctl.river_job`)
		exec(`insert into river_ctl.river_job (kind, max_attempts, args, state, scheduled_at, attempted_at, finalized_at)
			values ($1, 25, $2::jsonb, $3::river_ctl.river_job_state, now() + interval '1 hour', now(), case when $3 in ('completed', 'discarded') then now() end)`, kind, args, state)
	}
	var bulks, installs []string
	st := database.New(pg.AsRole(store.RoleCtl))
	version, signs := 1, false
	sweeper := sweep.New(slog.New(slog.DiscardHandler),
		sweep.Bulks(st, office{moving{&bulks, func(id string) { exec(`update bulk_operations set finished_at = now() where id = $1`, id) }}}),
		sweep.Installs(st, tender{moving{&installs, func(string) {
			if signs {
				version++
				settings(version, 7*24*time.Hour)
			}
		}}}))
	round := func(when string, want int) {
		t.Helper()
		if got, err := sweeper.Round(t.Context()); err != nil || got != want {
			t.Errorf("%s, the sweep moved %d (%v), want %d", when, got, err, want)
		}
	}
	settings(version, 7*24*time.Hour)
	for _, state := range []string{"available", "running", "retryable"} {
		job("bulk_advance", `{"org_id": "org_1", "bulk_id": "blk_1"}`, state)
		round("while the job of the operation is "+state, 0)
	}
	job("bulk_advance", `{"org_id": "org_1", "bulk_id": "blk_1"}`, "discarded")
	round("once it is given up", 1)
	round("once the operation is finished", 0)
	if len(bulks) != 1 || bulks[0] != "blk_1" {
		t.Errorf("operations moved: %v, want blk_1 once", bulks)
	}
	version++
	settings(version, 3*24*time.Hour) // half of a week is over
	job("install_due", `{"install_id": "ins_1"}`, "available")
	round("while the wake-up of the install is there", 0)
	job("install_due", `{"install_id": "ins_1"}`, "scheduled")
	round("while nobody can sign", 0)
	signs = true
	round("while its wake-up is for later", 1)
	round("once they are signed", 0)
	for what, do := range map[string]string{"bulk": "advance", "install": "sign_settings"} {
		if got := metrictest.Value(t, "sweep.moved", attribute.String("what", what), attribute.String("do", do)); got != 1 {
			t.Errorf("%s: the metric counts %v, want 1", what, got)
		}
	}
	if len(installs) != 2 {
		t.Errorf("installs looked after: %v, want twice", installs)
	}
}

// An alert whose wake-up was lost, and a silent runner that no alert speaks of, have their
// install looked at.
func TestAlertsAreSwept(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pg.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`insert into orgs (org_id, name) values ('org_1', 'vendor')`)
	exec(`insert into apps (id, org_id, name) values ('app_1', 'org_1', 'shop')`)
	exec(`insert into customers (id, org_id, name) values ('cus_1', 'org_1', 'acme')`)
	exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, state, created_by) values ('ins_1', 'org_1', 'cus_1', 'app_1', 'acme', 'local', 'live', 'ada'),
		('ins_2', 'org_1', 'cus_1', 'app_1', 'globex', 'local', 'live', 'ada')`)
	exec(`insert into runners (id, org_id, install_id, kind, name, state, last_seen_at) values ('rnr_0', 'org_1', 'ins_2', 'install', 'old', 'revoked', now() - interval '1 day'),
		('rnr_2', 'org_1', 'ins_2', 'install', 'globex', 'active', now())`)
	alert := func(id, install, kind string) {
		exec(`insert into alerts (id, org_id, install_id, kind, subject, state, text, since, hold, hold_until, look_at) values ($1, 'org_1', $2, $3, 'x', 'held', 'x', now(), 'too_early', now(), now() - interval '1 hour')`, id, install, kind)
	}
	var looked []string
	does := func() {}
	sweeper := sweep.New(slog.New(slog.DiscardHandler), sweep.Alerts(database.New(pg.AsRole(store.RoleCtl)), tender{moving{&looked, func(string) { does() }}}))
	round := func(when string, want int) {
		t.Helper()
		if got, err := sweeper.Round(t.Context()); err != nil || got != want {
			t.Errorf("%s, the sweep moved %d (%v), want %d", when, got, err, want)
		}
	}
	round("while nothing is due", 0)
	alert("alt_1", "ins_1", "unhealthy")
	exec(`insert into river_ctl.river_job (kind, max_attempts, args, state) values ('install_due', 25, '{"install_id": "ins_1"}', 'available')`)
	round("while its wake-up is there", 0)
	exec(`delete from river_ctl.river_job`)
	round("while a look changes nothing", 0)
	does = func() { exec(`delete from alerts`) }
	round("once a look does", 1)
	exec(`update runners set last_seen_at = now() - interval '9 minutes' where id = 'rnr_2'`)
	round("while the runner is silent for a while", 0)
	exec(`update runners set last_seen_at = now() - interval '1 hour'`)
	does = func() {
		alert("alt_2", "ins_2", "runner_silent")
		exec(`update alerts set look_at = now() + interval '1 hour', hold_until = now() + interval '1 hour'`)
	}
	round("once nothing was heard of it for long", 1)
	round("when an alert says so", 0)
	if got := strings.Join(looked, " "); got != "ins_1 ins_1 ins_2" {
		t.Errorf("looked at %s", got)
	}
}
