package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
	"github.com/berth-dev/berth/services/runner-api/internal/state"
)

// LockState locks a resource's state for an attempt that mutates it.
func (a *API) LockState(ctx context.Context, req apigen.LockStateRequestObject) (apigen.LockStateResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	info, err := json.Marshal(req.Body.Info)
	if err != nil {
		return nil, fmt.Errorf("encode lock info: %w", err)
	}
	var holder runnerdb.RunnerStateLockRow
	var verdict state.LockVerdict
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		at, err := attemptOf(ctx, tx, s, session.Attempt{JobID: req.Body.JobID, Attempt: req.Body.Attempt})
		if err != nil {
			return err
		}
		if err := at.checkResource(req.Resource); err != nil {
			return err
		}
		if err := mayLock(at, req.Body.Fence); err != nil {
			return err
		}
		holder, verdict, err = lockState(ctx, tx, runnerdb.RunnerTakeStateLockParams{
			ResourceID: req.Resource, LockID: req.Body.LockID, Info: info, JobID: at.ID, Attempt: int32(at.number), Fence: req.Body.Fence,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lock state: %w", err)
	}
	shown, err := showLock(holder)
	if err != nil {
		return nil, err
	}
	if verdict == state.Busy {
		return apigen.LockState423ApplicationProblemPlusJSONResponse(lockedBy(shown)), nil
	}
	return apigen.LockState200JSONResponse(shown), nil
}

// mayLock: only an attempt that mutates, is under way, and has the newest
// grant of the resource.
func mayLock(at attempt, fence int64) error {
	switch {
	case !at.Mutates || at.Fence == nil:
		return fault.With(fault.Newf(fault.ErrForbidden, "a job with operation %s cannot lock", at.Operation), fault.Code("not_mutating"))
	case !at.open() || at.superseded():
		return errSuperseded("attempt %d of the job is over", at.number)
	case fence != *at.Fence:
		return errSuperseded("fence %d is not the job's, %d", fence, *at.Fence)
	}
	return nil
}

// lockState takes the lock unless another attempt holds it.
func lockState(ctx context.Context, tx *database.Tx, take runnerdb.RunnerTakeStateLockParams) (holder runnerdb.RunnerStateLockRow, _ state.LockVerdict, _ error) {
	held, err := found(tx.RunnerStateLock(ctx, take.ResourceID))
	if err != nil {
		return holder, "", err
	}
	verdict := state.AcceptLock(heldLock(held), state.Lock{ID: take.LockID, JobID: take.JobID, Attempt: int(take.Attempt), Fence: take.Fence})
	if verdict != state.Take {
		return *held, verdict, nil
	}
	if held != nil {
		take.OldLockID, take.OldJobID = held.LockID, held.JobID
	}
	taken, err := tx.RunnerTakeStateLock(ctx, take)
	return runnerdb.RunnerStateLockRow(taken), verdict, err
}

// UnlockState frees the lock that an attempt holds.
func (a *API) UnlockState(ctx context.Context, req apigen.UnlockStateRequestObject) (apigen.UnlockStateResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	var other *runnerdb.RunnerStateLockRow
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		at, err := attemptOf(ctx, tx, s, session.Attempt{JobID: req.Body.JobID, Attempt: req.Body.Attempt})
		if err != nil {
			return err
		}
		if err := at.checkResource(req.Resource); err != nil {
			return err
		}
		held, err := found(tx.RunnerStateLock(ctx, req.Resource))
		if err != nil || held == nil {
			return err
		}
		if held.LockID != req.Body.LockID || held.JobID != at.ID || int(held.Attempt) != at.number {
			other = held
			return nil
		}
		return tx.RunnerFreeStateLock(ctx, runnerdb.RunnerFreeStateLockParams{
			ResourceID: req.Resource, LockID: held.LockID, JobID: held.JobID, Attempt: held.Attempt,
		})
	})
	if err != nil {
		return nil, fmt.Errorf("unlock state: %w", err)
	}
	if other == nil {
		return apigen.UnlockState204Response{}, nil
	}
	shown, err := showLock(*other)
	if err != nil {
		return nil, err
	}
	return apigen.UnlockState423ApplicationProblemPlusJSONResponse(lockedBy(shown)), nil
}

func heldLock(row *runnerdb.RunnerStateLockRow) *state.Lock {
	if row == nil {
		return nil
	}
	return &state.Lock{ID: row.LockID, JobID: row.JobID, Attempt: int(row.Attempt), Fence: row.Fence}
}

func showLock(row runnerdb.RunnerStateLockRow) (apigen.Lock, error) {
	lock := apigen.Lock{LockID: row.LockID, JobID: row.JobID, Attempt: int(row.Attempt), Fence: row.Fence, LockedAt: row.LockedAt.UTC()}
	if err := json.Unmarshal(row.Info, &lock.Info); err != nil {
		return lock, fmt.Errorf("lock of job %s: %w", row.JobID, err)
	}
	return lock, nil
}

func lockedBy(holder apigen.Lock) apigen.LockProblem {
	detail := fmt.Sprintf("the state is locked by attempt %d of job %s", holder.Attempt, holder.JobID)
	return apigen.LockProblem{
		Type: "about:blank", Title: http.StatusText(http.StatusLocked), Status: http.StatusLocked, Code: "locked", Detail: &detail, Holder: holder,
	}
}
