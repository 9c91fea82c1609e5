package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// of288b913 are the migrations of commit 288b913. Its files are ours: none of
// them was edited since (migrations.sum keeps it so), and 50 landed after 55.
var of288b913 = []string{
	"00001_foundation.sql", "00003_wakeups.sql", "00010_access.sql", "00015_apps.sql", "00020_installs.sql",
	"00025_flow.sql", "00030_runners.sql", "00040_logs.sql", "00055_install_components.sql",
}

// A database that an earlier build made becomes, by Migrate, just what a fresh
// one is.
func TestUpgradesMatchFreshDatabases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files []string
		then  string // what had run otherwise
		from  int64
	}{
		{name: "288b913", files: of288b913, from: 55},
		{
			name: "before checks could be deleted and keys were guarded", files: of288b913[:8], from: 40,
			then: `revoke delete on checks from berth_ctl; drop trigger keys_runner_retires on keys; drop function berth.runner_retires_only_its_kind()`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			old := newEmptyDatabase(t)
			if err := store.MigrateFiles(t.Context(), old.dsn, only(tt.files)); err != nil {
				t.Fatal(err)
			}
			if tt.then != "" {
				execute(t, old.admin, tt.then)
			}
			fillOld(t, old.admin)
			done, err := store.Migrate(t.Context(), old.dsn, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			latest, err := store.LatestVersion()
			if err != nil {
				t.Fatal(err)
			}
			if want := (store.Migrated{From: tt.from, To: latest}); done != want {
				t.Errorf("got %+v, want %+v", done, want)
			}
			fresh := pgtest.New(t)
			if diff := cmp.Diff(catalog(t, fresh.Admin()), catalog(t, old.admin)); diff != "" {
				t.Errorf("the upgraded database is not what a fresh one is (-fresh +upgraded):\n%s", diff)
			}
			if bodies := collect[string](t, old.admin, `select body->>'name' from configs`); !slices.Equal(bodies, []string{"shop"}) {
				t.Errorf("configs after the upgrade: %q", bodies)
			}
		})
	}
}

