package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Role is a login role of Postgres: one per service, with just its grants.
type Role string

// The login roles.
const (
	RoleMigrate Role = "berth_migrate" // migrations; may act as the owner
	RoleCtl     Role = "berth_ctl"     // ctl-api
	RoleRunner  Role = "berth_runner"  // runner-api
	RoleBuilder Role = "berth_builder" // builder
	RoleLog     Role = "berth_log"     // log-ingest
)

// LoginRoles are all of them, in the order in which they are made.
var LoginRoles = []Role{RoleMigrate, RoleCtl, RoleRunner, RoleBuilder, RoleLog}

const (
	// ownerRole owns everything that migrations make. It cannot log in.
	ownerRole = "berth_owner"

	// systemRole owns the SECURITY DEFINER functions that work across orgs, and
	// is the only one whose policies show all rows. It cannot log in.
	systemRole = "berth_sys"

	// Concurrent CREATE ROLE and ALTER ROLE fail each other, so they are made
	// under one advisory lock: "berth" in ASCII.
	rolesLock = 0x6265727468

	defaultDatabase = "berth"
)

// DSNFile is the name of the role's DSN file in its directory.
func (r Role) DSNFile() string { return strings.TrimPrefix(string(r), "berth_") + ".dsn" }

// DSNs has the address of the database for each login role. They hold
// passwords: never log them.
type DSNs map[Role]string

// RoleOptions of EnsureRoles.
type RoleOptions struct {
	// Database is made if missing; "berth" when empty.
	Database string
	// Dir gets one file per role (0600, see Role.DSNFile). A role whose file
	// works keeps its password; a missing file or one that no longer works
	// means a new password. When empty, nothing is written and every call
	// sets new passwords.
	Dir string
	// Given says that somebody else chose the passwords and put all files into
	// Dir, such as secrets that Kubernetes mounts: roles get the passwords of
	// their files, and nothing is written.
	Given bool
	// Password chooses a new password; random when nil.
	Password func(Role) (string, error)
	// ConnectionLimit is how many connections each service's role may have at
	// once, over all its replicas and all databases of the server: so a service
	// that was taken over cannot take all of them. 0 leaves the limits alone, as
	// the server may serve others with these roles.
	ConnectionLimit int
}

// EnsureRoles makes the database, its roles and one DSN for each, and repairs
// what is missing. adminDSN is a role that may create roles and databases.
// Safe to call again and at the same time by several processes.
func EnsureRoles(ctx context.Context, adminDSN string, opts RoleOptions) (DSNs, error) {
	if opts.Database == "" {
		opts.Database = defaultDatabase
	}
	if opts.Password == nil {
		opts.Password = func(Role) (string, error) { return randomPassword() }
	}
	admin, err := pgx.Connect(ctx, adminDSN)
	if err != nil {
		return nil, fault.With(fmt.Errorf("connect as administrator: %w", translate(redactDSN(err))),
			fault.Remedy("check the administrator's address of the database"))
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }() // releases the lock
	if _, err := admin.Exec(ctx, `select pg_advisory_lock($1)`, int64(rolesLock)); err != nil {
		return nil, fmt.Errorf("lock roles: %w", translate(err))
	}
	for _, step := range []func(context.Context, *pgx.Conn, RoleOptions) error{ensureGroupRoles, ensureDatabase, ensureLoginRoles} {
		if err := step(ctx, admin, opts); err != nil {
			return nil, err
		}
	}
	dsns := DSNs{}
	for _, role := range LoginRoles {
		if dsns[role], err = ensureLogin(ctx, admin, role, opts); err != nil {
			return nil, err
		}
	}
	if err := ensureDatabaseGrants(ctx, dsns[RoleMigrate], opts.Database); err != nil {
		return nil, err
	}
	return dsns, limitConnections(ctx, admin, opts.ConnectionLimit)
}

