package store

import "context"

// Typed is the Store of one service: its transactions are T, a [Tx] with the
// statements of that service. Each service has its own in its package database.
type Typed[T any] struct {
	*Store

	with func(*Tx) T
}

// NewTyped is st with transactions that with gives their statements.
func NewTyped[T any](st *Store, with func(*Tx) T) *Typed[T] { return &Typed[T]{Store: st, with: with} }

// Tx is [Store.Tx].
func (t *Typed[T]) Tx(ctx context.Context, orgID string, fn func(ctx context.Context, tx T) error) error {
	return t.Store.Tx(ctx, orgID, t.through(fn))
}

// TxOf is [Store.TxOf].
func (t *Typed[T]) TxOf(ctx context.Context, objectID string, fn func(ctx context.Context, tx T) error) error {
	return t.Store.TxOf(ctx, objectID, t.through(fn))
}

// System is [Store.System].
func (t *Typed[T]) System(ctx context.Context, fn func(ctx context.Context, tx T) error) error {
	return t.Store.System(ctx, t.through(fn))
}

func (t *Typed[T]) through(fn func(ctx context.Context, tx T) error) func(context.Context, *Tx) error {
	return func(ctx context.Context, tx *Tx) error { return fn(ctx, t.with(tx)) }
}
