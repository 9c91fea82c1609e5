package api

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/dated"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
)

// PutSamples stores the runner's own numbers, as series of its install without an action.
func (a *API) PutSamples(ctx context.Context, req apigen.PutSamplesRequestObject) (apigen.PutSamplesResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := installOf(s); err != nil {
		return nil, err
	}
	for i, sample := range req.Body.Samples {
		if err := dated.Check(time.Now(), dated.Time{Pointer: fmt.Sprintf("/samples/%d/at", i), At: sample.At}); err != nil {
			return nil, err
		}
	}
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		return a.series.StoreOwn(ctx, tx, s.InstallID, *req.Body)
	})
	if err != nil {
		return nil, fmt.Errorf("put samples: %w", err)
	}
	return apigen.PutSamples204Response{}, nil
}