func ensureGroupRoles(ctx context.Context, admin *pgx.Conn, _ RoleOptions) error {
	for _, role := range []string{systemRole, ownerRole} {
		if err := ensureRole(ctx, admin, role, "NOLOGIN"); err != nil {
			return err
		}
	}
	if err := execf(ctx, admin, "grant %s to %s", systemRole, ownerRole); err != nil {
		return err
	}
	// A managed Postgres has an administrator who is no superuser and must be
	// a member of the owner to give it a database.
	var superuser bool
	if err := admin.QueryRow(ctx, `select rolsuper from pg_roles where rolname = current_user`).Scan(&superuser); err != nil {
		return fmt.Errorf("read administrator's rights: %w", translate(err))
	}
	if superuser {
		return nil
	}
	return execf(ctx, admin, "grant %s to current_user", ownerRole)
}

func ensureDatabase(ctx context.Context, admin *pgx.Conn, opts RoleOptions) error {
	var exists bool
	if err := admin.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, opts.Database).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", opts.Database, translate(err))
	}
	if exists {
		return nil
	}
	return execf(ctx, admin, "create database %s owner %s", pgx.Identifier{opts.Database}.Sanitize(), ownerRole)
}

func ensureLoginRoles(ctx context.Context, admin *pgx.Conn, _ RoleOptions) error {
	for _, role := range LoginRoles {
		if err := ensureRole(ctx, admin, string(role), "LOGIN NOINHERIT"); err != nil {
			return err
		}
	}
	return execf(ctx, admin, "grant %s, %s to %s", ownerRole, systemRole, RoleMigrate)
}

