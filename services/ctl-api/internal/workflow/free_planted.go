//go:build planted

package workflow

import (
	"context"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/planted"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

func free(ctx context.Context, tx *database.Tx, p ctldb.SettleResourceParams) error {
	if planted.Is(planted.KeptLock) && p.State == model.ResourceFailed {
		return nil
	}
	return tx.SettleResource(ctx, p)
}

func wakeNext(ctx context.Context, tx *database.Tx, w ctldb.Workflow) error {
	if planted.Is(planted.LostWakeUp) {
		return nil
	}
	return wakeOthers(ctx, tx, w)
}
