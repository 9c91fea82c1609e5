package api

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/dated"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
)

// PutSecrets records which versions of the customer's secrets a runner has, and wakes what
// waits for one.
func (a *API) PutSecrets(ctx context.Context, req apigen.PutSecretsRequestObject) (apigen.PutSecretsResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := installOf(s); err != nil {
		return nil, err
	}
	for _, secret := range req.Body.Secrets {
		if err := dated.Check(time.Now(), dated.Time{Pointer: "/secrets", At: secret.SetAt}); err != nil {
			return nil, err
		}
	}
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		names := make([]string, 0, len(req.Body.Secrets))
		var changed int64
		for _, secret := range req.Body.Secrets {
			n, err := tx.RunnerPutSecret(ctx, runnerdb.RunnerPutSecretParams{
				InstallID: s.InstallID, Name: secret.Name, Version: int32(secret.Version), Present: secret.Set, Digest: secret.Digest,
				SetBy: string(secret.SetBy), SetAt: secret.SetAt,
			})
			if err != nil {
				return err
			}
			changed += n
			names = append(names, secret.Name)
		}
		n, err := tx.RunnerLacksSecrets(ctx, runnerdb.RunnerLacksSecretsParams{InstallID: s.InstallID, Names: names})
		if err != nil || changed+n == 0 {
			return err
		}
		return tx.WakeInstall(ctx, s.InstallID)
	})
	if err != nil {
		return nil, fmt.Errorf("put secrets: %w", err)
	}
	return apigen.PutSecrets204Response{}, nil
}
