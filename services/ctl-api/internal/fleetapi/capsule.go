package fleetapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// GetCapsule answers the signed order that carried a change out.
func (h *Fleet) GetCapsule(ctx context.Context, req apigen.GetCapsuleRequestObject) (apigen.GetCapsuleResponseObject, error) {
	var out apigen.Capsule
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		c, err := tx.GetChange(ctx, req.Change)
		if err != nil {
			return missing(err, "there is no change %q", req.Change)
		}
		job, err := tx.CapsuleOfChange(ctx, c.ID)
		if errors.Is(err, fault.ErrNotFound) {
			return fault.With(fault.Newf(fault.ErrNotFound, "change %s has no capsule: %s", c.ID, withoutCapsule(c.State)), fault.Code("no_capsule"))
		}
		if err != nil {
			return err
		}
		out, err = capsuleView(job.SignedOrder)
		out.ChangeID, out.JobID = c.ID, job.ID
		return err
	})
	return apigen.GetCapsule200JSONResponse(out), err
}

// withoutCapsule says why a change in this state was never granted.
func withoutCapsule(state model.ChangeState) string {
	switch state {
	case model.ChangePreparing:
		return "it is still being planned"
	case model.ChangeProposed:
		return "it waits for a decision"
	case model.ChangeApproved:
		return "it is approved and waits for its turn"
	case model.ChangePlanned:
		return "it is a preview, which is never carried out"
	case model.ChangeNoChange:
		return "its plan is empty, so there was nothing to carry out"
	}
	return fmt.Sprintf("it became %s before it was granted", state)
}

// capsuleView decodes an envelope without verifying it: the reader does, with a key
// that does not come from here.
func capsuleView(signed json.RawMessage) (apigen.Capsule, error) {
	var envelope capsule.Envelope
	if err := json.Unmarshal(signed, &envelope); err != nil {
		return apigen.Capsule{}, fmt.Errorf("read envelope: %w", err)
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		return apigen.Capsule{}, fmt.Errorf("read payload: %w", err)
	}
	out := apigen.Capsule{PayloadType: envelope.PayloadType, PayloadDigest: envelope.PayloadDigest(), Envelope: string(signed)}
	if err := json.Unmarshal(payload, &out.Order); err != nil {
		return apigen.Capsule{}, fmt.Errorf("read order: %w", err)
	}
	for _, s := range envelope.Signatures {
		out.KeyIds = append(out.KeyIds, s.KeyID)
	}
	return out, nil
}
