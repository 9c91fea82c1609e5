// Package store is the only door to Postgres. It owns the connection pool, the
// transaction that carries the org, what Postgres errors mean to us, wake-ups
// by LISTEN and NOTIFY, the migrations and the database roles.
//
// It leaves to others what the rows mean: queries are written in
// queries/<service>/<noun>.sql, generated into one package per service (ctldb,
// runnerdb, builderdb, logdb; shareddb for what services share), and called by
// the package that owns the noun, inside its service's [Typed.Tx].
package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/shareddb"
)

const (
	// searchPath makes unqualified names mean ours, whatever the role or the
	// database would say.
	searchPath = "berth"

	defaultMaxConns = 10

	// Long enough for a busy machine, short enough for a start-up to say
	// which address is wrong.
	connectTimeout = 10 * time.Second
)

// Options of a Store. The zero value works.
type Options struct {
	// Name is shown in pg_stat_activity, e.g. "berth-ctl-api".
	Name string
	// MaxConns bounds the pool; 10 when zero. Listener and River's notifier
	// use one connection each, from the pool or outside it.
	MaxConns int32
	// Log gets what is worth knowing but fails nobody; slog.Default when nil.
	Log *slog.Logger
}

// Store is one service's access to the database, with that service's role.
type Store struct {
	pool     *pgxpool.Pool
	log      *slog.Logger
	notifier *notifier
	unwatch  func() // ends its metrics
}

// Open makes the pool and checks that the database answers. Close it.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// pgx redacts passwords in its message, but only those it could parse.
		return nil, fault.Newf(fault.ErrInvalid, "the database address is not a valid DSN")
	}
	cfg.MaxConns = defaultMaxConns
	if opts.MaxConns > 0 {
		cfg.MaxConns = opts.MaxConns
	}
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.RuntimeParams["search_path"] = searchPath
	if opts.Name != "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = opts.Name
	}
	// Statements have parameters in place of values, so they may be attributes.
	cfg.ConnConfig.Tracer = otelpgx.NewTracer(otelpgx.WithDisableConnectionDetailsInAttributes())

	cfg.ConnConfig.OnNotice = noticeEvents

	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database pool: %w", translate(err))
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to database: %w", translate(err))
	}
	log := opts.Log
	if log == nil {
		log = slog.Default()
	}
	return &Store{pool: pool, log: log, notifier: newNotifier(pool, log), unwatch: observePool(pool, opts.Name)}, nil
}

// Close sends the notifications that are still queued, then waits for all
// connections to come back and closes them.
func (s *Store) Close() {
	s.unwatch()
	s.notifier.close()
	s.pool.Close()
}

// Pool is for River and the listener; everything else goes through Tx.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Ping reports whether the database answers, for readiness.
func (s *Store) Ping(ctx context.Context) error {
	return translate(s.pool.Ping(ctx))
}

// CheckSchema fails when the database lacks migrations that this build needs, or
// has some that this build cannot work with any more.
func (s *Store) CheckSchema(ctx context.Context) error {
	want, err := LatestVersion()
	if err != nil {
		return err
	}
	q := shareddb.New(translating{s.pool})
	have, err := q.SchemaVersion(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have < want {
		return fault.With(
			fault.Newf(fault.ErrUnavailable, "the database schema is at version %d, this build needs %d", have, want),
			fault.Code("schema_outdated"), fault.Remedy("run: berth-ctl-api migrate"))
	}
	if have == want {
		return nil
	}
	oldest, err := q.OldestSchema(ctx)
	if err != nil {
		return fmt.Errorf("read the oldest schema version that the database serves: %w", err)
	}
	if want < oldest {
		return tooOld(have, want, oldest)
	}
	s.log.WarnContext(ctx, "the database schema is newer than this build", "schema_version", have, "build_version", want)
	return nil
}

// tooOld is about a build of before a migration that it cannot work with.
func tooOld(have, build, oldest int64) error {
	return fault.With(
		fault.Newf(fault.ErrUnavailable, "a newer release has migrated the database: its schema is at version %d and serves builds from %d on; this build has %d", have, oldest, build),
		fault.Code("schema_newer"),
		fault.Remedy("start the executables of the newer release; to go back to this one, restore a backup of the database from before the upgrade"))
}

var _ shareddb.DBTX = (*pgxpool.Pool)(nil)
var _ shareddb.DBTX = (pgx.Tx)(nil)
