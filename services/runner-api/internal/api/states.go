package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
	"github.com/berth-dev/berth/services/runner-api/internal/state"
)

// wholeOrphans is how many refused states of a resource are kept with their
// bytes, the newest: a runner that goes on and on must not fill the disk. Of
// older ones the digest says which they were.
const wholeOrphans = 20

// resourceAttempt is attemptOf for jobs of this resource; other jobs do not
// exist here.
func resourceAttempt(ctx context.Context, tx *database.Tx, s *session.Session, resource, jobID string, number int) (attempt, error) {
	at, err := attemptOf(ctx, tx, s, jobID, number)
	if err != nil {
		return at, err
	}
	if at.ResourceID == nil || *at.ResourceID != resource || at.LeaseID == "" {
		return at, fault.Newf(fault.ErrNotFound, "there is no such attempt at this resource")
	}
	return at, nil
}

// GetState reads the sealed state for an attempt that works on its resource.
func (a *API) GetState(ctx context.Context, req apigen.GetStateRequestObject) (apigen.GetStateResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	var current *runnerdb.RunnerCurrentStateRow
	var lock *runnerdb.RunnerStateLockRow
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		at, err := resourceAttempt(ctx, tx, s, req.Resource, req.Params.JobID, req.Params.Attempt)
		if err != nil {
			return err
		}
		if !at.open() {
			return fault.Newf(fault.ErrNotFound, "there is no such attempt at this resource")
		}
		if current, err = found(tx.RunnerCurrentState(ctx, req.Resource)); err != nil {
			return err
		}
		lock, err = found(tx.RunnerStateLock(ctx, req.Resource))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get state: %w", err)
	}
	if current == nil {
		return apigen.GetState204Response{}, nil
	}
	answer := apigen.GetState200JSONResponse{
		StateID: current.ID, Serial: current.Serial, Lineage: current.Lineage, Digest: current.Digest, Body: current.Body,
	}
	if lock != nil {
		shown, err := showLock(*lock)
		if err != nil {
			return nil, err
		}
		answer.Lock = &shown
	}
	return answer, nil
}

// PutState makes a state the current one, or keeps it as evidence.
func (a *API) PutState(ctx context.Context, req apigen.PutStateRequestObject) (apigen.PutStateResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	summary := json.RawMessage(`{}`)
	if req.Body.Summary != nil {
		if summary, err = json.Marshal(req.Body.Summary); err != nil {
			return nil, fmt.Errorf("encode summary: %w", err)
		}
	}
	var verdict state.Verdict
	var stateID, reason string
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		at, err := resourceAttempt(ctx, tx, s, req.Resource, req.Body.JobID, req.Body.Attempt)
		if err != nil {
			return err
		}
		verdict, stateID, reason, err = putState(ctx, tx, at, req.Resource, req.Body, summary)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("put state: %w", err)
	}
	if verdict != state.Orphaned {
		return apigen.PutState200JSONResponse{StateID: stateID, Serial: req.Body.Serial}, nil
	}
	a.metrics.orphaned.Add(ctx, 1)
	a.log.WarnContext(ctx, "state refused and kept", "org_id", s.OrgID, "runner_id", s.RunnerID, "job_id", req.Body.JobID,
		"attempt", req.Body.Attempt, "resource_id", req.Resource, "state_id", stateID, "reason", reason)
	remedy := "stop this attempt; a new plan shows what is there"
	return apigen.PutState409ApplicationProblemPlusJSONResponse{
		Type: "about:blank", Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict,
		Code: "state_refused", Detail: &reason, Remedy: &remedy, StateID: stateID,
	}, nil
}

func putState(ctx context.Context, tx *database.Tx, at attempt, resource string, w *apigen.StateWrite, summary json.RawMessage) (verdict state.Verdict, stateID, reason string, _ error) {
	head, err := found(tx.RunnerStateHead(ctx, resource))
	if err != nil {
		return "", "", "", err
	}
	lock, err := found(tx.RunnerStateLock(ctx, resource))
	if err != nil {
		return "", "", "", err
	}
	var stored *state.Stored
	if head != nil {
		stored = &state.Stored{Serial: head.Serial, Lineage: head.Lineage, Digest: head.Digest, Fence: head.Fence}
	}
	verdict, reason = state.AcceptWrite(stored, heldLock(lock), state.Write{
		LockID: w.LockID, JobID: at.ID, Attempt: at.number, Fence: w.Fence, Serial: w.Serial, Lineage: w.Lineage, Digest: w.Digest,
		LeaseOpen: at.open(), ResourceFence: at.ResourceFence,
	})
	keep := runnerdb.RunnerKeepStateParams{
		ID: id.New("tfs"), ResourceID: resource, Serial: w.Serial, Lineage: w.Lineage, Kind: model.StateCurrent, Body: w.Body, Digest: w.Digest,
		Summary: summary, JobID: at.ID, Attempt: int32(at.number), Fence: w.Fence, Reason: reason,
	}
	switch verdict {
	case state.Replayed:
		return verdict, head.ID, "", nil
	case state.Accepted:
		if head != nil {
			if err := tx.RunnerSupersedeState(ctx, head.ID); err != nil {
				return "", "", "", err
			}
		}
		return verdict, keep.ID, "", tx.RunnerKeepState(ctx, keep)
	}
	// The same evidence again is kept once.
	before, err := tx.RunnerOrphanedState(ctx, runnerdb.RunnerOrphanedStateParams{
		ResourceID: resource, JobID: at.ID, Attempt: keep.Attempt, Serial: w.Serial, Digest: w.Digest,
	})
	known, err := found(before, err)
	if err != nil {
		return "", "", "", err
	}
	if known != nil {
		return verdict, *known, reason, nil
	}
	keep.Kind = model.StateOrphaned
	if err := tx.RunnerKeepState(ctx, keep); err != nil {
		return "", "", "", err
	}
	return verdict, keep.ID, reason, tx.RunnerDropOrphanedBodies(ctx, runnerdb.RunnerDropOrphanedBodiesParams{ResourceID: resource, Whole: wholeOrphans})
}
