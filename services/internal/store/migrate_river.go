package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River's schemas: one per service that works jobs. River elects one leader per
// schema, and a role that may insert into one can read all its arguments, so
// services do not share.
const (
	RiverCtl     = "river_ctl"
	RiverBuilder = "river_builder"
)

// riverVersion is the place of River's migrations among ours. A later River
// gets a new Go migration with a higher number; this one stays as it is.
const riverVersion = 2

// riverTargets is the migration of River v0.51 for each schema, and who works it.
var riverTargets = []struct {
	schema, role string
	version      int
}{
	{schema: RiverCtl, role: "berth_ctl", version: 8},
	{schema: RiverBuilder, role: "berth_builder", version: 8},
}

// riverMigration runs River's own migrations. They are not one transaction,
// because one adds an enum value that a later one uses; each is recorded in
// river_migration, so a second run continues where the first one stopped.
func riverMigration(dsn string) *goose.Migration {
	return goose.NewGoMigration(riverVersion, &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
		pool, err := ownerPool(ctx, dsn)
		if err != nil {
			return err
		}
		defer pool.Close()
		for _, target := range riverTargets {
			if err := migrateRiver(ctx, pool, target.schema, target.role, target.version); err != nil {
				return fmt.Errorf("river schema %s: %w", target.schema, err)
			}
		}
		return nil
	}}, nil)
}

func migrateRiver(ctx context.Context, pool *pgxpool.Pool, schema, role string, version int) error {
	if _, err := pool.Exec(ctx, fmt.Sprintf(`create schema if not exists %s`, schema)); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: version}); err != nil {
		return err
	}
	// The worker uses the queue; it does not own it.
	_, err = pool.Exec(ctx, fmt.Sprintf(`
		grant usage on schema %[1]s to %[2]s;
		grant select, insert, update, delete on all tables in schema %[1]s to %[2]s;
		grant usage on all sequences in schema %[1]s to %[2]s;
		grant execute on all functions in schema %[1]s to %[2]s;
	`, schema, role))
	return err
}

// ownerPool is a pool of River's liking, whose connections act as the owner.
func ownerPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if cfg.ConnConfig, err = ownerConfig(dsn); err != nil {
		return nil, err
	}
	cfg.AfterConnect = becomeOwner
	cfg.MaxConns = 2
	return pgxpool.NewWithConfig(ctx, cfg)
}
