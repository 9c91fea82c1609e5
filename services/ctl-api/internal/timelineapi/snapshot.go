package timelineapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/snapshot"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
)

// GetSnapshot answers what an install was at a time.
func (h *Past) GetSnapshot(ctx context.Context, req apigen.GetSnapshotRequestObject) (apigen.GetSnapshotResponseObject, error) {
	var out apigen.GetSnapshot200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		s, err := h.Snapshots.At(ctx, tx, found, h.orNow(req.Params.At))
		if err != nil {
			return err
		}
		view, err := snapshotView(s)
		out = apigen.GetSnapshot200JSONResponse(view)
		return err
	})
	return out, err
}

// DiffSnapshots answers what differs between two times.
func (h *Past) DiffSnapshots(ctx context.Context, req apigen.DiffSnapshotsRequestObject) (apigen.DiffSnapshotsResponseObject, error) {
	from, to := req.Params.From, h.orNow(req.Params.To)
	if to.Before(from) {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "the first time lies after the second"), fault.Remedy("name the earlier time first"))
	}
	var out apigen.DiffSnapshots200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		was, err := h.Snapshots.At(ctx, tx, found, from)
		if err != nil {
			return err
		}
		is, err := h.Snapshots.At(ctx, tx, found, to)
		if err != nil {
			return err
		}
		changes, err := h.Snapshots.Compare(ctx, tx, was, is)
		out = apigen.DiffSnapshots200JSONResponse{From: from, To: to, Changes: changesView(changes)}
		return err
	})
	return out, err
}

func snapshotView(s snapshot.Snapshot) (apigen.Snapshot, error) {
	i := s.Install
	view := apigen.Snapshot{
		At: s.At, StateVersion: int(s.StateVersion), Release: apiref.Number(i.ReleaseID, i.ReleaseNumber),
		Install:   apigen.SnapshotInstall{Name: i.Name, State: i.State, ApprovalOption: i.ApprovalOption, ApprovalHours: int(i.ApprovalHours)},
		Inputs:    apigen.SnapshotInputs{Version: int(s.Inputs.Version), SetBy: optional.Of(s.Inputs.SetBy), Values: s.Inputs.Values},
		Resources: make([]apigen.SnapshotResource, 0, len(s.Resources)), Approvals: make([]apigen.SnapshotApproval, 0, len(s.Approvals)),
	}
	if i.ConfigNumber != nil {
		view.Config = optional.Of(int(*i.ConfigNumber))
	}
	if !s.Inputs.SetAt.IsZero() {
		view.Inputs.SetAt = &s.Inputs.SetAt
	}
	if err := json.Unmarshal(i.Labels, &view.Install.Labels); err != nil {
		return view, fmt.Errorf("read labels: %w", err)
	}
	if err := json.Unmarshal(i.Toggles, &view.Install.ComponentToggles); err != nil {
		return view, fmt.Errorf("read toggles: %w", err)
	}
	for _, r := range s.Resources {
		outputs, err := json.Marshal(snapshot.Outputs(r.Outputs))
		if err != nil {
			return view, err
		}
		item := apigen.SnapshotResource{
			Kind: string(r.Kind), Name: r.Name, Type: r.Type, State: r.State, Health: r.Health, Drift: r.Drift, Release: apiref.Number(r.LiveReleaseID, r.LiveReleaseNumber),
			ArtifactDigest: r.LiveArtifactDigest, ChangeID: r.LiveChangeID, Outputs: outputs,
		}
		if r.LiveInputsVersion != nil {
			item.InputsVersion = optional.Of(int(*r.LiveInputsVersion))
		}
		view.Resources = append(view.Resources, item)
	}
	for _, a := range s.Approvals {
		view.Approvals = append(view.Approvals, apigen.SnapshotApproval{
			ChangeID: a.ID, WorkflowID: a.WorkflowID, Kind: string(a.Kind), Resource: optional.Of(a.Resource), ProposedAt: a.ProposedAt,
		})
	}
	if r := s.Runner; r != nil {
		view.Runner = &apigen.SnapshotRunner{ID: r.ID, Version: r.Version, State: r.State, Switch: r.Switch, SwitchReason: r.SwitchReason, Online: r.Online}
	}
	return view, nil
}