func ensureRole(ctx context.Context, admin *pgx.Conn, role, attributes string) error {
	var exists bool
	if err := admin.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1)`, role).Scan(&exists); err != nil {
		return fmt.Errorf("look for role %s: %w", role, translate(err))
	}
	if exists {
		return nil
	}
	err := execf(ctx, admin, "create role %s %s", role, attributes)
	if alreadyThere(err) { // somebody who prepares another database has just made it
		return nil
	}
	return err
}

// ensureLogin returns a DSN of the role that works.
func ensureLogin(ctx context.Context, admin *pgx.Conn, role Role, opts RoleOptions) (string, error) {
	file := ""
	if opts.Dir != "" {
		file = filepath.Join(opts.Dir, role.DSNFile())
		if dsn, ok := workingDSN(ctx, file); ok {
			return dsn, nil
		}
	}
	if opts.Given {
		return ensureGiven(ctx, admin, role, file)
	}
	password, err := opts.Password(role)
	if err != nil {
		return "", fmt.Errorf("choose password of %s: %w", role, err)
	}
	if err := setPassword(ctx, admin, role, password); err != nil {
		return "", err
	}
	dsn := roleDSN(admin.Config(), role, password, opts.Database)
	if file == "" {
		return dsn, nil
	}
	return dsn, durable.WriteFile(file, []byte(dsn+"\n"), 0o600)
}

// ensureGiven sets the password that the role's file has, if it does not work yet.
func ensureGiven(ctx context.Context, admin *pgx.Conn, role Role, file string) (string, error) {
	unusable := func(err error) error {
		return fault.With(fmt.Errorf("the address of the database for %s in %s: %w", role, file, err),
			fault.Remedy("write it like postgres://%s:PASSWORD@HOST:5432/DATABASE", role))
	}
	dsn, err := readGiven(role, file)
	if err != nil {
		return "", unusable(err)
	}
	if err := setPassword(ctx, admin, role, dsn.Password); err != nil {
		return "", err
	}
	if _, ok := workingDSN(ctx, file); !ok {
		return "", unusable(errors.New("it does not work, though the role has its password now"))
	}
	return dsn.ConnString(), nil
}

func readGiven(role Role, file string) (*pgx.ConnConfig, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dsn, err := pgx.ParseConfig(strings.TrimSpace(string(text)))
	switch {
	case err != nil:
		return nil, redactDSN(err)
	case dsn.User != string(role):
		return nil, fmt.Errorf("it is for the role %s", dsn.User)
	case dsn.Password == "":
		return nil, errors.New("it has no password")
	}
	return dsn, nil
}

// setPassword gives the server a verifier, so the password is in none of its
// logs.
func setPassword(ctx context.Context, admin *pgx.Conn, role Role, password string) error {
	verifier, err := scramVerifier(password)
	if err != nil {
		return fmt.Errorf("hash password of %s: %w", role, err)
	}
	return execf(ctx, admin, "alter role %s with password '%s'", role, verifier)
}

func workingDSN(ctx context.Context, file string) (string, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	dsn := strings.TrimSpace(string(text))
	conn, err := pgx.Connect(ctx, dsn)
	if atLimit(err) {
		// The password may well be right, and a service that is running has it: a
		// new one would lock that service out.
		return dsn, true
	}
	if err != nil {
		return "", false
	}
	return dsn, conn.Close(ctx) == nil
}

// ensureDatabaseGrants makes the schema, which must be there before the first
// migration records itself in it, and lets only our roles connect.
func ensureDatabaseGrants(ctx context.Context, dsn, database string) error {
	cfg, err := ownerConfig(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect as %s: %w", RoleMigrate, translate(redactDSN(err)))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := becomeOwner(ctx, conn); err != nil {
		return fmt.Errorf("become owner: %w", translate(err))
	}
	name := pgx.Identifier{database}.Sanitize()
	for _, statement := range []string{
		"create schema if not exists berth",
		"revoke all on database " + name + " from public",
		"grant connect on database " + name + " to berth_migrate, berth_ctl, berth_runner, berth_builder, berth_log",
	} {
		if err := execf(ctx, conn, "%s", statement); err != nil {
			return fmt.Errorf("prepare database %s: %w", database, err)
		}
	}
	return nil
}

func limitConnections(ctx context.Context, admin *pgx.Conn, limit int) error {
	if limit == 0 {
		return nil
	}
	for _, role := range []Role{RoleCtl, RoleRunner, RoleBuilder, RoleLog} {
		if err := execf(ctx, admin, "alter role %s connection limit %d", role, limit); err != nil {
			return err
		}
	}
	return nil
}

// roleDSN is the administrator's address with another user and database.
func roleDSN(admin *pgx.ConnConfig, role Role, password, database string) string {
	query := url.Values{}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(string(role), password), Path: "/" + database}
	if strings.HasPrefix(admin.Host, "/") {
		query.Set("host", admin.Host)
		query.Set("port", fmt.Sprint(admin.Port))
	} else {
		u.Host = fmt.Sprintf("%s:%d", bracketed(admin.Host), admin.Port)
	}
	for key, value := range dsnSettings(admin.ConnString()) {
		query.Set(key, value)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// dsnSettings are the settings of a DSN that hold for every role: TLS ones.
func dsnSettings(dsn string) map[string]string {
	settings := map[string]string{}
	keys := []string{"sslmode", "sslrootcert", "sslnegotiation", "channel_binding"}
	if u, err := url.Parse(dsn); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		for _, key := range keys {
			if value := u.Query().Get(key); value != "" {
				settings[key] = value
			}
		}
		return settings
	}
	for _, field := range strings.Fields(dsn) {
		name, value, _ := strings.Cut(field, "=")
		for _, key := range keys {
			if name == key {
				settings[key] = strings.Trim(value, "'")
			}
		}
	}
	return settings
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// maxTries is how often a statement is tried that another session outran.
const maxTries = 20

// execf is for DDL, which takes no parameters; every operand is a name of ours
// or quoted by the caller. Roles belong to the whole server, the advisory lock
// to one database: somebody who prepares another database may change the same
// role at the same time, which Postgres refuses instead of waiting.
func execf(ctx context.Context, conn *pgx.Conn, format string, args ...any) error {
	statement := fmt.Sprintf(format, args...)
	for try := 1; ; try++ {
		_, err := conn.Exec(ctx, statement)
		if err == nil {
			return nil
		}
		if !outrun(err) || try == maxTries {
			verb := strings.Join(strings.Fields(statement)[:2], " ")
			return fmt.Errorf("%s: %w", verb, translate(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * 5 * time.Millisecond):
		}
	}
}

// redactDSN keeps the reason of a connection failure without the address it
// was given, which may hold a password that pgx could not parse out.
func redactDSN(err error) error {
	if strings.Contains(err.Error(), "cannot parse") {
		return fault.With(fault.Newf(fault.ErrInvalid, "the database address is not a valid DSN"),
			fault.Remedy("write it as postgres://user@host:port/database"))
	}
	return err
}
