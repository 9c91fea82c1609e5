//go:build !planted

package workflow

import (
	"context"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// free.go is replaced by free_planted.go in executables that have a bug on purpose.

// free takes the lock of a resource from the change that has ended.
func free(ctx context.Context, tx *database.Tx, p ctldb.SettleResourceParams) error {
	return tx.SettleResource(ctx, p)
}

// wakeNext wakes those who may wait for the resource that a change of w has freed.
func wakeNext(ctx context.Context, tx *database.Tx, w ctldb.Workflow) error {
	return wakeOthers(ctx, tx, w)
}
