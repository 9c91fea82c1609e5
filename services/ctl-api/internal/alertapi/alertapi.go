// Package alertapi answers the routes about alerts, incidents and mutes. It is mounted
// by package api.
package alertapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ofIncident is how many alerts one incident shows.
const ofIncident = 200

// Alerts are the routes. Read and Write are as in package eventapi.
type Alerts struct {
	Read  func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	Write func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) (what string, err error)) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (h *Alerts) now() time.Time {
	if h.Now != nil {
		return h.Now().UTC()
	}
	return time.Now().UTC()
}

// ListAlerts answers alerts, newest first.
func (h *Alerts) ListAlerts(ctx context.Context, req apigen.ListAlertsRequestObject) (apigen.ListAlertsResponseObject, error) {
	p := req.Params
	limit := paging.Limit(p.Limit)
	find := visible(ctx)
	find.States, find.Kinds, find.After, find.Most = []string{string(model.AlertOpen)}, kindsOf(p), p.After, int32(limit+1)
	if p.State != nil {
		find.States = views(*p.State, func(s apigen.AlertState) string { return string(s) })
	}
	var out apigen.ListAlerts200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		if ref := optional.Value(p.Install); ref != "" {
			install, err := findInstall(ctx, tx, auth.InstallsRead, ref)
			if err != nil {
				return err
			}
			find.InstallID = &install.ID
		}
		rows, err := tx.ShowAlerts(ctx, find)
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowAlertsRow) string { return r.Alert.ID })
		out.Items = views(rows, alertView)
		return err
	})
	return out, err
}

// kindsOf are the kinds that a list is limited to; without a filter none are named. A
// filter that no kind passes lets nothing through.
func kindsOf(p apigen.ListAlertsParams) []string {
	if p.Kind == nil && p.Severity == nil {
		return []string{}
	}
	kinds := []string{"none"}
	for _, k := range alerts.Kinds(alerts.Severity(optional.Value(p.Severity))) {
		if p.Kind == nil || slices.Contains(*p.Kind, apigen.AlertKind(k)) {
			kinds = append(kinds, string(k))
		}
	}
	return kinds
}

// GetAlert answers one alert.
func (h *Alerts) GetAlert(ctx context.Context, req apigen.GetAlertRequestObject) (apigen.GetAlertResponseObject, error) {
	var out apigen.Alert
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		out, err = show(ctx, tx, req.Alert)
		return err
	})
	return apigen.GetAlert200JSONResponse(out), err
}

// AcknowledgeAlert says who is at it. Who was first stays.
func (h *Alerts) AcknowledgeAlert(ctx context.Context, req apigen.AcknowledgeAlertRequestObject) (apigen.AcknowledgeAlertResponseObject, error) {
	note := strings.TrimSpace(req.Body.Note)
	if note == "" {
		return nil, invalid("/note", "it is empty", "to acknowledge an alert, say what is being done about it")
	}
	var out apigen.Alert
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (what string, err error) {
		row, err := tx.LockAlert(ctx, req.Alert)
		if err != nil {
			return "", noAlert(err, req.Alert)
		}
		if row.AcknowledgedAt == nil {
			if row.State != model.AlertOpen {
				return "", fault.With(fault.Newf(fault.ErrConflict, "alert %s is %s", row.ID, row.State), fault.Code("alert_not_open"), fault.Remedy("only an open alert is acknowledged"))
			}
			err := tx.AcknowledgeAlert(ctx, ctldb.AcknowledgeAlertParams{ID: row.ID, AcknowledgedBy: auth.PrincipalOf(ctx).AccountName, Note: note})
			if err != nil {
				return "", err
			}
			what = fmt.Sprintf("acknowledge alert %s (%s about %s): %s", row.ID, row.Kind, row.Subject, note)
		}
		out, err = show(ctx, tx, row.ID)
		return what, err
	})
	return apigen.AcknowledgeAlert200JSONResponse(out), err
}

// show reads one alert that the caller may see.
func show(ctx context.Context, tx *database.Tx, alert string) (apigen.Alert, error) {
	find := visible(ctx)
	find.ID, find.Most = &alert, 1
	rows, err := tx.ShowAlerts(ctx, find)
	if err != nil {
		return apigen.Alert{}, err
	}
	if len(rows) == 0 {
		return apigen.Alert{}, fault.Newf(fault.ErrNotFound, "there is no alert %q", alert)
	}
	return alertView(rows[0]), nil
}

// visible finds all alerts that the caller may see.
func visible(ctx context.Context) ctldb.ShowAlertsParams {
	scope := auth.PrincipalOf(ctx).Scope(auth.InstallsRead)
	return ctldb.ShowAlertsParams{
		Everywhere: scope.Everywhere, CustomerIds: scope.Customers, AppIds: scope.Apps, InstallIds: scope.Installs, States: []string{}, Kinds: []string{},
	}
}

func findInstall(ctx context.Context, tx *database.Tx, permission auth.Permission, ref string) (ctldb.Install, error) {
	row, err := installs.Find(ctx, tx, ref)
	if err != nil {
		return row, err
	}
	at := auth.Location{CustomerID: row.CustomerID, AppID: row.AppID, InstallID: row.ID}
	caller := auth.PrincipalOf(ctx)
	switch {
	case caller.Scope(permission).Includes(at):
		return row, nil
	case caller.Scope(auth.InstallsRead).Includes(at):
		return row, auth.Forbidden(permission)
	}
	return row, fault.Newf(fault.ErrNotFound, "there is no install %q", ref)
}

// views turns rows into items; never nil, so that JSON shows [].
func views[R, V any](rows []R, view func(R) V) []V {
	out := make([]V, 0, len(rows))
	for _, row := range rows {
		out = append(out, view(row))
	}
	return out
}

func invalid(pointer, detail, text string) error {
	return fault.With(fault.Newf(fault.ErrInvalid, "%s", text), fault.Fields(fault.FieldError{Pointer: pointer, Detail: detail}))
}

// noAlert is what to answer when an alert is not found, or is not for the caller.
func noAlert(err error, alert string) error {
	if errors.Is(err, fault.ErrNotFound) {
		return fault.Newf(fault.ErrNotFound, "there is no alert %q", alert)
	}
	return err
}

func alertView(r ctldb.ShowAlertsRow) apigen.Alert {
	a := r.Alert
	out := apigen.Alert{
		ID: a.ID, Kind: apigen.AlertKind(a.Kind), Severity: apigen.AlertSeverity(alerts.RulesOf(a.Kind).Severity), State: apigen.AlertState(a.State),
		Install: apigen.Ref{ID: a.InstallID, Name: r.InstallName}, Subject: a.Subject, Text: a.Text, Since: a.Since, OpenedAt: a.OpenedAt, GoodSince: a.GoodSince,
		Relapses: int(a.Relapses), Release: apiref.Number(a.ReleaseID, &r.ReleaseNumber), RunnerVersion: a.RunnerVersion, IncidentID: a.IncidentID,
		AcknowledgedAt: a.AcknowledgedAt, AcknowledgedBy: a.AcknowledgedBy, Note: a.Note, ClosedAt: a.ClosedAt,
		ClosedBecause: (*apigen.AlertClosedBecause)(a.ClosedBecause),
	}
	if a.Hold != nil && a.HoldUntil != nil {
		out.Held = &apigen.AlertHeld{Because: apigen.AlertHeldBecause(*a.Hold), Until: *a.HoldUntil}
	}
	return out
}
