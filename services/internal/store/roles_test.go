package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// From nothing to a schema, by several processes at once, and again.
func TestEnsureRolesAndMigrate(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	database := fmt.Sprintf("berth_test_%d_roles", time.Now().UnixNano())
	t.Cleanup(func() {
		if _, err := pg.Admin().Exec(context.Background(), "drop database if exists "+database+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	opts := store.RoleOptions{
		Database: database,
		Dir:      t.TempDir(),
		// Roles belong to the server, which other tests use at the same time.
		Password: func(role store.Role) (string, error) { return password(t, pg.DSN(role)), nil },
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			dsns, err := store.EnsureRoles(t.Context(), pg.AdminDSN(), opts)
			if err != nil {
				t.Errorf("ensure roles: %v", err)
				return
			}
			if _, err := store.Migrate(t.Context(), dsns[store.RoleMigrate], slog.New(slog.DiscardHandler)); err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	all.Wait()

	latest, err := store.LatestVersion()
	if err != nil {
		t.Fatal(err)
	}
	dsn := readDSN(t, opts.Dir, store.RoleMigrate)
	again, err := store.Migrate(t.Context(), dsn, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.Migrated{From: latest, To: latest}, again); diff != "" {
		t.Errorf("second migration (-want +got):\n%s", diff)
	}
	for _, role := range store.LoginRoles {
		conn, err := pgx.Connect(t.Context(), readDSN(t, opts.Dir, role))
		if err != nil {
			t.Fatalf("%s cannot log in with its file: %v", role, err)
		}
		if got := conn.Config().Database; got != database {
			t.Errorf("%s: database %s, want %s", role, got, database)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestEnsureRolesKeepsFilesThatWork(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	asked := map[store.Role]int{}
	opts := store.RoleOptions{
		Database: pg.Admin().Config().ConnConfig.Database,
		Dir:      t.TempDir(),
		Password: func(role store.Role) (string, error) { asked[role]++; return password(t, pg.DSN(role)), nil },
	}
	ensure := func() {
		t.Helper()
		if _, err := store.EnsureRoles(t.Context(), pg.AdminDSN(), opts); err != nil {
			t.Fatal(err)
		}
	}
	ensure()
	if err := os.Remove(filepath.Join(opts.Dir, store.RoleCtl.DSNFile())); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(opts.Dir, store.RoleLog.DSNFile()), []byte("postgres://berth_log@/nowhere?host=/nowhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	ensure()
	want := map[store.Role]int{store.RoleMigrate: 1, store.RoleCtl: 2, store.RoleRunner: 1, store.RoleBuilder: 1, store.RoleLog: 2}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("new passwords by role (-want +got):\n%s", diff)
	}
	for _, role := range store.LoginRoles {
		info, err := os.Stat(filepath.Join(opts.Dir, role.DSNFile()))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", role.DSNFile(), info.Mode().Perm())
		}
	}
}

// Where secrets come from elsewhere, the roles get their passwords, and nothing
// is written.
func TestEnsureRolesWithGivenFiles(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	dir := t.TempDir()
	for _, role := range store.LoginRoles {
		if err := os.WriteFile(filepath.Join(dir, role.DSNFile()), []byte(pg.DSN(role)+"\n"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	opts := store.RoleOptions{
		Database: pg.Admin().Config().ConnConfig.Database, Dir: dir, Given: true,
		Password: func(role store.Role) (string, error) {
			t.Errorf("a password for %s was chosen", role)
			return "", errors.New("not to be asked")
		},
	}
	for range 2 {
		dsns, err := store.EnsureRoles(t.Context(), pg.AdminDSN(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, role := range store.LoginRoles {
			if dsns[role] != pg.DSN(role) {
				t.Errorf("%s: the address is another one than its file has", role)
			}
		}
	}

	ctl := filepath.Join(dir, store.RoleCtl.DSNFile())
	for text, want := range map[string]string{
		"postgres://berth_log:x@h/d":              "it is for the role berth_log",
		"postgres://berth_ctl@h/d":                "it has no password",
		"postgres://berth_ctl:secretword@h:port/": "not a valid DSN",
		"": "it is for the role",
	} {
		if err := errors.Join(os.Remove(ctl), os.WriteFile(ctl, []byte(text), 0o400)); err != nil {
			t.Fatal(err)
		}
		_, err := store.EnsureRoles(t.Context(), pg.AdminDSN(), opts)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secretword") {
			t.Errorf("%q: %v, want %q and no password", text, err, want)
		}
	}
	if err := os.Remove(ctl); err != nil {
		t.Fatal(err)
	}
	if _, err := store.EnsureRoles(t.Context(), pg.AdminDSN(), opts); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v, want that it is missing", err)
	}
	if _, err := os.Stat(ctl); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was written: %v", err)
	}
}

// The lock that keeps two of us apart is one of a database, and the roles are
// those of the whole server.
func TestEnsureRolesOfTwoDatabasesAtOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 4 {
		pg := pgtest.New(t)
		passwords := map[store.Role]string{}
		for _, role := range store.LoginRoles {
			passwords[role] = password(t, pg.DSN(role))
		}
		opts := store.RoleOptions{
			Database: pg.Admin().Config().ConnConfig.Database,
			Password: func(role store.Role) (string, error) { return passwords[role], nil },
		}
		wg.Go(func() {
			for range 10 {
				if _, err := store.EnsureRoles(t.Context(), pg.AdminDSN(), opts); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	opts := store.RoleOptions{
		Database: pg.Admin().Config().ConnConfig.Database,
		Password: func(role store.Role) (string, error) { return password(t, pg.DSN(role)), nil },
	}
	limits := func() map[string]string {
		t.Helper()
		got := map[string]string{}
		for _, line := range collect[string](t, pg.Admin(), `select rolname || ' ' || rolconnlimit from pg_roles where rolname like 'berth\_%' and rolcanlogin`) {
			role, limit, _ := strings.Cut(line, " ")
			got[role] = limit
		}
		return got
	}
	set := func(limit int) {
		t.Helper()
		opts.ConnectionLimit = limit
		if _, err := store.EnsureRoles(t.Context(), pg.AdminDSN(), opts); err != nil {
			t.Fatal(err)
		}
	}
	// The roles are those of tests that run at the same time: the limit is one
	// that they do not reach.
	t.Cleanup(func() {
		for _, role := range services {
			if _, err := pg.Admin().Exec(context.Background(), fmt.Sprintf("alter role %s connection limit -1", role)); err != nil {
				t.Error(err)
			}
		}
	})
	set(400)
	want := map[string]string{"berth_migrate": "-1", "berth_ctl": "400", "berth_runner": "400", "berth_builder": "400", "berth_log": "400"}
	if diff := cmp.Diff(want, limits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	set(0)
	if diff := cmp.Diff(want, limits()); diff != "" {
		t.Errorf("limits that should have been left alone (-want +got):\n%s", diff)
	}
}

// A service that has taken all its connections must not look like one whose
// password is lost: a new password would lock it out.
func TestRoleAtItsLimitKeepsItsPassword(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	role := fmt.Sprintf("limited_%d", time.Now().UnixNano())
	execute(t, pg.Admin(), fmt.Sprintf(`create role %s login password 'right' connection limit 0`, role))
	database := pg.Admin().Config().ConnConfig.Database
	execute(t, pg.Admin(), fmt.Sprintf(`grant connect on database %s to %s`, database, role))
	t.Cleanup(func() {
		if _, err := pg.Admin().Exec(context.Background(), fmt.Sprintf(`drop owned by %[1]s; drop role %[1]s`, role)); err != nil {
			t.Error(err)
		}
	})
	for word, want := range map[string]bool{"right": true, "wrong": false} {
		u, err := url.Parse(pg.AdminDSN())
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(role, word)
		file := filepath.Join(t.TempDir(), "x.dsn")
		if err := os.WriteFile(file, []byte(u.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, got := store.WorkingDSN(t.Context(), file); got != want {
			t.Errorf("a %s password at the limit: works %t, want %t", word, got, want)
		}
	}
}

func password(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	word, _ := u.User.Password()
	return word
}

func readDSN(t *testing.T, dir string, role store.Role) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, role.DSNFile()))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
