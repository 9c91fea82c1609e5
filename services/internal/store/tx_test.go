package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
	"github.com/berth-dev/berth/services/internal/store/shareddb"
)

func TestTxRunsHooksOnlyAfterItsCommit(t *testing.T) {
	t.Parallel()
	st := pgtest.New(t).AsRole(store.RoleCtl)
	var ran []string
	boom := errors.New("boom")
	err := st.Tx(t.Context(), "org_1", func(_ context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { ran = append(ran, "rolled back") })
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("got %v, want the function's own error", err)
	}
	err = st.Tx(t.Context(), "org_1", func(_ context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { ran = append(ran, "committed") })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"committed"}, ran); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

func TestTxRefusesToRunWithoutAnOrg(t *testing.T) {
	t.Parallel()
	st := pgtest.New(t).AsRole(store.RoleCtl)
	err := st.Tx(t.Context(), "", func(context.Context, *store.Tx) error { t.Error("ran"); return nil })
	if err == nil {
		t.Error("got no error")
	}
}

// TxOf sees the rows of the org that the object is of, and does not run for what
// no org has.
func TestTxOfFindsTheOrg(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	st := pg.AsRole(store.RoleCtl)
	execute(t, pg.Admin(), `insert into orgs (org_id, name) values ('org_1', 'acme'), ('org_2', 'globex')`)
	err := st.TxOf(t.Context(), "org_2", func(ctx context.Context, tx *store.Tx) error {
		org, err := ctldb.New(tx.DB()).GetOrg(ctx)
		if tx.OrgID() != "org_2" || org.Name != "globex" {
			t.Errorf("transaction is of %q and sees %q", tx.OrgID(), org.Name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []string{"org_3", "wfl_none", "nonsense", ""} {
		err := st.TxOf(t.Context(), object, func(context.Context, *store.Tx) error { t.Errorf("ran for %q", object); return nil })
		if !errors.Is(err, store.ErrNoObject) {
			t.Errorf("%q: %v, want ErrNoObject", object, err)
		}
	}
}

func TestTxGivesErrorsTheirKind(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	st := pg.AsRole(store.RoleCtl)
	execute(t, pg.Admin(), `insert into orgs (org_id, name) values ('org_1', 'acme')`)
	insert := func(id, name string) func(context.Context, *store.Tx) error {
		return func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Raw().Exec(ctx, `insert into customers (id, org_id, name) values ($1, 'org_1', $2)`, id, name)
			return err
		}
	}
	if err := st.Tx(t.Context(), "org_1", insert("cus_1", "globex")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		fn   func(context.Context, *store.Tx) error
		want fault.Problem
	}{
		{
			name: "a taken name",
			fn:   insert("cus_2", "globex"),
			want: fault.Problem{Type: "about:blank", Title: "Conflict", Status: 409, Code: "already_exists", Detail: "a customer with this name already exists"},
		},
		{
			name: "a constraint without a sentence of its own shows its name, not values",
			fn:   insert("cus_1", "other"),
			want: fault.Problem{Type: "about:blank", Title: "Conflict", Status: 409, Code: "already_exists", Detail: "this already exists (customers_pkey)"},
		},
		{
			name: "what is still referred to",
			fn: func(ctx context.Context, tx *store.Tx) error {
				for _, sql := range []string{
					`insert into apps (id, org_id, name) values ('app_1', 'org_1', 'shop')`,
					`insert into components (id, org_id, app_id, kind, name) values ('cmp_1', 'org_1', 'app_1', 'component', 'web')`,
					`update apps set id = 'app_2'`,
				} {
					if _, err := tx.Raw().Exec(ctx, sql); err != nil {
						return err
					}
				}
				return nil
			},
			want: fault.Problem{Type: "about:blank", Title: "Conflict", Status: 409, Code: "conflict", Detail: "this is still in use"},
		},
		{
			name: "a reference to nothing",
			fn: func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Raw().Exec(ctx, `insert into tokens (id, org_id, account_id, name, prefix, hash) values ('tok_1', 'org_1', 'acc_none', 'x', 'brt_', 'x')`)
				return err
			},
			want: fault.Problem{Type: "about:blank", Title: "Unprocessable Entity", Status: 422, Code: "invalid", Detail: "this refers to something that does not exist"},
		},
		{
			name: "no rows, seen by the function already",
			fn: func(ctx context.Context, tx *store.Tx) error {
				_, err := ctldb.New(tx.DB()).GetToken(ctx, "tok_none")
				if !errors.Is(err, fault.ErrNotFound) {
					t.Errorf("inside: got %v, want ErrNotFound", err)
				}
				return err
			},
			want: fault.Problem{Type: "about:blank", Title: "Not Found", Status: 404, Code: "not_found", Detail: "not found"},
		},
		{
			name: "what an SQL function says to users",
			fn: func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Raw().Exec(ctx, `do $$ begin raise exception using errcode = 'BE409', message = 'this build has ended'; end $$`)
				return err
			},
			want: fault.Problem{Type: "about:blank", Title: "Conflict", Status: 409, Code: "conflict", Detail: "this build has ended"},
		},
		{
			name: "a mistake of ours stays internal",
			fn: func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Raw().Exec(ctx, `select nonsense`)
				return err
			},
			want: fault.Problem{Type: "about:blank", Title: "Internal Server Error", Status: 500, Code: "internal", Detail: "internal error"},
		},
		{
			name: "no space left for Postgres",
			fn: func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Raw().Exec(ctx, `do $$ begin raise exception using errcode = 'disk_full', message = 'could not extend file'; end $$`)
				return err
			},
			want: fault.Problem{
				Type: "about:blank", Title: "Service Unavailable", Status: 503, Code: "database_full",
				Detail: "the disk of the database is full", Remedy: "free some space there, then it goes on by itself",
			},
		},
		{
			name: "a lost connection",
			fn: func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Raw().Exec(ctx, `select pg_terminate_backend(pg_backend_pid())`)
				return err
			},
			want: fault.Problem{
				Type: "about:blank", Title: "Service Unavailable", Status: 503, Code: "database_unavailable",
				Detail: "the database is not available", Remedy: "try again in a few seconds",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := st.Tx(t.Context(), "org_1", tt.fn)
			if diff := cmp.Diff(tt.want, fault.From(err)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Two transactions that lock the same rows in opposite order: Postgres ends
// one of them, and it succeeds when it runs again.
func TestTxRunsAgainAfterADeadlock(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	st := pg.AsRole(store.RoleCtl)
	execute(t, pg.Admin(), `insert into orgs (org_id, name) values ('org_1', 'acme')`)
	execute(t, pg.Admin(), `insert into apps (id, org_id, name) values ('app_1', 'org_1', 'a'), ('app_2', 'org_1', 'b')`)

	var bothHaveOne, done sync.WaitGroup
	bothHaveOne.Add(2)
	attempts, errs := make([]int, 2), make([]error, 2)
	for i, order := range [][2]string{{"app_1", "app_2"}, {"app_2", "app_1"}} {
		done.Go(func() {
			errs[i] = st.Tx(t.Context(), "org_1", func(ctx context.Context, tx *store.Tx) error {
				attempts[i]++
				for n, id := range order {
					if _, err := tx.Raw().Exec(ctx, `update apps set labels = '{}' where id = $1`, id); err != nil {
						return err
					}
					if n == 0 && attempts[i] == 1 {
						bothHaveOne.Done()
						bothHaveOne.Wait()
					}
				}
				return nil
			})
		})
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if attempts[0]+attempts[1] < 3 {
		t.Errorf("attempts: got %v, want one of them to have run again", attempts)
	}
}

func TestSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	for _, role := range []store.Role{store.RoleCtl, store.RoleRunner, store.RoleBuilder, store.RoleLog} {
		if err := pg.AsRole(role).CheckSchema(t.Context()); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
	execute(t, pg.Admin(), `delete from schema_versions where version_id > 3`)
	err := pg.AsRole(store.RoleCtl).CheckSchema(t.Context())
	if got := fault.From(err); got.Code != "schema_outdated" || got.Remedy == "" {
		t.Errorf("old schema: got %+v", got)
	}
}

func TestSystemSeesNoOrg(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	err := pg.AsRole(store.RoleCtl).System(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := shareddb.New(tx.DB()).SchemaVersion(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
