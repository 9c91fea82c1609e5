// Package database is the way of log-ingest to Postgres: transactions with its own
// statements, which its own role may run.
package database

import (
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/logdb"
)

// Tx is a transaction with the statements of log-ingest.
type Tx struct {
	*store.Tx
	*logdb.Queries
}

// Store is the database as log-ingest uses it.
type Store = store.Typed[*Tx]

// New is a store that has the role of log-ingest.
func New(st *store.Store) *Store {
	return store.NewTyped(st, func(tx *store.Tx) *Tx { return &Tx{Tx: tx, Queries: logdb.New(tx.DB())} })
}
