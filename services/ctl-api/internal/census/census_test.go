package census_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/berth-dev/berth/services/ctl-api/internal/census"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/metrictest"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// Two orgs are counted together; what is gone does not count.
func TestCensus(t *testing.T) {
	t.Parallel()
	metrictest.Start()
	db := pgtest.New(t)
	for _, sql := range []string{
		`insert into orgs (org_id, name) select 'org_' || o, 'o' || o from generate_series(1, 2) o`,
		`insert into apps (id, org_id, name) select 'app_' || o, 'org_' || o, 'a' from generate_series(1, 2) o`,
		`insert into customers (id, org_id, name) select 'cus_' || o, 'org_' || o, 'c' from generate_series(1, 2) o`,
		`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by, state, forgotten_at)
		 select 'ins_' || i, 'org_' || o, 'cus_' || o, 'app_' || o, 'i' || i, 'local', 'test', state, case when state = 'forgotten' then now() end
		 from (values (1, 1, 'live'), (2, 2, 'live'), (3, 1, 'new'), (4, 2, 'forgotten')) x(i, o, state)`,
		`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by, state, rehearsal)
		 values ('ins_5', 'org_1', 'cus_1', 'app_1', 'i5', 'local', 'test', 'live', '{}')`,
		`insert into resources (id, org_id, install_id, kind, name, state, health)
		 values ('res_5', 'org_1', 'ins_5', 'component', 'r', 'live', 'unhealthy')`,
		`insert into resources (id, org_id, install_id, kind, name, state, health)
		 select 'res_' || i, 'org_' || o, 'ins_' || i, kind, 'r', state, health
		 from (values (1, 1, 'component', 'live', 'unhealthy'), (2, 2, 'component', 'live', 'healthy'), (3, 1, 'component', 'absent', 'unhealthy')) x(i, o, kind, state, health)`,
		`insert into runners (id, org_id, install_id, kind, name, state, last_seen_at)
		 select 'rnr_' || i, 'org_' || o, ins, kind, 'r', state, now() - age * interval '1 minute'
		 from (values (1, 1, 'ins_1', 'install', 'active', 1), (2, 2, 'ins_2', 'install', 'active', 3), (3, 1, 'ins_3', 'install', 'pending', null),
		              (4, 1, null, 'build', 'active', 1), (5, 2, null, 'build', 'revoked', 1)) x(i, o, ins, kind, state, age)`,
		`insert into runner_jobs (id, org_id, runner_id, kind, operation, spec, timeout_seconds, state, queued_at)
		 select 'job_' || i, 'org_1', 'rnr_1', 'k', 'plan', '{}', 1, state, now() - i * interval '1 minute'
		 from (values (1, 'queued'), (2, 'queued'), (3, 'leased'), (4, 'succeeded')) x(i, state)`,
		`insert into workflows (id, org_id, install_id, kind, state, number, inputs_version, created_by)
		 select 'wfl_' || i, 'org_1', 'ins_1', 'deploy', state, i, 1, 'test' from (values (1, 'running'), (2, 'succeeded')) x(i, state)`,
		`insert into alerts (id, org_id, install_id, kind, subject, state, text, since, opened_at, tell_at, told_at, closed_at, closed_because)
		 select 'alt_' || i, 'org_' || o, 'ins_' || i, kind, 'x', state, 'x', now(), now(), now(), now(), case state when 'closed' then now() end, case state when 'closed' then 'gone' end
		 from (values (1, 1, 'unhealthy', 'open'), (2, 2, 'unhealthy', 'open'), (3, 1, 'unhealthy', 'closed'), (4, 2, 'drift', 'open')) x(i, o, kind, state)`,
	} {
		if _, err := db.Admin().Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	stop := census.Observe(database.New(db.AsRole(store.RoleCtl)))
	in := func(state string) attribute.KeyValue { return attribute.String("state", state) }
	of := func(kind string) attribute.KeyValue { return attribute.String("kind", kind) }
	for _, c := range []struct {
		name  string
		attrs []attribute.KeyValue
		want  float64
	}{
		{"install.count", nil, 4},
		{"install.count", []attribute.KeyValue{in("rehearsed")}, 1},
		{"resource.count", []attribute.KeyValue{of("component"), in("rehearsed")}, 1},
		{"install.count", []attribute.KeyValue{in("live")}, 2},
		{"resource.count", []attribute.KeyValue{of("component"), in("live")}, 2},
		{"resource.unhealthy", []attribute.KeyValue{of("component")}, 1},
		{"runner.count", []attribute.KeyValue{of("install"), in("online")}, 1},
		{"runner.count", []attribute.KeyValue{of("install"), in("offline")}, 1},
		{"runner.count", []attribute.KeyValue{of("install"), in("pending")}, 1},
		{"runner.count", []attribute.KeyValue{of("build")}, 1},
		{"job.open", []attribute.KeyValue{in("queued")}, 2},
		{"job.open", nil, 3},
		{"workflow.open", nil, 1},
		{"change.proposed", nil, 0},
		{"alert.open", nil, 3},
		{"alert.open", []attribute.KeyValue{of("unhealthy")}, 2},
		{"alert.open", []attribute.KeyValue{of("runner_silent")}, 0},
	} {
		if got := metrictest.Value(t, c.name, c.attrs...); got != c.want {
			t.Errorf("%s of %v is %g, want %g", c.name, c.attrs, got, c.want)
		}
	}
	if age := metrictest.Value(t, "job.oldest"); age < 120 || age > 180 {
		t.Errorf("the oldest queued job has waited %g s, want about 120", age)
	}
	stop()
	if got := metrictest.Value(t, "install.count"); got != 0 {
		t.Errorf("after the end there are still %g installs", got)
	}
}

// A state that the tables know has a series, also when nothing is in it.
func TestEachStateHasASeries(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for table, c := range map[string]struct{ name, gone string }{
		"installs":  {"install.count", "forgotten"},
		"resources": {"resource.count", ""},
	} {
		var known, counted []string
		var check string
		if err := db.Admin().QueryRow(t.Context(), `select pg_get_constraintdef(oid) from pg_constraint where conname = $1`, table+"_state_check").Scan(&check); err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`'(\w+)'::text`).FindAllStringSubmatch(check, -1) {
			if m[1] != c.gone {
				known = append(known, m[1])
			}
		}
		known = append(known, "rehearsed") // no state of the table: it is live in a rehearsal
		const sql = `select coalesce(array_agg(distinct state), '{}') from berth.fleet_counts($1) where name = $2`
		if err := db.AsRole(store.RoleCtl).Pool().QueryRow(t.Context(), sql, why.OfflineAfter.Seconds(), c.name).Scan(&counted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(known)), slices.Sorted(slices.Values(counted))); diff != "" || len(known) == 0 {
			t.Errorf("states of %s (-in the table +counted):\n%s", table, diff)
		}
	}
}
