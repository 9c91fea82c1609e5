// Package pgtest gives each test a real Postgres database of its own.
//
// The server is that of BERTH_TEST_DATABASE_URL (a superuser's address on a
// server for tests only: the roles on it get passwords of ours), else a
// private one that the first test process starts and the last one leaves to
// stop: see supervise.go. The schema is migrated once into a template database
// named by the hash of the migrations; a test gets a copy of it.
//
//	db := pgtest.New(t)
//	ctl := db.AsRole(store.RoleCtl) // *store.Store with just that role's grants
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/services/internal/store"
)

// setupTimeout covers initdb and all migrations on a busy machine.
const setupTimeout = 3 * time.Minute

// DB is a migrated database that belongs to one test and is dropped after it.
type DB struct {
	t     testing.TB
	admin string
	dsns  store.DSNs

	mu     sync.Mutex
	stores map[store.Role]*store.Store
	pools  map[string]*pgxpool.Pool
}

// New makes a database for t. It fails the test, rather than skipping it, when
// there is no Postgres.
func New(t testing.TB) *DB {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	srv, err := sharedServer(ctx)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	name, err := srv.clone(ctx)
	if err != nil {
		t.Fatalf("pgtest: clone the template database: %v", err)
	}
	db := &DB{
		t:      t,
		admin:  withDatabase(srv.adminDSN, name),
		dsns:   store.DSNs{},
		stores: map[store.Role]*store.Store{},
		pools:  map[string]*pgxpool.Pool{},
	}
	for _, role := range store.LoginRoles {
		if db.dsns[role], err = srv.roleDSN(role, name); err != nil {
			t.Fatalf("pgtest: address for %s: %v", role, err)
		}
	}
	// Registered first, so that it runs after everything that uses it.
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := srv.drop(ctx, name); err != nil {
			t.Errorf("pgtest: drop %s: %v", name, err)
		}
	})
	return db
}

// DSN is the address of the database for a role.
func (d *DB) DSN(role store.Role) string { return d.dsns[role] }

// AdminDSN is the address of the database for a superuser, who sees all rows.
func (d *DB) AdminDSN() string { return d.admin }

// AsRole is the store with a service's role, closed after the test. Each call
// with the same role returns the same store.
func (d *DB) AsRole(role store.Role) *store.Store {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.stores[role]; s != nil {
		return s
	}
	s, err := store.Open(context.Background(), d.dsns[role], store.Options{
		Name: "pgtest", Log: slog.New(slog.NewTextHandler(d.t.Output(), nil)),
	})
	if err != nil {
		d.t.Fatalf("pgtest: open store as %s: %v", role, err)
	}
	d.stores[role] = s
	d.t.Cleanup(s.Close)
	return s
}

// Owner is a pool that acts as berth_owner, like a migration.
func (d *DB) Owner() *pgxpool.Pool {
	d.t.Helper()
	return d.pool("owner", d.dsns[store.RoleMigrate], "set role berth_owner")
}

// Admin is a pool of the superuser, who sees and may do everything: for
// arranging rows and for looking behind the walls.
func (d *DB) Admin() *pgxpool.Pool {
	d.t.Helper()
	return d.pool("admin", d.admin, "")
}

func (d *DB) pool(name, dsn, onConnect string) *pgxpool.Pool {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if pool := d.pools[name]; pool != nil {
		return pool
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		d.t.Fatalf("pgtest: %s address: %v", name, err)
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = "berth"
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if onConnect == "" {
			return nil
		}
		_, err := conn.Exec(ctx, onConnect)
		return err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		d.t.Fatalf("pgtest: %s pool: %v", name, err)
	}
	d.pools[name] = pool
	d.t.Cleanup(pool.Close)
	return pool
}

// testDatabasePrefix is followed by the time of creation, so that what a killed
// test left on a server that lives on can be told apart from those in use.
const testDatabasePrefix = "berth_test_"

func testDatabaseName(now time.Time) string {
	suffix := make([]byte, 5)
	_, _ = rand.Read(suffix) // never fails
	return fmt.Sprintf("%s%d_%s", testDatabasePrefix, now.Unix(), hex.EncodeToString(suffix))
}
