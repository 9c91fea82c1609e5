package depot

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// Locks are those of all replicas: they are the database's, which frees them
// when their holder is gone. A replica holds one at a time, and with it one
// connection, however many pushes wait.
type Locks struct {
	Store *database.Store

	mu sync.Mutex
}

var _ registry.Locker = (*Locks)(nil)

// Locked implements [registry.Locker].
func (l *Locks) Locked(ctx context.Context, name string, do func(context.Context) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		if err := tx.BuilderLock(ctx, name); err != nil {
			return err
		}
		return do(ctx)
	})
}
