package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
)

// CreateRegistryToken hands out a short-lived credential for the registry.
func (a *API) CreateRegistryToken(ctx context.Context, req apigen.CreateRegistryTokenRequestObject) (apigen.CreateRegistryTokenResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	actions := make([]string, len(req.Body.Actions))
	for i, action := range req.Body.Actions {
		if action == apigen.RegistryActionPush && s.Kind != model.BuildRunner {
			return nil, fault.With(fault.Newf(fault.ErrForbidden, "only a Build Runner pushes to the org's registry"), fault.Code("push_refused"))
		}
		actions[i] = string(action)
	}
	token, hash := auth.NewSecret(auth.RegistryPrefix)
	answer := apigen.CreateRegistryToken200JSONResponse{Token: token, Registry: a.Registry}
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		expires, err := tx.RunnerAddRegistryToken(ctx, runnerdb.RunnerAddRegistryTokenParams{
			Hash: hash, RunnerID: &s.RunnerID, SessionID: &s.ID, Actions: actions, Seconds: registryTokenLifetime.Seconds(),
		})
		answer.ExpiresAt = expires.UTC()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create registry token: %w", err)
	}
	return answer, nil
}
