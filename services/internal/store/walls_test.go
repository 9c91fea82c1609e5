package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// withoutOrg are the tables that may be without org_id: what is about the whole database.
var withoutOrg = []string{"schema_versions", "metric_export"}

// Every table is a tenant table, no matter who adds it.
func TestEveryTableIsBehindTheWall(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const policy = "(org_id = ( SELECT current_org() AS current_org))"
	type table struct {
		Name, Tenant, System string
		HasOrg, RLS, Forced  bool
	}
	for _, got := range collect[table](t, db.Admin(), `
		select c.relname as name,
		       exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped) as has_org,
		       c.relrowsecurity as rls, c.relforcerowsecurity as forced,
		       coalesce((select qual || ' ' || with_check from pg_policies p where p.schemaname = 'berth' and p.tablename = c.relname and p.policyname = 'tenant'
		                   and p.cmd = 'ALL' and p.permissive = 'PERMISSIVE' and p.roles = '{public}'), '') as tenant,
		       coalesce((select string_agg(policyname || ' ' || roles::text, ',' order by policyname) from pg_policies p
		                  where p.schemaname = 'berth' and p.tablename = c.relname and p.permissive = 'PERMISSIVE'), '') as system
		from pg_class c where c.relnamespace = 'berth'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		order by 1`) {
		if !got.HasOrg {
			if !slices.Contains(withoutOrg, got.Name) {
				t.Errorf("table %s has no org_id: give it one and call berth.tenant_table, or add it to withoutOrg with a reason", got.Name)
			}
			continue
		}
		want := got
		want.RLS, want.Forced, want.Tenant, want.System = true, true, policy+" "+policy, "system {berth_sys},tenant {public}"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("table %s (-want +got); call berth.tenant_table:\n%s", got.Name, diff)
		}
	}
}

// Partitions are read past the policies of their parent.
func TestNobodyReadsPartitionsDirectly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	granted := collect[string](t, db.Admin(), `
		select distinct table_name || ' to ' || grantee from information_schema.role_table_grants g
		join pg_class c on c.relname = g.table_name and c.relnamespace = 'berth'::regnamespace and c.relispartition
		where g.table_schema = 'berth' and grantee <> 'berth_owner'`)
	if len(granted) > 0 {
		t.Errorf("grants on partitions: %v", granted)
	}
}

// What a service may read at all, it reads empty until an org is set, and then
// only that org's.
func TestTenantTablesReadEmptyWithoutAnOrg(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	for _, org := range []string{"org_a", "org_b"} {
		execute(t, db.Admin(), `insert into orgs (org_id, name) values ($1, $2)`, org, org[4:])
		execute(t, db.Admin(), `insert into runners (id, org_id, kind, name) values ($1, $1, 'build', 'x')`, org)
	}
	inTheirOrg := map[store.Role]string{store.RoleCtl: "orgs", store.RoleRunner: "runners", store.RoleBuilder: "runners", store.RoleLog: "orgs"}
	for _, role := range []store.Role{store.RoleCtl, store.RoleRunner, store.RoleBuilder, store.RoleLog} {
		st := db.AsRole(role)
		for _, table := range collect[string](t, db.Admin(), `
			select c.relname from pg_class c
			where c.relnamespace = 'berth'::regnamespace and c.relkind in ('r', 'p') and has_any_column_privilege($1, c.oid, 'SELECT')
			  and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id')`, string(role)) {
			err := st.System(ctx, func(ctx context.Context, tx *store.Tx) error {
				return expectOrgs(ctx, tx.Raw(), table, nil)
			})
			if err != nil {
				t.Errorf("%s without an org: %v", role, err)
			}
		}
		err := st.Tx(ctx, "org_a", func(ctx context.Context, tx *store.Tx) error {
			return expectOrgs(ctx, tx.Raw(), inTheirOrg[role], []string{"org_a"})
		})
		if err != nil {
			t.Errorf("%s in org_a: %v", role, err)
		}
	}
	// Also writing into another org is refused, not only reading.
	err := db.AsRole(store.RoleCtl).Tx(ctx, "org_a", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Raw().Exec(ctx, `insert into customers (id, org_id, name) values ('cus_1', 'org_b', 'x')`)
		return err
	})
	wantCode(t, err, "42501", "insert into another org")
}

func expectOrgs(ctx context.Context, tx pgx.Tx, table string, want []string) error {
	rows, err := tx.Query(ctx, "select org_id from "+pgx.Identifier{"berth", table}.Sanitize())
	if err != nil {
		return err
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("orgs seen in %s: got %v, want %v", table, got, want)
	}
	return nil
}

