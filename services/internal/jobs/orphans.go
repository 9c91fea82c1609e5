package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/services/internal/store"
)

const (
	// River itself takes up the jobs of a killed process after an hour, as it
	// cannot tell a dead one from a slow one. We can: every client holds a
	// session-level advisory lock under its id, which Postgres lets go of when
	// the process is gone.
	orphanInterval = 3 * time.Second

	// Between fetching a job and being seen to hold the lock there is no order
	// that could be relied on after a reconnect, so young jobs are left alone.
	orphanAge = 5 * time.Second

	// lockClass is the first half of the lock's two keys: "rivr".
	lockClass = 0x72697672
)

// orphans gives back the jobs of clients that are no more.
type orphans struct {
	connect  func(ctx context.Context) (*pgx.Conn, error)
	clientID string
	free     string // statement
	depose   string // statement
	log      *slog.Logger
}

func newOrphans(st *store.Store, schema, clientID string, log *slog.Logger) *orphans {
	cfg := st.Pool().Config().ConnConfig
	cfg.Tracer = nil
	quoted := pgx.Identifier{schema}.Sanitize()
	alive := `EXISTS (
		SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
		WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
		  AND l.classid::bigint = $1 AND l.objid::bigint = hashtext(%s)::bigint & 4294967295)`
	return &orphans{
		connect:  func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, cfg.Copy()) },
		clientID: clientID,
		// The attempt counts: a job that kills its process must end some day.
		free: strings.NewReplacer("SCHEMA", quoted, "ALIVE", fmt.Sprintf(alive, "j.attempted_by[array_upper(j.attempted_by, 1)]")).Replace(`
			UPDATE SCHEMA.river_job j
			SET state = 'available', scheduled_at = now()
			WHERE state = 'running' AND attempted_at < now() - $2::interval AND NOT ALIVE`),
		// A dead leader would be waited for until its term ends.
		depose: strings.NewReplacer("SCHEMA", quoted, "ALIVE", fmt.Sprintf(alive, "e.leader_id")).Replace(`
			DELETE FROM SCHEMA.river_leader e WHERE elected_at < now() - $2::interval AND NOT ALIVE`),
		log: log,
	}
}

// run holds the lock and looks for orphans until ctx ends. While the database
// is away nothing is lost: it starts again with a new connection.
func (o *orphans) run(ctx context.Context) error {
	for {
		if err := o.serve(ctx); err != nil && ctx.Err() == nil {
			o.log.WarnContext(ctx, "looking for orphaned jobs failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(orphanInterval / 3):
		}
	}
}

func (o *orphans) serve(ctx context.Context) error {
	conn, err := o.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // lets go of the lock
	}()
	if _, err := conn.Exec(ctx, `select pg_advisory_lock_shared($1::int, hashtext($2))`, lockClass, o.clientID); err != nil {
		return fmt.Errorf("lock client id: %w", err)
	}
	tick := time.NewTicker(orphanInterval)
	defer tick.Stop()
	for {
		// First wait: after a restart of Postgres the others, who are alive,
		// need a moment to lock again.
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := o.sweep(ctx, conn); err != nil {
			return err
		}
	}
}

func (o *orphans) sweep(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, o.free, int64(lockClass), orphanAge)
	if err != nil {
		return fmt.Errorf("free orphaned jobs: %w", err)
	}
	if n := tag.RowsAffected(); n > 0 {
		o.log.WarnContext(ctx, "jobs of an ended process taken up", "count", n)
	}
	if _, err := conn.Exec(ctx, o.depose, int64(lockClass), orphanAge); err != nil {
		return fmt.Errorf("depose ended leader: %w", err)
	}
	return nil
}
