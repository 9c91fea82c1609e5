package healthapi

import (
	"context"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListRemediations answers what the runner of an install did about unhealthy checks.
func (h *Health) ListRemediations(ctx context.Context, req apigen.ListRemediationsRequestObject) (apigen.ListRemediationsResponseObject, error) {
	p := req.Params
	limit := paging.Limit(p.Limit)
	out := apigen.ListRemediations200JSONResponse{Items: []apigen.Remediation{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		rows, err := tx.ListRemediations(ctx, ctldb.ListRemediationsParams{
			InstallID: install.ID, After: optional.Value(p.After), Open: optional.Value(p.Open), State: string(optional.Value(p.State)), Most: int32(limit + 1),
		})
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.Remediation) string { return r.ID })
		for _, r := range rows {
			out.Items = append(out.Items, remediationView(r))
		}
		return nil
	})
	return out, err
}

func remediationView(r ctldb.Remediation) apigen.Remediation {
	return apigen.Remediation{
		ID: r.ID, Check: r.CheckName, Action: r.Action, ResourceID: r.ResourceID, State: apigen.RemediationState(r.State), Why: optional.Of(r.Why),
		Attempts: int(r.Attempts), AttemptsOf: int(r.AttemptsOf), Reverted: r.Reverted, BeganAt: r.BeganAt, ChangedAt: r.ChangedAt, EndedAt: r.EndedAt,
	}
}
