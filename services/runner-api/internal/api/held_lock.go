package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// GetStateLock tells the customer who holds the state of a resource of the install.
func (a *API) GetStateLock(ctx context.Context, req apigen.GetStateLockRequestObject) (apigen.GetStateLockResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if s.Disputed {
		return nil, session.ErrDisputed()
	}
	install, err := installOf(s)
	if err != nil {
		return nil, err
	}
	var held *runnerdb.RunnerHeldLockRow
	err = a.read(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		held, err = found(tx.RunnerHeldLock(ctx, runnerdb.RunnerHeldLockParams{ResourceID: req.Resource, InstallID: install}))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get state lock: %w", err)
	}
	if held == nil {
		return apigen.GetStateLock204Response{}, nil
	}
	lock, err := showLock(runnerdb.RunnerStateLockRow{
		LockID: held.LockID, Info: held.Info, JobID: held.JobID, Attempt: held.Attempt, Fence: held.Fence, LockedAt: held.LockedAt,
	})
	if err != nil {
		return nil, err
	}
	return apigen.GetStateLock200JSONResponse{Lock: lock, JobState: string(held.JobState)}, nil
}
