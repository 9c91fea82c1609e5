package stream_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

func sequencer(db *pgtest.DB) (*stream.Sequencer, *store.Listener) {
	st := database.New(db.AsRole(store.RoleCtl))
	listener := st.NewListener(model.ChannelOutbox, model.ChannelEvents)
	return stream.NewSequencer(stream.Sequencer{Store: st, Listener: listener, KeepDays: 30, Log: slog.New(slog.DiscardHandler)}), listener
}

// rowsAlone drops what rows need of each other: that is not what these tests are about.
const rowsAlone = `do $$ declare c record; begin
	        for c in select conrelid::regclass as t, conname from pg_constraint
	                 where connamespace = 'berth'::regnamespace and contype in ('f', 'c') and conparentid = 0 and conname not like 'event%' loop
	          execute format('alter table %s drop constraint if exists %I', c.t, c.conname);
	        end loop;
	      end $$`

// Every kind of the list is written by a trigger, and triggers write no other
// kind: each table's rows go through every state that the schema allows.
func TestEveryKindIsEmittedAndNoOther(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	admin := db.Admin()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`insert into orgs (org_id, name) values ('org1', 'org')`)
	statesOf := map[string][]string{}
	for _, table := range []string{"workflows", "steps", "changes", "builds", "installs", "resources", "runners", "action_runs"} {
		statesOf[table] = statesIn(t, admin, table)
	}
	exec(rowsAlone)
	exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by) values ('ins1', 'org1', 'cus1', 'app1', 'acme', 'local', 'ada')`)
	exec(`insert into apps (id, org_id, name) values ('app1', 'org1', 'shop')`)
	exec(`update apps set variables_version = 1`)
	exec(`insert into configs (id, org_id, app_id, number, digest, bundle_digest, body, created_by) values ('cfg_1', 'org1', 'app1', 1, 'd', 'd', '{}', 'ada')`)
	exec(`insert into releases (id, org_id, app_id, number, config_id, made_by, digest) values ('rel_1', 'org1', 'app1', 1, 'cfg_1', 'sync', 'd')`)
	exec(`insert into release_statements (org_id, release_id, digest, key_id, envelope, expires_at, added_by) values ('org1', 'rel_1', 'd', 'ed25519:1', '{}', now(), 'ci')`)
	exec(`insert into release_revocations (org_id, release_id, digest, key_id, reason, envelope, issued_at, added_by) values ('org1', 'rel_1', 'd', 'ed25519:1', 'it loses data', '{}', now(), 'ci')`)
	exec(`insert into install_inputs (org_id, install_id, version, values, created_by) values ('org1', 'ins1', 1, '{"size": 1, "zone": "a"}', 'ada'), ('org1', 'ins1', 2, '{"size": 2, "zone": "a"}', 'ada')`)
	exec(`update installs set inputs_version = 1 where id = 'ins1'`)
	exec(`update installs set inputs_version = 2 where id = 'ins1'`)
	exec(`insert into workflows (id, org_id, install_id, number, kind, inputs_version, created_by) values ('wfl_1', 'org1', 'ins1', 1, 'deploy', 1, 'ada')`)
	exec(`insert into resources (id, org_id, install_id, kind, name) values ('res_1', 'org1', 'ins1', 'component', 'api')`)
	exec(`insert into steps (id, org_id, workflow_id, install_id, idx, name, kind, reason, resource_id) values ('stp_1', 'org1', 'wfl_1', 'ins1', 1, 'deploy api', 'deploy', 'x', 'res_1')`)
	exec(`insert into changes (id, org_id, install_id, workflow_id, step_id, kind, inputs_version, state_version, resource_id) values ('chg_1', 'org1', 'ins1', 'wfl_1', 'stp_1', 'deploy', 1, 1, 'res_1')`)
	exec(`insert into decisions (id, org_id, change_id, answer, effect_digest, actor) values ('dec_1', 'org1', 'chg_1', 'approve', 'd', 'bob')`)
	exec(`insert into builds (id, org_id, app_id, component_id, revision_id, build_digest, source, requested_by) values ('bld_1', 'org1', 'app1', 'cmp_1', 'rev_1', 'd', '{}', 'ada')`)
	exec(`insert into runners (id, org_id, install_id, kind, name) values ('rnr_1', 'org1', 'ins1', 'install', 'acme')`)
	exec(`insert into action_runs (id, org_id, install_id, action, trigger, key, created_by) values ('arn_1', 'org1', 'ins1', 'backup', 'manual', 'k', 'ada'), ('arn_2', 'org1', 'ins1', 'component/api', 'cron', 'p', 'x')`)
	for table, states := range statesOf {
		first := states[0]
		for _, state := range append(states[1:], first) {
			if table == "installs" && state == "forgotten" {
				exec(`update installs set state = 'forgotten', forgotten_at = now()`)
				continue
			}
			exec(fmt.Sprintf(`update %s set state = $1`, table), state)
		}
	}
	exec(`update installs set paused_at = now(), paused_by = 'ada', pause_reason = 'x'`)
	exec(`update installs set paused_at = null, paused_by = null, pause_reason = null, resumed_by = 'ada'`)
	exec(`insert into approval_policies (about, org_id, install_id, approvals, updated_by) values ('ins1', 'org1', 'ins1', 2, 'ada')`)
	exec(`insert into freezes (id, org_id, app_id, reason, starts_at, ends_at, created_by) values ('frz_1', 'org1', 'app1', 'x', now(), now() + interval '1 hour', 'ada')`)
	exec(`insert into freeze_overrides (org_id, workflow_id, freeze_id, install_id, until, reason, actor) values ('org1', 'wfl_1', 'frz_1', 'ins1', now(), 'x', 'ada')`)
	exec(`update freezes set removed_at = now(), removed_by = 'ada'`)
	exec(`update installs set labels = '{"tier": "gold"}', name = 'acme-eu'`)
	exec(`update resources set health = 'unhealthy', drift = 'drifted'`)
	exec(`insert into checks (org_id, install_id, name) values ('org1', 'ins1', 'ping'), ('org1', 'ins1', 'component/api')`)
	exec(`update checks set verdict = 'unhealthy'`)
	exec(`update runners set state = 'active', switch = 'pause', last_seen_at = now()`)
	exec(`insert into alarms (id, org_id, runner_id, kind, subject) values ('alm_1', 'org1', 'rnr_1', 'late_result', 'job'), ('alm_2', 'org1', 'rnr_1', 'recipient_trusted', 'job')`)
	exec(`insert into install_secrets (org_id, install_id, name, version, present, digest, set_at) values ('org1', 'ins1', 'token', 1, true, 'd', now()), ('org1', 'ins1', 'unset', 0, false, '', null)`)
	exec(`update install_secrets set declared = true`) // a release says so: nothing happened
	exec(`update install_secrets set version = 2 where name = 'token'`)
	exec(`update install_secrets set present = false where name = 'token'`)
	exec(`insert into role_switches (org_id, install_id, id, role, name, enabled, switched_at, until, switched_by) values
	        ('org1', 'ins1', 'rsw_1', 'r', 'repair', true, now(), '2026-03-01T12:00Z', 'ada'), ('org1', 'ins1', 'rsw_2', 'r', 'repair', false, now(), null, 'berth-runner')`)
	exec(`update role_switches set handled_at = now()`) // nothing happened
	exec(`insert into consents (org_id, install_id, change_id, effect_digest, state, answered_by, until) values ('org1', 'ins1', 'chg_1', 'd', 'needed', '{ada}', now())`)
	exec(`update consents set still = 1`) // nothing happened
	exec(`update consents set state = 'given'`)
	exec(`update consents set state = 'denied'`)
	exec(`insert into policy_overrides (org_id, install_id, change_id, effect_digest, reason, actor, until) values ('org1', 'ins1', 'chg_1', 'd', 'x', 'ada', now())`)
	exec(`insert into remediations (id, org_id, install_id, check_name, action, seq, state, attempts, attempts_of, began_at, changed_at) values ('rmd_1', 'org1', 'ins1', 'ping', 'repair', 1, 'waiting', 0, 2, now(), now())`)
	exec(`update remediations set state = 'running', attempts = 1`)
	exec(`update remediations set attempts = 2`) // started before
	exec(`update remediations set state = 'helped'`)
	exec(`update remediations set state = 'needs_attention'`)
	exec(`update remediations set ended_at = now()`) // nothing happened
	exec(`insert into components (id, org_id, app_id, kind, name) values ('cmp_1', 'org1', 'app1', 'component', 'api')`)
	exec(`update resources set component_id = 'cmp_1', state = 'live'`)
	exec(`update components set tombstoned_at = now()`)
	exec(`insert into webhooks (id, org_id, name, url, secrets, position, created_by) values ('whk_1', 'org1', 'pager', 'u', '', 0, 'ada')`)
	exec(`insert into webhook_deliveries (id, org_id, webhook_id, event_id, event_kind, event_seq, cause, next_at) values
	        ('dlv_1', 'org1', 'whk_1', 'evt_1', 'workflow.failed', 1, 'event', now()), ('dlv_2', 'org1', 'whk_1', 'evt_2', 'webhook_delivery.dead', 2, 'event', now()),
	        ('dlv_3', 'org1', 'whk_1', 'evt_3', 'webhook.ping', null, 'test', now()), ('dlv_4', 'org1', 'whk_1', 'evt_4', 'workflow.failed', 4, 'event', now())`)
	exec(`update webhook_deliveries set state = 'dead', next_at = null, finished_at = now(), attempts = attempts + 1 where id <> 'dlv_4'`)
	exec(`update webhook_deliveries set state = 'dead', next_at = null, finished_at = now() where id = 'dlv_4'`) // its webhook was deleted
	exec(`insert into incidents (id, org_id, kind, cause, about, release_id, installs) values ('inc_1', 'org1', 'unhealthy', 'c', 'api', 'rel_1', 2)`)
	exec(`insert into alerts (id, org_id, install_id, kind, subject, state, text, since) values
	        ('alt_1', 'org1', 'ins1', 'unhealthy', 'api', 'open', 'api is unhealthy', now()), ('alt_2', 'org1', 'ins1', 'unhealthy', 'db', 'open', 'x', now()),
	        ('alt_3', 'org1', 'ins1', 'unhealthy', 'web', 'held', 'x', now())`) // nobody is told yet
	exec(`update alerts set told_at = now() where id = 'alt_1'`)
	exec(`update alerts set told_at = now(), incident_id = 'inc_1' where id = 'alt_2'`)
	exec(`update alerts set acknowledged_at = now(), acknowledged_by = 'ada', note = 'x' where id = 'alt_1'`)
	exec(`update alerts set told_at = told_at, acknowledged_at = acknowledged_at, relapses = 1`)               // nothing happened
	exec(`update alerts set closed_at = now(), closed_because = 'gone', state = 'closed' where id <> 'alt_2'`) // of alt_3 nobody knows
	exec(`update alerts set closed_at = now(), closed_because = 'recovered', state = 'closed' where id = 'alt_2'`)
	exec(`update incidents set closed_at = now()`)
	exec(`update alarms set acknowledged_at = now(), acknowledged_by = 'ada', acknowledgement = 'ok' where id = 'alm_1'`)
	exec(`select berth.note_presence(120)`)
	exec(`update runners set last_seen_at = now() - interval '3 minutes'`)
	exec(`select berth.note_presence(120)`)

	seq, _ := sequencer(db)
	if _, err := seq.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range event.All {
		want = append(want, string(d.Kind))
	}
	if !slices.IsSorted(want) {
		t.Error("the list of kinds is not sorted: event.Of would not find them")
	}
	if diff := cmp.Diff(want, column(t, admin, `select kind from events where kind not like 'incident_of_install.%' group by kind order by kind collate "C"`)); diff != "" {
		t.Errorf("kinds in the stream (-listed in pkg/event +emitted):\n%s", diff)
	}
	// Every field of a body is documented, and no text of a tool is one.
	for _, d := range event.All {
		for _, key := range column(t, admin, `select distinct jsonb_object_keys(body) from events where kind = $1`, string(d.Kind)) {
			if !slices.Contains(append([]string{"install", "app"}, d.Fields...), key) {
				t.Errorf("%s has a field %q that pkg/event does not list", d.Kind, key)
			}
		}
	}
	for field, want := range map[string]string{
		`select body->>'actor' from events where kind = 'change.approved'`:                                                                                                                   "bob",
		`select body->>'resource' from events where kind = 'health.changed'`:                                                                                                                 "api",
		`select body->>'changed' from events where kind = 'inputs.changed'`:                                                                                                                  `["size"]`,
		`select string_agg(body->>'version', ' ' order by seq) from events where kind = 'secret.set'`:                                                                                        "1 2",
		`select string_agg((body->>'role') || ' ' || (body->>'actor'), ', ' order by seq) from events where kind like 'role.%'`:                                                              "repair customer: ada, repair berth-runner",
		`select count(*)::text from events where kind = 'resource.orphaned' and body->>'from' = 'live'`:                                                                                      "1",
		`select string_agg((body->>'webhook') || ' ' || (body->>'delivery_id'), ',') from events where kind = 'webhook_delivery.dead'`:                                                       "pager dlv_1",
		`select app_id || customer_id from events where kind = 'step.failed'`:                                                                                                                "app1cus1",
		`select count(*)::text from events where body->>'action' like 'component/%'`:                                                                                                         "0",
		`select string_agg((body->>'alert_id') || ' ' || kind, ', ' order by seq) from events where kind like 'alert.%'`:                                                                     "alt_1 alert.opened, alt_2 alert.joined, alt_1 alert.acknowledged, alt_1 alert.closed, alt_2 alert.closed",
		`select string_agg(kind || ' ' || install_id || ' ' || (body->>'incident_id') || ' ' || (body ? 'installs'), ', ' order by seq) from events where kind like 'incident_of_install.%'`: "incident_of_install.opened ins1 inc_1 false, incident_of_install.closed ins1 inc_1 false",
		`select count(*)::text from event_outbox`:                                                                                                                                            "0",
		`select (max(seq) = count(*) and min(seq) = 1)::text from events`:                                                                                                                    "true",
		`select count(*)::text from events where kind = 'install.updated'`:                                                                                                                   "1",
		`select count(*)::text from events where kind like 'remediation.%'`:                                                                                                                  "3",
		`select count(*)::text from events where kind = 'check.changed'`:                                                                                                                     "1",
		`select count(*)::text from events where body->>'alarm_kind' = 'recipient_trusted'`:                                                                                                  "0",
	} {
		if got := column(t, admin, field); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}

func column(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) []string {
	t.Helper()
	rows, err := pool.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// statesIn reads the states of a table from its check.
func statesIn(t *testing.T, pool *pgxpool.Pool, table string) []string {
	t.Helper()
	defs := column(t, pool, `select pg_get_constraintdef(oid) from pg_constraint where conname = $1 and connamespace = 'berth'::regnamespace`, table+"_state_check")
	if len(defs) != 1 {
		t.Fatalf("table %s has %d checks of its state", table, len(defs))
	}
	var states []string
	for _, m := range regexp.MustCompile(`'([a-z_]+)'`).FindAllStringSubmatch(defs[0], -1) {
		states = append(states, m[1])
	}
	if len(states) < 3 {
		t.Fatalf("found only the states %v of %s", states, table)
	}
	return states
}
