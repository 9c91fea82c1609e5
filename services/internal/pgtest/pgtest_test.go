package pgtest_test

import (
	"testing"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	one, two := pgtest.New(t), pgtest.New(t)
	ctx := t.Context()
	if _, err := one.Admin().Exec(ctx, `insert into orgs (org_id, name) values ('org_1', 'acme')`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		db   *pgtest.DB
		want int
	}{{one, 1}, {two, 0}} {
		var got int
		if err := c.db.Admin().QueryRow(ctx, `select count(*) from orgs`).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("orgs in %s: got %d, want %d", c.db.AdminDSN(), got, c.want)
		}
	}
}

func TestEachRoleIsItself(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, role := range store.LoginRoles {
		var got string
		if err := db.AsRole(role).Pool().QueryRow(t.Context(), `select current_user`).Scan(&got); err != nil {
			t.Fatalf("%s: %v", role, err)
		}
		if got != string(role) {
			t.Errorf("current_user as %s: got %s", role, got)
		}
	}
	var got string
	if err := db.Owner().QueryRow(t.Context(), `select current_user`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != "berth_owner" {
		t.Errorf("current_user as owner: got %s", got)
	}
}
