package policyapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
)

// ListAppPolicies answers the policies of an app's newest config.
func (h *Policies) ListAppPolicies(ctx context.Context, req apigen.ListAppPoliciesRequestObject) (apigen.ListAppPoliciesResponseObject, error) {
	out := apigen.ListAppPolicies200JSONResponse{Items: []apigen.AppPolicy{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		app, err := tx.FindApp(ctx, req.App)
		if errors.Is(err, fault.ErrNotFound) {
			err = fault.Newf(fault.ErrNotFound, "there is no app %q", req.App)
		}
		if err != nil {
			return err
		}
		config, err := tx.NewestConfig(ctx, app.ID)
		if errors.Is(err, fault.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		var folder appconfig.App
		if err := json.Unmarshal(config.Body, &folder); err != nil {
			return fmt.Errorf("read config %s: %w", config.ID, err)
		}
		out.Config = optional.Of(int(config.Number))
		names := orders.PolicyNames(&folder)
		for i, p := range folder.Policies {
			out.Items = append(out.Items, apigen.AppPolicy{
				Name: names[i], Type: string(p.Type), Engine: apigen.AppPolicyEngine(p.Engine), Components: append([]string{}, p.Components...),
				File: p.At.File, ContentsFile: optional.Of(p.Contents.File),
			})
		}
		return nil
	})
	return out, err
}
