package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
)

// PutConsents records what the customer's side agreed to, and wakes what waits for that.
func (a *API) PutConsents(ctx context.Context, req apigen.PutConsentsRequestObject) (apigen.PutConsentsResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := installOf(s); err != nil {
		return nil, err
	}
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		var changed int64
		for _, told := range req.Body.Consents {
			n, err := putConsent(ctx, tx, s.InstallID, told)
			if err != nil {
				return err
			}
			changed += n
		}
		if changed == 0 {
			return nil
		}
		return tx.WakeInstall(ctx, s.InstallID)
	})
	if err != nil {
		return nil, fmt.Errorf("put consents: %w", err)
	}
	return apigen.PutConsents204Response{}, nil
}

// putConsent writes the customer's word on one change down. It tells whether that is new.
func putConsent(ctx context.Context, tx *database.Tx, installID string, told apigen.Consent) (changed int64, err error) {
	by := []string{}
	if told.By != nil {
		by = *told.By
	}
	var still *int32
	if told.Still != nil {
		n := int32(*told.Still)
		still = &n
	}
	return tx.RunnerPutConsent(ctx, runnerdb.RunnerPutConsentParams{
		InstallID: installID, ChangeID: told.ChangeID, EffectDigest: told.EffectDigest, State: model.ConsentState(told.State),
		Why: told.Why, AnsweredBy: by, Still: still, AnsweredAt: told.At, Until: told.Until,
	})
}
