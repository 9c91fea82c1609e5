package pgtest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/services/internal/store"
)

const (
	templatePrefix = "berth_template_"

	// templateLock keeps two processes from migrating one template: "pgtest".
	templateLock = 0x706774657374

	// A test database this old on a long-lived server was left by a killed run.
	abandonedAfter = 2 * time.Hour
)

// server is a Postgres with a migrated template in it.
type server struct {
	adminDSN string // a superuser, in any database
	secret   string // of which the roles' passwords are made
	template string
}

// sharedServer is found or started once per test process.
var sharedServer = onceContext(func(ctx context.Context) (*server, error) {
	admin := os.Getenv("BERTH_TEST_DATABASE_URL")
	secret := admin // it holds a password
	if admin == "" {
		var err error
		if admin, secret, err = privateServer(ctx); err != nil {
			return nil, err
		}
	}
	hash, err := store.MigrationsHash()
	if err != nil {
		return nil, err
	}
	srv := &server{adminDSN: admin, secret: secret, template: templatePrefix + hash}
	if err := srv.ensureTemplate(ctx); err != nil {
		return nil, fmt.Errorf("make the template database: %w", err)
	}
	return srv, nil
})

func onceContext[T any](fn func(context.Context) (T, error)) func(context.Context) (T, error) {
	var once sync.Once
	var value T
	var err error
	return func(ctx context.Context) (T, error) {
		once.Do(func() { value, err = fn(ctx) })
		return value, err
	}
}

// ensureTemplate migrates the template unless an earlier process did. It is
// marked as a template only when it is complete, and takes no connections
// then: they would keep it from being copied.
func (s *server) ensureTemplate(ctx context.Context) error {
	return s.asAdmin(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, int64(templateLock)); err != nil {
			return err
		}
		complete, err := s.templateState(ctx, conn)
		if err != nil {
			return err
		}
		if complete {
			return nil
		}
		if _, err := conn.Exec(ctx, "drop database if exists "+s.template); err != nil {
			return err
		}
		if err := dropAbandoned(ctx, conn); err != nil {
			return err
		}
		dsns, err := store.EnsureRoles(ctx, s.adminDSN, store.RoleOptions{Database: s.template, Password: s.password})
		if err != nil {
			return err
		}
		if _, err := store.Migrate(ctx, dsns[store.RoleMigrate], slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "alter database "+s.template+" with is_template true allow_connections false")
		return err
	})
}

func (s *server) templateState(ctx context.Context, conn *pgx.Conn) (complete bool, err error) {
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1 and datistemplate)`, s.template).Scan(&complete)
	return complete, err
}

// password is the same in every process, as the roles belong to the server.
func (s *server) password(role store.Role) (string, error) {
	mac := hmac.New(sha256.New, []byte(s.secret))
	mac.Write([]byte(role))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

func (s *server) clone(ctx context.Context) (string, error) {
	name := testDatabaseName(time.Now())
	err := s.asAdmin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, fmt.Sprintf("create database %s template %s owner berth_owner", name, s.template))
		return err
	})
	return name, err
}

func (s *server) drop(ctx context.Context, name string) error {
	return s.asAdmin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, fmt.Sprintf("drop database if exists %s with (force)", name))
		return err
	})
}

// dropAbandoned removes old test databases that killed runs left.
func dropAbandoned(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `select datname from pg_database where starts_with(datname, $1)`, testDatabasePrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		created, _, _ := strings.Cut(strings.TrimPrefix(name, testDatabasePrefix), "_")
		seconds, err := strconv.ParseInt(created, 10, 64)
		if err != nil || time.Since(time.Unix(seconds, 0)) < abandonedAfter {
			continue
		}
		// Without force: one that is in use after all stays.
		_, _ = conn.Exec(ctx, "drop database if exists "+name)
	}
	return nil
}

func (s *server) asAdmin(ctx context.Context, fn func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.adminDSN)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return fn(conn)
}

// roleDSN is the address of a database for a login role.
func (s *server) roleDSN(role store.Role, database string) (string, error) {
	password, err := s.password(role)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(withDatabase(s.adminDSN, database))
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(string(role), password)
	return u.String(), nil
}

// withDatabase changes the database of a postgres:// address.
func withDatabase(dsn, database string) string {
	u, err := url.Parse(dsn)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		panic("pgtest: BERTH_TEST_DATABASE_URL must be written as postgres://…")
	}
	u.Path = "/" + database
	return u.String()
}
