// Package database is the way of runner-api to Postgres: transactions with its own
// statements, which its own role may run.
package database

import (
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

// Tx is a transaction with the statements of runner-api.
type Tx struct {
	*store.Tx
	*runnerdb.Queries
}

// Store is the database as runner-api uses it.
type Store = store.Typed[*Tx]

// New is a store that has the role of runner-api.
func New(st *store.Store) *Store {
	return store.NewTyped(st, func(tx *store.Tx) *Tx { return &Tx{Tx: tx, Queries: runnerdb.New(tx.DB())} })
}
