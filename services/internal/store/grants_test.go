package store_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

var update = flag.Bool("update", false, "rewrite golden files")

// The whole list of what roles may do, as the catalogue of a freshly migrated
// database has it. A migration that widens it shows in the diff of the golden
// file, where somebody reviews it.
func TestGrantsAreThoseOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	golden(t, "testdata/roles.golden", rolesHeader+describeRoles(t, db))
}

const rolesHeader = `# What each role may do. Generated from the catalogue of a freshly migrated
# database: go test ./internal/store -run TestGrantsAre -update
#
# An operation without columns is on all of them. A restrictive policy narrows
# the rows further than "tenant" does.

`

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); run the test with -update and review the difference:\n%s", file, diff)
	}
}

// describeRoles has one line per role and thing that it may do something with.
func describeRoles(t *testing.T, db *pgtest.DB) string {
	t.Helper()
	var out strings.Builder
	section := func(title string, lines []string) {
		fmt.Fprintf(&out, "## %s\n\n", title)
		for _, line := range lines {
			fmt.Fprintln(&out, line)
		}
		fmt.Fprintln(&out)
	}
	section("Roles", collect[string](t, db.Admin(), `
		select r.rolname || case when r.rolcanlogin then ' logs in' else ' cannot log in' end
		    || case when r.rolsuper then ', superuser' else '' end || case when r.rolbypassrls then ', bypasses row-level security' else '' end
		    || case when r.rolcreaterole then ', makes roles' else '' end || case when r.rolcreatedb then ', makes databases' else '' end
		    || coalesce((select ', member of ' || string_agg(m.rolname, ', ' order by m.rolname)
		                 from pg_auth_members a join pg_roles m on m.oid = a.roleid where a.member = r.oid), '')
		from pg_roles r where r.rolname like 'berth\_%' order by r.rolname`))
	for _, role := range []string{string(store.RoleBuilder), string(store.RoleRunner), string(store.RoleLog), string(store.RoleCtl), "berth_sys", "PUBLIC", string(store.RoleMigrate)} {
		section("Tables: "+role, tableLines(t, db, role))
	}
	section("Policies", collect[string](t, db.Admin(), `
		select p.tablename || ' ' || p.policyname || ' to ' || array_to_string(p.roles, ', ') || ' for ' || lower(p.cmd) || ', ' || lower(p.permissive)
		    || coalesce(' using ' || regexp_replace(p.qual, '\s+', ' ', 'g'), '') || coalesce(' check ' || regexp_replace(p.with_check, '\s+', ' ', 'g'), '')
		from pg_policies p where p.schemaname = 'berth' and p.policyname not in ('tenant', 'system')
		order by p.tablename, p.policyname`))
	section("Triggers", collect[string](t, db.Admin(), `
		select c.relname || ' ' || regexp_replace(pg_get_triggerdef(g.oid), '^CREATE TRIGGER ', '')
		from pg_trigger g join pg_class c on c.oid = g.tgrelid
		where c.relnamespace = 'berth'::regnamespace and not c.relispartition and not g.tgisinternal order by c.relname, g.tgname`))
	section("Functions", collect[string](t, db.Admin(), `
		select p.oid::regprocedure::text || case when p.prosecdef then ' as ' || p.proowner::regrole else '' end || ': '
		    || coalesce((select string_agg(case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end, ', ' order by a.grantee::regrole::text)
		                 from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee <> p.proowner), 'nobody else')
		from pg_proc p where p.pronamespace = 'berth'::regnamespace order by 1`))
	section("Schemas and the database", collect[string](t, db.Admin(), `
		select what || ': ' || grantee || ' ' || string_agg(lower(privilege), ', ' order by privilege) from (
		    select 'schema ' || n.nspname as what, case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end as grantee, a.privilege_type as privilege
		    from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
		    where n.nspname in ('berth', 'river_ctl', 'river_builder') and a.grantee <> n.nspowner
		    union all
		    select 'sequence ' || c.oid::regclass, case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end, a.privilege_type
		    from pg_class c, aclexplode(c.relacl) a
		    where c.relkind = 'S' and c.relnamespace::regnamespace::text in ('berth', 'river_ctl', 'river_builder') and a.grantee <> c.relowner) x
		group by what, grantee order by what, grantee`))
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// tableLines are the operations of a role on each table, with the columns where
// it may not use all of them.
func tableLines(t *testing.T, db *pgtest.DB, role string) []string {
	t.Helper()
	type grant struct {
		Name, Operation, Columns string
	}
	grants := collect[grant](t, db.Admin(), `
		select c.oid::regclass::text as name, lower(g.privilege_type) as operation, coalesce(string_agg(g.attname, ', ' order by g.attnum), '') as columns
		from pg_class c, lateral (
		    select a.grantee, a.privilege_type, null::name as attname, null::int2 as attnum from aclexplode(c.relacl) a
		    union all
		    select a.grantee, a.privilege_type, t.attname, t.attnum
		    from pg_attribute t, aclexplode(t.attacl) a where t.attrelid = c.oid and not t.attisdropped) g
		where c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition and g.grantee <> c.relowner
		  and c.relnamespace::regnamespace::text in ('berth', 'river_ctl', 'river_builder')
		  and case g.grantee when 0 then 'PUBLIC' else g.grantee::regrole::text end = $1
		group by 1, 2 order by 1, 2`, role)
	var lines []string
	for table := range slices.Values(grants) {
		operation := table.Operation
		if table.Columns != "" {
			operation += " (" + table.Columns + ")"
		}
		if last := len(lines) - 1; last >= 0 && strings.HasPrefix(lines[last], table.Name+": ") {
			lines[last] += "; " + operation
			continue
		}
		lines = append(lines, table.Name+": "+operation)
	}
	if len(lines) == 0 {
		return []string{"nothing"}
	}
	return lines
}
