package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
)

// PhoneHome records the outputs of a stack, once.
func (a *API) PhoneHome(ctx context.Context, req apigen.PhoneHomeRequestObject) (apigen.PhoneHomeResponseObject, error) {
	hash := auth.Hash(req.Body.Secret)
	org, err := a.orgOfSecret(ctx, "stack", hash)
	if err != nil {
		return nil, err
	}
	digest, err := capsule.DigestOf(req.Body.Outputs)
	if err != nil {
		return nil, fault.Newf(fault.ErrInvalid, "outputs: %w", err)
	}
	outputs, err := json.Marshal(req.Body.Outputs)
	if err != nil {
		return nil, fmt.Errorf("encode outputs: %w", err)
	}
	var answer apigen.PhoneHome200JSONResponse
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		stack, err := tx.RunnerStackBySecret(ctx, hash)
		if err != nil {
			return err
		}
		answer = apigen.PhoneHome200JSONResponse{InstallID: stack.InstallID, StackVersion: int(stack.Version)}
		switch {
		case stack.PhoneHomeBodyDigest != nil && *stack.PhoneHomeBodyDigest == digest:
			return nil // a lost reply
		case stack.PhoneHomeBodyDigest != nil:
			return fault.With(fault.Newf(fault.ErrConflict, "this stack has already phoned home with different outputs"),
				fault.Code("phone_home_used"), fault.Remedy("make a new stack version"))
		case stack.Expired || stack.State == model.StackExpired:
			return fault.With(fault.Newf(fault.ErrForbidden, "the phone-home secret has expired"),
				fault.Code("phone_home_expired"), fault.Remedy("make a new stack version"))
		case stack.State != model.StackPending:
			return fault.With(fault.Newf(fault.ErrConflict, "stack version %d is %s", stack.Version, stack.State), fault.Code("stack_outdated"))
		}
		err = tx.RunnerActivateStack(ctx, runnerdb.RunnerActivateStackParams{
			ID: stack.ID, BodyDigest: digest, Outputs: outputs, InstallID: stack.InstallID, Version: stack.Version,
		})
		if err != nil {
			return err
		}
		return tx.WakeInstall(ctx, stack.InstallID)
	})
	if err != nil {
		return nil, fmt.Errorf("phone home: %w", err)
	}
	return answer, nil
}
