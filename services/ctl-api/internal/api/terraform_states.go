package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/tfstates"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListTerraformStates answers what is known of the newest states of an install.
func (s *Server) ListTerraformStates(ctx context.Context, req apigen.ListTerraformStatesRequestObject) (apigen.ListTerraformStatesResponseObject, error) {
	out := apigen.ListTerraformStates200JSONResponse{Items: []apigen.TerraformState{}}
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		rows, err := tx.ShowTerraformStates(ctx, ctldb.ShowTerraformStatesParams{InstallID: found.ID})
		for _, row := range rows {
			view := terraformStateView(row)
			view.Objects, view.Outputs, view.LeftOut = nil, nil, nil
			out.Items = append(out.Items, view)
		}
		return err
	})
	return out, err
}

// GetTerraformState answers what is known of one state.
func (s *Server) GetTerraformState(ctx context.Context, req apigen.GetTerraformStateRequestObject) (apigen.GetTerraformStateResponseObject, error) {
	var out apigen.GetTerraformState200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := terraformStateOf(ctx, tx, req.Install, req.Resource)
		out = apigen.GetTerraformState200JSONResponse(terraformStateView(row))
		return err
	})
	return out, err
}

// ListTerraformStateHistory answers the states that a resource has had.
func (s *Server) ListTerraformStateHistory(ctx context.Context, req apigen.ListTerraformStateHistoryRequestObject) (apigen.ListTerraformStateHistoryResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListTerraformStateHistory200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		resource, err := terraformStateOf(ctx, tx, req.Install, req.Resource)
		if err != nil {
			return err
		}
		rows, err := tx.TerraformStateHistory(ctx, ctldb.TerraformStateHistoryParams{
			ResourceID: resource.ResourceID, After: optional.Value(req.Params.After), Most: int32(limit + 1),
		})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.TerraformStateHistoryRow) string { return r.ID })
		out.Items = convert(rows, func(r ctldb.TerraformStateHistoryRow) apigen.TerraformStateVersion {
			return apigen.TerraformStateVersion{
				ID: r.ID, Serial: r.Serial, Lineage: r.Lineage, Kind: apigen.TerraformStateVersionKind(r.Kind), Digest: r.Digest, Bytes: optional.Of(r.Bytes),
				JobID: r.JobID, ChangeID: optional.Of(r.ChangeID), Reason: optional.Of(r.Reason), WrittenAt: r.CreatedAt,
			}
		})
		return err
	})
	return out, err
}

// UnlockTerraformState frees a lock whose job has ended.
func (s *Server) UnlockTerraformState(ctx context.Context, req apigen.UnlockTerraformStateRequestObject) (apigen.UnlockTerraformStateResponseObject, error) {
	var out apigen.UnlockTerraformState200JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (what string, err error) {
		row, err := terraformStateOf(ctx, tx, req.Install, req.Resource)
		if err != nil {
			return "", err
		}
		// Grants and unlocks of a resource are one after the other; what was read before
		// may be over.
		if _, err := tx.LockResourceRow(ctx, row.ResourceID); err != nil {
			return "", err
		}
		if row, err = terraformStateOf(ctx, tx, req.Install, row.ResourceID); err != nil {
			return "", err
		}
		if what, err = freeTerraformLock(ctx, tx, row); err != nil {
			return "", err
		}
		view := terraformStateView(row)
		view.Lock = nil
		out = apigen.UnlockTerraformState200JSONResponse(view)
		return what, nil
	})
	return out, err
}

// freeTerraformLock frees the lock, if there is one, and returns what was done.
func freeTerraformLock(ctx context.Context, tx *database.Tx, row ctldb.ShowTerraformStatesRow) (what string, err error) {
	if row.LockID == "" {
		return "", nil
	}
	if err := tfstates.MayFree(heldLock(row)); err != nil {
		return "", err
	}
	fence, err := tx.RaiseFence(ctx, row.ResourceID)
	if err != nil {
		return "", fmt.Errorf("raise fence: %w", err)
	}
	if err := tx.FreeTerraformLock(ctx, ctldb.FreeTerraformLockParams{ResourceID: row.ResourceID, Fence: fence}); err != nil {
		return "", fmt.Errorf("free terraform lock: %w", err)
	}
	return fmt.Sprintf("free the lock that job %s held on the Terraform state of %s (%s), fence %d", row.LockJobID, row.Name, row.ResourceID, fence), nil
}

func heldLock(row ctldb.ShowTerraformStatesRow) tfstates.Held {
	return tfstates.Held{JobID: row.LockJobID, JobState: model.JobState(row.LockJobState), LockedBy: optional.Value(row.LockedBy)}
}

// terraformStateOf finds what is known of one state, by the name or id of its resource.
func terraformStateOf(ctx context.Context, tx *database.Tx, install, resource string) (row ctldb.ShowTerraformStatesRow, _ error) {
	found, err := installs.Find(ctx, tx, install)
	if err != nil {
		return row, err
	}
	rows, err := tx.ShowTerraformStates(ctx, ctldb.ShowTerraformStatesParams{InstallID: found.ID, Ref: resource})
	if err != nil {
		return row, err
	}
	if len(rows) == 0 {
		return row, fault.With(fault.Newf(fault.ErrNotFound, "install %s has no Terraform state of %q", found.Name, resource),
			fault.Remedy("berth states list %s shows which there are", found.Name))
	}
	return rows[0], nil
}

func terraformStateView(row ctldb.ShowTerraformStatesRow) apigen.TerraformState {
	view := apigen.TerraformState{ResourceID: row.ResourceID, Kind: apigen.TerraformStateKind(row.Kind), Name: row.Name}
	if row.StateID != "" {
		told := tfstates.Read(row.Summary)
		view.Current = &apigen.TerraformStateVersion{
			ID: row.StateID, Serial: row.Serial, Lineage: row.Lineage, Kind: apigen.TerraformStateVersionKind(model.StateCurrent), Digest: row.Digest,
			Bytes: optional.Of(told.Bytes), JobID: row.JobID, ChangeID: optional.Of(row.ChangeID), WrittenAt: row.WrittenAt,
		}
		addTold(&view, told)
	}
	if row.LockID != "" && row.LockedAt != nil {
		who, operation := tfstates.Holder(row.LockInfo)
		view.Lock = &apigen.TerraformLock{
			LockID: row.LockID, JobID: row.LockJobID, Attempt: int(row.LockAttempt), ChangeID: optional.Of(row.LockChangeID), Who: optional.Of(who),
			Operation: optional.Of(operation), LockedAt: *row.LockedAt, Alive: heldLock(row).Alive(), JobState: optional.Of(row.LockJobState),
		}
	}
	return view
}

// addTold adds what the runner tells of the state.
func addTold(view *apigen.TerraformState, told tfstate.Summary) {
	level := apigen.TerraformStateLevel(told.Level)
	view.Level, view.TerraformVersion, view.LeftOut = &level, optional.Of(told.Terraform), optional.Of(told.LeftOut)
	if told.Resources != nil {
		view.Counts = &told.Resources
	}
	if told.Level == tfstate.Counts {
		return
	}
	objects := convert(told.Objects, func(o tfstate.Object) apigen.TerraformObject {
		out := apigen.TerraformObject{Address: o.Address, Tainted: optional.Of(o.Tainted)}
		if told.Level == tfstate.Attributes && o.Attributes != nil {
			out.Attributes = &o.Attributes
		}
		return out
	})
	view.Objects = &objects
	if told.Level == tfstate.Attributes {
		view.Outputs = &told.Outputs
	}
}
