package alertapi

import (
	"context"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListIncidents answers incidents, newest first.
func (h *Alerts) ListIncidents(ctx context.Context, req apigen.ListIncidentsRequestObject) (apigen.ListIncidentsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	find := visibleIncidents(ctx)
	find.Open, find.After, find.Most = req.Params.Open, req.Params.After, int32(limit+1)
	var out apigen.ListIncidents200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ShowIncidents(ctx, find)
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowIncidentsRow) string { return r.Incident.ID })
		out.Items = views(rows, incidentView)
		return err
	})
	return out, err
}

// GetIncident answers an incident with the alerts that the caller may see.
func (h *Alerts) GetIncident(ctx context.Context, req apigen.GetIncidentRequestObject) (apigen.GetIncidentResponseObject, error) {
	var out apigen.GetIncident200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		find := visibleIncidents(ctx)
		find.ID, find.Most = &req.Incident, 1
		rows, err := tx.ShowIncidents(ctx, find)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.Newf(fault.ErrNotFound, "there is no incident %q", req.Incident)
		}
		of := visible(ctx)
		of.IncidentID, of.Most = &req.Incident, ofIncident
		items, err := tx.ShowAlerts(ctx, of)
		out.Incident, out.Alerts = incidentView(rows[0]), views(items, alertView)
		return err
	})
	return out, err
}

// visibleIncidents finds all incidents that have an alert that the caller may see.
func visibleIncidents(ctx context.Context) ctldb.ShowIncidentsParams {
	scope := auth.PrincipalOf(ctx).Scope(auth.InstallsRead)
	return ctldb.ShowIncidentsParams{Everywhere: scope.Everywhere, CustomerIds: scope.Customers, AppIds: scope.Apps, InstallIds: scope.Installs}
}

func incidentView(r ctldb.ShowIncidentsRow) apigen.Incident {
	n := r.Incident
	return apigen.Incident{
		ID: n.ID, Kind: apigen.AlertKind(n.Kind), Severity: apigen.AlertSeverity(alerts.RulesOf(model.AlertKind(n.Kind)).Severity), About: n.About,
		App: optional.Of(r.AppName), Release: apiref.Number(n.ReleaseID, &r.ReleaseNumber), RunnerVersion: n.RunnerVersion,
		Alerts: int(r.Alerts), OpenAlerts: int(r.Open), OpenedAt: n.OpenedAt, ClosedAt: n.ClosedAt,
	}
}
