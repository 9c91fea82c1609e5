// Package turn lets one replica at a time do what must not be done twice.
//
//	wait ──lock──▶ work ──another has the lock──▶ wait
//	                │ ▲
//	  database away └─┘
//
// The turn is an advisory lock of a session of its own, which Postgres frees when
// the process or its machine is gone. Who has it and loses the database goes on:
// without the database nobody else can begin. When it is back, and somebody else
// was faster, the work is stopped.
package turn

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/services/internal/store"
)

const (
	// lockClass is the first half of the lock's two keys: "turn".
	lockClass = 0x7475726e

	// Who works looks more often than who waits, so that it is the first to be
	// back after a restart of Postgres.
	workInterval = time.Second
	waitInterval = 3 * time.Second

	askTimeout   = 5 * time.Second
	closeTimeout = time.Second

	// handover is enough for who had the turn before, and lost its session, to
	// see that and stop.
	handover = workInterval + askTimeout
)

// Turn is one replica's part in taking turns under a name.
type Turn struct {
	name    string
	connect func(ctx context.Context) (*pgx.Conn, error)
	conn    *pgx.Conn // nil when there is none
	log     *slog.Logger
}

// New is the turn of this name among all who use the same database.
func New(st *store.Store, name string, log *slog.Logger) *Turn {
	cfg := st.Pool().Config().ConnConfig.Copy()
	cfg.Tracer = nil
	// A machine that vanishes is noticed after 25 s, not after two hours.
	cfg.RuntimeParams["tcp_keepalives_idle"] = "10"
	cfg.RuntimeParams["tcp_keepalives_interval"] = "5"
	cfg.RuntimeParams["tcp_keepalives_count"] = "3"
	return &Turn{name: name, log: log, connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, cfg.Copy()) }}
}

// Run waits for the turn and does the work, again and again until ctx ends. The
// work ends when its context does; it is waited for. When it ends by itself, Run
// returns what it returned.
func (t *Turn) Run(ctx context.Context, work func(context.Context) error) error {
	defer func() { t.drop(context.WithoutCancel(ctx)) }()
	// That nobody has the lock does not mean that nobody works: a session may have
	// been lost this moment. So each turn begins after the handover.
	careful, told := true, false
	for ctx.Err() == nil {
		mine, err := t.ask(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			careful = true
			t.log.WarnContext(ctx, "turn not known", "turn", t.name, "err", err)
		case mine && careful:
			careful = false
			pause(ctx, handover)
			continue // to see that it is still ours
		case mine:
			t.log.InfoContext(ctx, "turn begins", "turn", t.name)
			if ended, err := t.work(ctx, work); ended {
				return err
			}
			t.log.WarnContext(ctx, "turn is another replica's", "turn", t.name)
			careful, told = true, true
		default:
			if !told {
				t.log.InfoContext(ctx, "waiting for another replica's turn to end", "turn", t.name)
			}
			careful, told = true, true
		}
		pause(ctx, waitInterval)
	}
	return nil
}

// work does it until it or ctx ends, or somebody else has the turn.
func (t *Turn) work(ctx context.Context, work func(context.Context) error) (ended bool, _ error) {
	own, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- work(own) }()
	for {
		select {
		case err := <-done:
			return true, err
		case <-time.After(workInterval):
		}
		if mine, err := t.ask(ctx); err == nil && !mine {
			stop()
			<-done // it was stopped: what it says of that is of no use
			return false, nil
		}
	}
}

// ask takes the lock, or sees that the session which has it still lives. An
// error says that nobody knows.
func (t *Turn) ask(ctx context.Context) (mine bool, _ error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if t.conn == nil {
		conn, err := t.connect(ctx)
		if err != nil {
			return false, fmt.Errorf("connect: %w", err)
		}
		t.conn = conn
	}
	// It is taken once, and given back by the end of the session alone.
	const statement = `SELECT EXISTS (
		SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND granted AND objsubid = 2
		  AND classid::bigint = $1 AND objid::bigint = hashtext($2)::bigint & 4294967295
	) OR pg_try_advisory_lock($1::int, hashtext($2))`
	if err := t.conn.QueryRow(ctx, statement, int64(lockClass), t.name).Scan(&mine); err != nil {
		t.drop(ctx)
		return false, fmt.Errorf("ask for the turn: %w", err)
	}
	return mine, nil
}

// drop ends the session, and with it the turn.
func (t *Turn) drop(ctx context.Context) {
	if t.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = t.conn.Close(ctx) // it may be broken, that is why it is dropped
	t.conn = nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
