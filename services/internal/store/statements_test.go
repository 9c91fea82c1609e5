package store_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// service is one with a role: its package, and that of its own statements.
type service struct{ code, statements string }

var serviceOf = map[store.Role]service{
	store.RoleCtl:     {"./ctl-api", "ctldb"},
	store.RoleRunner:  {"./runner-api", "runnerdb"},
	store.RoleBuilder: {"./builder", "builderdb"},
	store.RoleLog:     {"./log-ingest", "logdb"},
}

// notTheirs are shared statements in packages that a service links for something
// else.
var notTheirs = map[store.Role][]string{
	store.RoleRunner: {"AuthenticateToken", "ListGrantsOfAccounts"}, // auth.User
}

var services = []store.Role{store.RoleCtl, store.RoleRunner, store.RoleBuilder, store.RoleLog}

// A service may run every statement that it has: a grant that a statement lacks
// is found here, and not by the first user of the statement. EXPLAIN checks the
// privileges of tables, columns and functions, and runs nothing.
func TestServicesMayRunTheirStatements(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, role := range services {
		statements := statementsOf(t, role)
		if len(statements) < 10 {
			t.Fatalf("found only %d statements of %s; the search must be wrong", len(statements), role)
		}
		for name, text := range statements {
			if err := explainAs(t.Context(), db.Admin(), role, text); err != nil {
				t.Errorf("%s may not run %s: %v; grant what it lacks in a new migration", role, name, err)
			}
		}
	}
}

// beyondStatements are grants that no statement shows a need for.
var beyondStatements = map[string]string{
	"berth_runner select (id) installs": "the policies of chains look whether it is one of an install",
}

// The other way round: without any of its grants, some statement of the service
// is refused. ctl-api is left out, which reads nearly everything.
func TestServicesHaveNoGrantThatNoStatementNeeds(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pooled, err := db.Admin().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pooled.Release()
	conn := pooled.Conn()
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	type grant struct{ Name, Operation, Column string }
	for _, role := range []store.Role{store.RoleRunner, store.RoleBuilder, store.RoleLog} {
		statements := slices.Collect(maps.Values(statementsOf(t, role)))
		for _, g := range collect[grant](t, db.Admin(), `
			select c.relname as name, lower(a.privilege_type) as operation, a.attname as column
			from pg_class c, lateral (
			    select grantee, privilege_type, '' as attname from aclexplode(c.relacl)
			    union all
			    select grantee, privilege_type, t.attname from pg_attribute t, aclexplode(t.attacl) where t.attrelid = c.oid) a
			where c.relnamespace = 'berth'::regnamespace and not c.relispartition and c.relname <> 'schema_versions' and a.grantee = $1::regrole
			order by 1, 2, 3`, string(role)) {
			what := g.Operation
			if g.Column == "org_id" && g.Operation == "select" {
				continue // for policies and triggers
			}
			if g.Column != "" {
				what += " (" + g.Column + ")"
			}
			line := fmt.Sprintf("%s %s %s", role, what, g.Name)
			run("begin")
			run(fmt.Sprintf("revoke %s on %s from %s", what, g.Name, role))
			needed := slices.ContainsFunc(statements, func(text string) bool {
				if !strings.Contains(text, g.Name) {
					return false
				}
				run("savepoint attempt")
				err := explainStatement(t.Context(), conn, role, text)
				run("rollback to savepoint attempt")
				return err != nil
			})
			run("rollback")
			if !needed && beyondStatements[line] == "" {
				t.Errorf("%s: no statement needs it; revoke it in a new migration", line)
			}
		}
	}
}

func explainAs(ctx context.Context, admin *pgxpool.Pool, role store.Role, statement string) error {
	tx, err := admin.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	return explainStatement(ctx, tx.Conn(), role, statement)
}

// explainStatement plans a statement for any parameters, in the transaction
// that the connection is in.
func explainStatement(ctx context.Context, conn *pgx.Conn, role store.Role, statement string) error {
	prepared := fmt.Sprintf("set local role %s; set local plan_cache_mode = force_generic_plan; deallocate all; prepare it as %s", role, statement)
	if _, err := conn.Exec(ctx, prepared); err != nil {
		return err
	}
	var parameters int
	if err := conn.QueryRow(ctx, "select cardinality(parameter_types) from pg_prepared_statements where name = 'it'", pgx.QueryExecModeSimpleProtocol).Scan(&parameters); err != nil {
		return err
	}
	explain := "explain execute it"
	if parameters > 0 {
		explain += "(" + strings.Repeat("null, ", parameters-1) + "null)"
	}
	_, err := conn.Exec(ctx, explain, pgx.QueryExecModeSimpleProtocol)
	return err
}

// statementTexts are the statements of a generated package by name.
func statementTexts(t *testing.T, of string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(of + "/*.sql.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if after, ok := strings.CutPrefix(text, "-- name: "); ok {
				name, _, _ := strings.Cut(after, " ")
				texts[name] = text
			}
			return true
		})
	}
	return texts
}

// onlyTested are statements that tests of other services call in the place of a
// service's own.
var onlyTested = []string{"OpenLogStream"}

// A service's package of statements has just those that it runs.
func TestEveryStatementIsRun(t *testing.T) {
	t.Parallel()
	for _, role := range services {
		calls := callsIn(t, serviceOf[role].code)
		for name := range statementTexts(t, serviceOf[role].statements) {
			if !calls[name] && !slices.Contains(onlyTested, name) {
				t.Errorf("%s never calls %s; delete it", serviceOf[role].code, name)
			}
		}
	}
}

// statementsOf are the statements that a service runs, by name: its own, and of
// the shared ones those that the packages which it links call.
func statementsOf(t *testing.T, role store.Role) map[string]string {
	t.Helper()
	statements := statementTexts(t, serviceOf[role].statements)
	calls := callsIn(t, serviceOf[role].code)
	for name, text := range statementTexts(t, "shareddb") {
		if calls[name] && !slices.Contains(notTheirs[role], name) {
			statements[name] = text
		}
	}
	return statements
}

// called is how statements are written where they are called.
var called = regexp.MustCompile(`\.([A-Z]\w*)\(|\(\*\w+\.Queries\)\.([A-Z]\w*)`)

// callsIn are the names of the methods that a service calls, in its own code and
// in that of the packages that it links.
func callsIn(t *testing.T, service string) map[string]bool {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if and .Module .Module.Main}}{{.ImportPath}} {{.Dir}}{{end}}", service)
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list the packages of %s: %v", service, err)
	}
	calls := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(path, "github.com/berth-dev/berth/services/") || generated(path) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range called.FindAllSubmatch(code, -1) {
				calls[string(call[1])+string(call[2])] = true
			}
		}
	}
	return calls
}

// generated says whether a package is written by sqlc or oapi-codegen.
func generated(path string) bool {
	return strings.HasSuffix(path, "/apigen") || filepath.Dir(path) == "github.com/berth-dev/berth/services/internal/store"
}
