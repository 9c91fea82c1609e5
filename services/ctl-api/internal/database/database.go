// Package database is the way of ctl-api to Postgres: transactions with its own
// statements, which its own role may run.
package database

import (
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Tx is a transaction with the statements of ctl-api.
type Tx struct {
	*store.Tx
	*ctldb.Queries
}

// Store is the database as ctl-api uses it.
type Store = store.Typed[*Tx]

// New is a store that has the role of ctl-api.
func New(st *store.Store) *Store {
	return store.NewTyped(st, func(tx *store.Tx) *Tx { return &Tx{Tx: tx, Queries: ctldb.New(tx.DB())} })
}
