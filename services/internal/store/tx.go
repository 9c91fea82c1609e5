package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/propagation"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/shareddb"
)

const (
	// A transaction that loses to others this often is an overload, not bad luck.
	maxTxAttempts = 5

	// Rolling back is one round trip on a connection that may be half dead.
	rollbackTimeout = 5 * time.Second
)

// Tx is one transaction. It is not safe for concurrent use and must not
// outlive the function it was given to. That of a service's own store ([Typed])
// has the statements of that service.
type Tx struct {
	tx    pgx.Tx
	org   string
	hooks []func()
	notes []notification
}

// DB runs the generated statements of any of the packages, as in
// shareddb.New(tx.DB()). Their errors have kinds already: compare with
// fault.ErrNotFound, not with pgx.ErrNoRows.
func (t *Tx) DB() shareddb.DBTX { return translating{t.tx} }

// Raw is for libraries that join the transaction, such as River's InsertTx.
func (t *Tx) Raw() pgx.Tx { return t.tx }

// OrgID is the org whose rows this transaction sees; empty in System.
func (t *Tx) OrgID() string { return t.org }

// Follow has what SQL functions wake from here on belong to the trace of ctx,
// instead of that which the transaction began in.
func (t *Tx) Follow(ctx context.Context) error {
	if _, err := t.tx.Exec(ctx, `select set_config('berth.traceparent', $1, true)`, traceparent(ctx)); err != nil {
		return fmt.Errorf("set trace: %w", err)
	}
	return nil
}

// AfterCommit runs fn once the transaction is durable; never when it is rolled
// back, and only for the attempt that won when the transaction was retried.
func (t *Tx) AfterCommit(fn func()) { t.hooks = append(t.hooks, fn) }

// NotifyAfterCommit wakes the listeners of channel that wait for key. It is a
// hint: sent soon after the commit, coalesced with equal ones of other
// transactions, and lost if this process dies in between, so every listener
// must also find the work by looking.
//
// It is not a NOTIFY inside the transaction, because a pending one makes
// commits queue behind a lock of the whole database.
func (t *Tx) NotifyAfterCommit(channel model.Channel, key string) {
	t.notes = append(t.notes, notification{channel: channel, key: key})
}

// Tx runs fn in a transaction that sees and writes the rows of one org only.
// It commits when fn returns nil. fn runs again, up to 5 times, when Postgres
// says that the transaction lost against another one (serialization failure,
// deadlock), so it must keep its effects inside the transaction or in
// AfterCommit.
func (s *Store) Tx(ctx context.Context, orgID string, fn func(ctx context.Context, tx *Tx) error) error {
	if orgID == "" {
		return errors.New("store.Tx without an org: use System for work across orgs")
	}
	return s.run(ctx, scope{org: orgID}, fn)
}

// ErrNoObject says that no org has the id that TxOf was asked for.
var ErrNoObject = fault.Newf(fault.ErrNotFound, "there is no such object")

// TxOf is Tx for the org that an id belongs to, which the transaction finds out
// itself: one look-up less than asking first. ErrNoObject when no org has it.
func (s *Store) TxOf(ctx context.Context, objectID string, fn func(ctx context.Context, tx *Tx) error) error {
	if objectID == "" {
		return ErrNoObject
	}
	return s.run(ctx, scope{object: objectID}, fn)
}

// System runs fn in a transaction without an org, for the named functions that
// work across orgs (SECURITY DEFINER). Tenant tables read empty in it.
func (s *Store) System(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return s.run(ctx, scope{}, fn)
}

// scope says whose rows a transaction sees: those of an org, those of the org of
// an object, or none.
type scope struct{ org, object string }

func (s *Store) run(ctx context.Context, of scope, fn func(ctx context.Context, tx *Tx) error) error {
	for attempt := 1; ; attempt++ {
		tx, err := s.attempt(ctx, of, fn)
		if err == nil {
			s.notifier.add(tx.notes)
			for _, hook := range tx.hooks {
				hook()
			}
			return nil
		}
		if !retryable(err) {
			return translate(err)
		}
		if attempt == maxTxAttempts {
			return fault.Wrap(fault.ErrUnavailable, err, "too many others are changing the same things; try again")
		}
		// The other side needs a moment to finish; apart, so that two who
		// collided do not collide again.
		pause := time.Duration(attempt) * time.Duration(5+rand.IntN(20)) * time.Millisecond //nolint:gosec // no secret
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (s *Store) attempt(ctx context.Context, of scope, fn func(ctx context.Context, tx *Tx) error) (_ *Tx, err error) {
	raw, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	committed := false
	defer func() {
		if committed {
			return
		}
		// Also on panic. The context may be the reason we are here.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = raw.Rollback(ctx) // the first error is the one that matters; a broken connection rolls back by itself
	}()
	set := `select set_config('berth.org', $1, true), set_config('berth.traceparent', $2, true)`
	if of.object != "" {
		of.org, set = of.object, `select set_config('berth.org', coalesce(berth.org_of($1), ''), true), set_config('berth.traceparent', $2, true)`
	}
	tx := &Tx{tx: raw}
	if err := raw.QueryRow(ctx, set, of.org, traceparent(ctx)).Scan(&tx.org, nil); err != nil {
		return nil, fmt.Errorf("set org: %w", err)
	}
	if of.object != "" && tx.org == "" {
		return nil, ErrNoObject
	}
	heard := raw.Conn().PgConn().CustomData()
	delete(heard, eventsHeard) // of a transaction that was rolled back
	if err := fn(ctx, tx); err != nil {
		return nil, err
	}
	_, events := heard[eventsHeard] // before the connection goes back to the pool
	if err := raw.Commit(ctx); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	committed = true
	if events {
		tx.NotifyAfterCommit(model.ChannelOutbox, "")
	}
	return tx, nil
}

// traceparent lets SQL functions that wake another service pass the trace on.
func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}
