package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/berth-dev/berth/services/internal/fault"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	// versionTable lives in the schema berth, by the search path.
	versionTable = "schema_versions"

	// A replica that waits for another's migrations looks once a second, for
	// at most ten minutes.
	lockPollSeconds = 1
	lockPolls       = 600
)

// Migrated says what Migrate did: From equals To when nothing was to do. To is
// above LatestVersion when a newer build has migrated the database, which still
// serves this one.
type Migrated struct{ From, To int64 }

// Migrate brings the schema up to date, River's two included. dsn is that of
// berth_migrate. Several processes may call it at once: one works, the others
// wait for it.
func Migrate(ctx context.Context, dsn string, log *slog.Logger) (Migrated, error) {
	cfg, err := ownerConfig(dsn)
	if err != nil {
		return Migrated{}, err
	}
	pool := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(becomeOwner))
	defer pool.Close()

	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return Migrated{}, err
	}
	provider, err := newProvider(pool, dsn, files, log)
	if err != nil {
		return Migrated{}, err
	}
	before, err := readHistory(ctx, pool)
	if err != nil {
		return Migrated{}, fmt.Errorf("read what was migrated: %w", translate(err))
	}
	if newer, err := before.check(versionsOf(provider)); newer || err != nil {
		return Migrated{From: before.newest(), To: before.newest()}, err
	}
	// Ask for the version only after Up: without a version table it would
	// create one, outside the lock.
	results, err := provider.Up(ctx)
	if err != nil {
		return Migrated{}, fmt.Errorf("migrate: %w", translate(err))
	}
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return Migrated{}, fmt.Errorf("read schema version: %w", translate(err))
	}
	done := Migrated{From: version, To: version}
	if len(results) > 0 {
		done.From = before.newest()
	}
	return done, nil
}

// LatestVersion is the schema version that this build was made for.
func LatestVersion() (int64, error) {
	latest := int64(riverVersion)
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		version, err := goose.NumericComponent(file)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", file, err)
		}
		latest = max(latest, version)
	}
	return latest, nil
}

// MigrationsHash changes whenever a migration does; it names the template
// database of the tests.
func MigrationsHash() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "river %v\n", riverTargets)
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", file, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func newProvider(pool *sql.DB, dsn string, files fs.FS, log *slog.Logger) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPollSeconds, lockPolls))
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{
		goose.WithSessionLocker(locker),
		goose.WithTableName(versionTable),
		goose.WithGoMigrations(riverMigration(dsn)),
		goose.WithDisableGlobalRegistry(true),
		goose.WithAllowOutofOrder(true), // history.check says which
	}
	if log != nil {
		options = append(options, goose.WithSlog(log))
	}
	return goose.NewProvider(goose.DialectPostgres, pool, files, options...)
}

// ownerConfig is for connections that own what they create.
func ownerConfig(dsn string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fault.Newf(fault.ErrInvalid, "the database address is not a valid DSN")
	}
	cfg.RuntimeParams["search_path"] = searchPath
	cfg.RuntimeParams["application_name"] = "berth-migrate"
	return cfg, nil
}

func becomeOwner(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "set role "+ownerRole)
	return err
}

func versionsOf(provider *goose.Provider) []int64 {
	var versions []int64
	for _, source := range provider.ListSources() {
		versions = append(versions, source.Version)
	}
	return versions
}
