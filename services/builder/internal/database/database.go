// Package database is the way of builder to Postgres: transactions with its own
// statements, which its own role may run.
package database

import (
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/builderdb"
)

// Tx is a transaction with the statements of builder.
type Tx struct {
	*store.Tx
	*builderdb.Queries
}

// Store is the database as builder uses it.
type Store = store.Typed[*Tx]

// New is a store that has the role of builder.
func New(st *store.Store) *Store {
	return store.NewTyped(st, func(tx *store.Tx) *Tx { return &Tx{Tx: tx, Queries: builderdb.New(tx.DB())} })
}