func TestTheForbiddenIsForbidden(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const denied = "42501"
	tests := []struct {
		name string
		role store.Role
		sql  string
	}{
		{"ctl-api changes the schema", store.RoleCtl, `create table berth.mine (id int)`},
		{"ctl-api switches the wall off", store.RoleCtl, `alter table installs disable row level security`},
		{"ctl-api becomes the owner", store.RoleCtl, `set role berth_owner`},
		{"ctl-api becomes berth_sys", store.RoleCtl, `set role berth_sys`},
		{"ctl-api empties a table", store.RoleCtl, `truncate installs cascade`},
		{"ctl-api deletes a chain", store.RoleCtl, `delete from chain_records`},
		{"ctl-api rewrites a chain", store.RoleCtl, `update chain_records set body = ''`},
		{"ctl-api reads builder's jobs", store.RoleCtl, `select args from river_builder.river_job`},
		{"runner-api reads ctl-api's jobs", store.RoleRunner, `select args from river_ctl.river_job`},
		{"runner-api writes jobs of any kind", store.RoleRunner, `insert into river_ctl.river_job (kind, max_attempts, args) values ('x', 1, '{}')`},
		{"runner-api reads private keys", store.RoleRunner, `select private_sealed from keys`},
		{"runner-api reads user tokens", store.RoleRunner, `select hash from tokens`},
		{"runner-api reads variables of apps", store.RoleRunner, `select sealed from app_variables`},
		{"builder reads variables of apps", store.RoleBuilder, `select sealed from app_variables`},
		{"runner-api decides changes", store.RoleRunner, `update changes set state = 'approved'`},
		{"runner-api makes grants", store.RoleRunner, `insert into grants (id, org_id, account_id, role) values ('x', 'x', 'x', 'admin')`},
		{"builder decides changes", store.RoleBuilder, `update changes set state = 'approved'`},
		{"builder reads private keys", store.RoleBuilder, `select private_sealed from keys`},
		{"builder makes tokens", store.RoleBuilder, `insert into tokens (id, org_id, account_id, name, prefix, hash) values ('x', 'x', 'x', 'x', 'x', 'x')`},
		{"log-ingest reads state", store.RoleLog, `select * from tf_states`},
		{"log-ingest wakes a workflow", store.RoleLog, `select berth.wake_workflow('x')`},
		{"log-ingest makes tokens", store.RoleLog, `update tokens set hash = 'x'`},
		{"log-ingest drops a partition by hand", store.RoleLog, `drop table log_chunks`},
		{"migrations are owned by the owner alone", store.RoleMigrate, `create table berth.mine (id int)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := db.AsRole(tt.role).Pool().Exec(t.Context(), tt.sql)
			wantCode(t, err, denied, tt.sql)
		})
	}
}

func TestRunnerAPIRetiresKeysOfRunnersOnly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const org = "org_1"
	execute(t, db.Admin(), `insert into orgs (org_id, name) values ($1, 'acme')`, org)
	for _, purpose := range []string{"dispatch", "customer", "runner"} {
		execute(t, db.Admin(), `insert into keys (id, org_id, purpose, algorithm, key_id, public_key) values ($1, $2, $1, 'ed25519', $1, '')`, purpose, org)
	}
	retire := func(purpose string) error {
		return db.AsRole(store.RoleRunner).Tx(t.Context(), org, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Raw().Exec(ctx, `update keys set retired_at = now() where purpose = $1`, purpose)
			return err
		})
	}
	for purpose, allowed := range map[string]bool{"dispatch": false, "customer": false, "runner": true} {
		if err := retire(purpose); (err == nil) != allowed {
			t.Errorf("retire a %s key: %v, want allowed %t", purpose, err, allowed)
		}
	}
}

// A SECURITY DEFINER function that lets its caller choose the search path can
// be made to do anything.
func TestSystemFunctionsAreSafe(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	type function struct {
		Name           string
		Pinned, Public bool
	}
	functions := collect[function](t, db.Admin(), `
		select p.oid::regprocedure::text as name,
		       coalesce(exists (select from unnest(p.proconfig) s where s like 'search_path=%'), false) as pinned,
		       exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) as public
		from pg_proc p where p.pronamespace = 'berth'::regnamespace and p.prosecdef order by 1`)
	if len(functions) < 4 {
		t.Fatalf("found only %d SECURITY DEFINER functions; the query must be wrong", len(functions))
	}
	for _, got := range functions {
		if want := (function{Name: got.Name, Pinned: true}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func collect[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) []T {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	var one T
	scan := pgx.RowToStructByNameLax[T]
	if _, ok := any(one).(string); ok {
		scan = pgx.RowTo[T]
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func execute(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func wantCode(t *testing.T, err error, code, what string) {
	t.Helper()
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != code {
		t.Errorf("%s: got error %v, want SQLSTATE %s", what, err, code)
	}
}