// What cannot be upgraded is left as it is, with the way to go on.
func TestDatabasesThatCannotBeUpgraded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, prepare, want string
	}{
		{"edited in place", `drop table alarms`, "migrations that it has were edited afterwards"},
		{"a migration of another branch", `insert into schema_versions (version_id, is_applied) values (41, true)`, "does not know: 41"},
		{"one is missing", `delete from schema_versions where version_id = 40`, "lacks earlier ones: 40"},
		{
			"migrated by a newer release that this build cannot work with",
			`insert into schema_versions (version_id, is_applied) values (900000, true);
			 create function berth.oldest_schema() returns bigint language sql immutable return 899999::bigint`,
			"serves builds from 899999 on",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			old := newEmptyDatabase(t)
			if err := store.MigrateFiles(t.Context(), old.dsn, only(of288b913)); err != nil {
				t.Fatal(err)
			}
			execute(t, old.admin, tt.prepare)
			before := catalog(t, old.admin)
			_, err := store.Migrate(t.Context(), old.dsn, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want an error with %q", err, tt.want)
			}
			if p := fault.From(err); p.Remedy == "" {
				t.Errorf("%v has no remedy", err)
			}
			if diff := cmp.Diff(before, catalog(t, old.admin)); diff != "" {
				t.Errorf("something was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// An older build goes on with a newer database until a migration says that it
// must not.
func TestOlderBuildsOnNewerDatabases(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	latest, err := store.LatestVersion()
	if err != nil {
		t.Fatal(err)
	}
	execute(t, pg.Admin(), `insert into schema_versions (version_id, is_applied) values ($1, true)`, latest+10)
	for _, role := range services {
		if err := pg.AsRole(role).CheckSchema(t.Context()); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
	done, err := store.Migrate(t.Context(), pg.DSN(store.RoleMigrate), nil)
	if want := (store.Migrated{From: latest + 10, To: latest + 10}); err != nil || done != want {
		t.Errorf("migrate: got %+v, %v; want %+v", done, err, want)
	}

	if _, err := pg.Owner().Exec(t.Context(), fmt.Sprintf(`create or replace function berth.oldest_schema() returns bigint language sql immutable return %d::bigint`, latest+10)); err != nil {
		t.Fatal(err)
	}
	for _, role := range services {
		p := fault.From(pg.AsRole(role).CheckSchema(t.Context()))
		if p.Code != "schema_newer" || !strings.Contains(p.Remedy, "newer release") {
			t.Errorf("%s: got %+v, want schema_newer", role, p)
		}
	}
}

// emptyDatabase has roles and nothing else.
type emptyDatabase struct {
	dsn   string // of berth_migrate
	admin *pgxpool.Pool
}

func newEmptyDatabase(t *testing.T) emptyDatabase {
	t.Helper()
	pg := pgtest.New(t)
	server := pg.Admin() // closed after the database is dropped
	name := fmt.Sprintf("berth_test_%d_old", time.Now().UnixNano())
	t.Cleanup(func() {
		if _, err := server.Exec(context.Background(), "drop database if exists "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	dsns, err := store.EnsureRoles(t.Context(), pg.AdminDSN(), store.RoleOptions{
		Database: name,
		Password: func(role store.Role) (string, error) { return password(t, pg.DSN(role)), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := server.Config()
	cfg.ConnConfig.Database = name
	admin, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	return emptyDatabase{dsn: dsns[store.RoleMigrate], admin: admin}
}

// fillOld puts rows where later migrations change a table.
func fillOld(t *testing.T, admin *pgxpool.Pool) {
	t.Helper()
	execute(t, admin, `insert into orgs (org_id, name) values ('org_1', 'acme')`)
	execute(t, admin, `insert into apps (id, org_id, name) values ('app_1', 'org_1', 'shop')`)
	execute(t, admin, `insert into blobs (org_id, digest, size_bytes, body) values ('org_1', 'sha256:' || repeat('0', 64), 1, 'x')`)
	execute(t, admin, `insert into configs (id, org_id, app_id, number, digest, bundle_digest, body, created_by)
		values ('cfg_1', 'org_1', 'app_1', 1, 'd', 'sha256:' || repeat('0', 64), '{"name":"shop"}', 'ann')`)
}

// only are these migrations and no others.
func only(names []string) fs.FS {
	files := fstest.MapFS{}
	for _, name := range names {
		text, err := os.ReadFile("migrations/" + name)
		if err != nil {
			panic(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return files
}

// catalog is everything that migrations make, one line each, in an order that
// does not depend on the order in which it was made.
func catalog(t *testing.T, admin *pgxpool.Pool) []string {
	t.Helper()
	return collect[string](t, admin, `
		select line from (
		    select 'column ' || a.attrelid::regclass || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
		        || case when a.attnotnull then ' not null' else '' end || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
		        || ' ' || a.attstorage::text || coalesce((select ' ' || string_agg(x::text, ',' order by x::text) from unnest(a.attacl) x), '') as line
		    from pg_attribute a join pg_class c on c.oid = a.attrelid left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
		    where c.relnamespace::regnamespace::text in ('berth', 'river_ctl', 'river_builder') and c.relkind in ('r', 'p') and not c.relispartition
		      and a.attnum > 0 and not a.attisdropped
		    union all
		    select 'relation ' || c.oid::regclass || ' ' || c.relkind::text || ' ' || c.relowner::regrole || ' rls ' || c.relrowsecurity || c.relforcerowsecurity
		        || coalesce((select ' ' || string_agg(x::text, ',' order by x::text) from unnest(c.relacl) x), '')
		    from pg_class c where c.relnamespace::regnamespace::text in ('berth', 'river_ctl', 'river_builder') and not c.relispartition
		      and not exists (select from pg_index i join pg_class p on p.oid = i.indrelid where i.indexrelid = c.oid and p.relispartition)
		    union all
		    select 'constraint ' || o.conrelid::regclass || ' ' || o.conname || ' ' || pg_get_constraintdef(o.oid)
		    from pg_constraint o join pg_class c on c.oid = o.conrelid where o.connamespace::regnamespace::text = 'berth' and not c.relispartition
		    union all
		    select 'index ' || indexdef from pg_indexes where schemaname in ('berth', 'river_ctl', 'river_builder') and tablename !~ '^log_chunks_'
		    union all
		    select 'policy ' || tablename || ' ' || policyname || ' ' || permissive || ' ' || roles::text || ' ' || cmd || ' ' || coalesce(qual, '') || ' ' || coalesce(with_check, '')
		    from pg_policies where schemaname = 'berth'
		    union all
		    select 'trigger ' || pg_get_triggerdef(g.oid) from pg_trigger g join pg_class c on c.oid = g.tgrelid
		    where c.relnamespace = 'berth'::regnamespace and not c.relispartition and not g.tgisinternal
		    union all
		    select 'function ' || p.proowner::regrole || ' ' || pg_get_functiondef(p.oid) || coalesce((select string_agg(x::text, ',' order by x::text) from unnest(p.proacl) x), '')
		    from pg_proc p where p.pronamespace::regnamespace::text in ('berth', 'river_ctl', 'river_builder') and p.prokind = 'f'
		    union all
		    select 'schema ' || n.nspname || ' ' || n.nspowner::regrole || coalesce((select ' ' || string_agg(x::text, ',' order by x::text) from unnest(n.nspacl) x), '')
		    from pg_namespace n where n.nspname in ('berth', 'river_ctl', 'river_builder')
		    union all
		    select 'default ' || d.defaclrole::regrole || ' ' || d.defaclobjtype::text || coalesce((select ' ' || string_agg(x::text, ',' order by x::text) from unnest(d.defaclacl) x), '')
		    from pg_default_acl d) everything
		order by line`)
}
