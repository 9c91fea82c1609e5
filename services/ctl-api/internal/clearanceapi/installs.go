package clearanceapi

import (
	"cmp"
	"context"
	"errors"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// PauseInstall has no change of an install carried out.
func (h *Clearance) PauseInstall(ctx context.Context, req apigen.PauseInstallRequestObject) (apigen.PauseInstallResponseObject, error) {
	out, err := h.pause(ctx, req.Install, req.Body.Reason)
	return apigen.PauseInstall200JSONResponse(out), err
}

// ResumeInstall ends a pause.
func (h *Clearance) ResumeInstall(ctx context.Context, req apigen.ResumeInstallRequestObject) (apigen.ResumeInstallResponseObject, error) {
	out, err := h.pause(ctx, req.Install, "")
	return apigen.ResumeInstall200JSONResponse(out), err
}

func (h *Clearance) pause(ctx context.Context, ref, reason string) (out apigen.Install, err error) {
	err = h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		install, err := installs.Find(ctx, tx, ref)
		if err != nil {
			return "", err
		}
		changed, err := clearance.Pause(ctx, tx, clearance.Pausing{InstallID: install.ID, Actor: auth.PrincipalOf(ctx).AccountName, Reason: reason})
		if err != nil {
			return "", err
		}
		if out, err = h.Install(ctx, tx, install.ID); err != nil || !changed {
			return "", err
		}
		if reason == "" {
			return "resume install " + install.Name, nil
		}
		return "pause install " + install.Name + ": " + reason, nil
	})
	return out, err
}

// DecideInstall approves changes of an install, each in a transaction of its own: a
// transaction holds the row of one workflow only.
func (h *Clearance) DecideInstall(ctx context.Context, req apigen.DecideInstallRequestObject) (apigen.DecideInstallResponseObject, error) {
	var install string
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := installs.Find(ctx, tx, req.Install)
		install = row.ID
		return err
	})
	if err != nil {
		return nil, err
	}
	out := apigen.DecideInstall200JSONResponse{Items: []apigen.DecidedChange{}}
	for _, c := range req.Body.Changes {
		item, err := h.approve(ctx, install, Seen{c.ChangeID, c.EffectDigest, req.Body.Note})
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// approve answers what became of one change; an error is none of the change.
func (h *Clearance) approve(ctx context.Context, installID string, seen Seen) (apigen.DecidedChange, error) {
	out := apigen.DecidedChange{ChangeID: seen.ChangeID}
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		c, err := tx.GetChange(ctx, seen.ChangeID)
		if errors.Is(err, fault.ErrNotFound) || err == nil && c.InstallID != installID {
			return "", fault.Newf(fault.ErrNotFound, "the install has no change %q", seen.ChangeID)
		}
		if err != nil {
			return "", err
		}
		if err := h.Approve(ctx, tx, seen); err != nil {
			return "", err
		}
		if c, err = tx.GetChange(ctx, c.ID); err != nil {
			return "", err
		}
		out.Outcome = apigen.DecidedChangeOutcomeApproved
		if c.State == model.ChangeProposed {
			out.Outcome = apigen.DecidedChangeOutcomeCounted
		}
		now, err := clearance.ReadOf(ctx, tx, c, h.now())
		if err != nil {
			return "", err
		}
		out.Approvals = ApprovalsView(now.Case(c.ID))
		return "approve change " + c.ID + " with effect " + seen.EffectDigest, nil
	})
	if err == nil {
		return out, nil
	}
	if errors.Is(err, fault.ErrConflict) || errors.Is(err, fault.ErrInvalid) || errors.Is(err, fault.ErrNotFound) || errors.Is(err, fault.ErrForbidden) {
		p := fault.From(err)
		return apigen.DecidedChange{ChangeID: seen.ChangeID, Outcome: apigen.DecidedChangeOutcomeRefused, Code: p.Code, Detail: cmp.Or(p.Detail, p.Title), Remedy: p.Remedy}, nil
	}
	return out, err
}
