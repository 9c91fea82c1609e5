package alertapi

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// longestMute is how far ahead the end of a mute may be.
const longestMute = 30 * 24 * time.Hour

// ListAlertMutes answers mutes, newest first. Those of a kind in all installs are for who
// sees all installs.
func (h *Alerts) ListAlertMutes(ctx context.Context, req apigen.ListAlertMutesRequestObject) (apigen.ListAlertMutesResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	find := mutesIn(ctx, auth.InstallsRead)
	find.Past, find.After, find.Most = optional.Value(req.Params.Past), req.Params.After, int32(limit+1)
	var out apigen.ListAlertMutes200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ShowMutes(ctx, find)
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowMutesRow) string { return r.AlertMute.ID })
		out.Items = views(rows, muteView)
		return err
	})
	return out, err
}

// CreateAlertMute holds alerts back until a time.
func (h *Alerts) CreateAlertMute(ctx context.Context, req apigen.CreateAlertMuteRequestObject) (apigen.CreateAlertMuteResponseObject, error) {
	body := req.Body
	reason := strings.TrimSpace(body.Reason)
	now := h.now()
	switch {
	case reason == "":
		return nil, invalid("/reason", "it is empty", "a mute needs a reason")
	case !body.Until.After(now):
		return nil, invalid("/until", "it is not in the future", "a mute ends in the future")
	case body.Until.Sub(now) > longestMute:
		return nil, invalid("/until", "it is too far ahead", "a mute ends within 30 days")
	case body.Alert != nil && (body.Install != nil || body.Kind != nil):
		return nil, invalid("/alert", "install and kind are those of the alert", "name an alert, or an install and a kind")
	case body.Alert == nil && body.Install == nil && body.Kind == nil:
		return nil, invalid("/install", "nothing is named", "name what to mute: an install, a kind, or an alert")
	}
	var out apigen.AlertMute
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (what string, err error) {
		p := ctldb.InsertMuteParams{
			ID: id.New(id.AlertMute), Kind: (*string)(body.Kind), Reason: reason, CreatedBy: auth.PrincipalOf(ctx).AccountName, Until: body.Until,
		}
		if err := muted(ctx, tx, body, &p); err != nil {
			return "", err
		}
		if err := tx.InsertMute(ctx, p); err != nil {
			return "", err
		}
		out, err = showMute(ctx, tx, p.ID)
		return fmt.Sprintf("mute %s until %s: %s", told(out), body.Until.UTC().Format(time.RFC3339), reason), err
	})
	return apigen.CreateAlertMute201JSONResponse(out), err
}

// muted fills in what a mute is about, as far as the caller may mute it.
func muted(ctx context.Context, tx *database.Tx, body *apigen.AlertMuteRequest, p *ctldb.InsertMuteParams) error {
	ref := optional.Value(body.Install)
	if body.Alert != nil {
		alert, err := tx.LockAlert(ctx, *body.Alert)
		if err != nil {
			return noAlert(err, *body.Alert)
		}
		kind := string(alert.Kind)
		ref, p.Kind, p.Subject = alert.InstallID, &kind, &alert.Subject
	}
	if ref == "" {
		if !auth.PrincipalOf(ctx).Scope(auth.InstallsWrite).Everywhere {
			return fault.With(fault.Newf(fault.ErrForbidden, "your access is limited to certain installs"), fault.Remedy("name the install to mute"))
		}
		return nil
	}
	install, err := findInstall(ctx, tx, auth.InstallsWrite, ref)
	if err != nil {
		if body.Alert != nil {
			return noAlert(err, *body.Alert)
		}
		return err
	}
	p.InstallID = &install.ID
	return nil
}

// DeleteAlertMute ends a mute, and has what it held back looked at.
func (h *Alerts) DeleteAlertMute(ctx context.Context, req apigen.DeleteAlertMuteRequestObject) (apigen.DeleteAlertMuteResponseObject, error) {
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (what string, err error) {
		find := mutesIn(ctx, auth.InstallsWrite)
		find.ID, find.Past, find.Most = &req.Mute, true, 1
		rows, err := tx.ShowMutes(ctx, find)
		if err != nil {
			return "", err
		}
		if len(rows) == 0 {
			return "", fault.Newf(fault.ErrNotFound, "there is no mute %q", req.Mute)
		}
		removed, err := tx.RemoveMute(ctx, ctldb.RemoveMuteParams{ID: req.Mute, RemovedBy: auth.PrincipalOf(ctx).AccountName})
		if err != nil || removed == 0 {
			return "", err
		}
		mute := rows[0].AlertMute
		err = tx.WakeHeldInstalls(ctx, ctldb.WakeHeldInstallsParams{InstallID: mute.InstallID, Kind: mute.Kind})
		return "end the mute of " + told(muteView(rows[0])), err
	})
	return apigen.DeleteAlertMute204Response{}, err
}

func mutesIn(ctx context.Context, permission auth.Permission) ctldb.ShowMutesParams {
	scope := auth.PrincipalOf(ctx).Scope(permission)
	return ctldb.ShowMutesParams{Everywhere: scope.Everywhere, CustomerIds: scope.Customers, AppIds: scope.Apps, InstallIds: scope.Installs}
}

func showMute(ctx context.Context, tx *database.Tx, mute string) (apigen.AlertMute, error) {
	find := mutesIn(ctx, auth.InstallsRead)
	find.ID, find.Past, find.Most = &mute, true, 1
	rows, err := tx.ShowMutes(ctx, find)
	if err != nil || len(rows) == 0 {
		return apigen.AlertMute{}, err
	}
	return muteView(rows[0]), nil
}

func muteView(r ctldb.ShowMutesRow) apigen.AlertMute {
	m := r.AlertMute
	out := apigen.AlertMute{
		ID: m.ID, Kind: (*apigen.AlertKind)(m.Kind), Subject: m.Subject, Reason: m.Reason, CreatedBy: m.CreatedBy, CreatedAt: m.CreatedAt, Until: m.Until,
		RemovedAt: m.RemovedAt, RemovedBy: m.RemovedBy,
	}
	if m.InstallID != nil {
		out.Install = &apigen.Ref{ID: *m.InstallID, Name: r.InstallName}
	}
	return out
}

// told is what a mute covers, for the org's chain.
func told(m apigen.AlertMute) string {
	what := "all alerts"
	if m.Kind != nil {
		what = "alerts " + string(*m.Kind)
	}
	if m.Subject != nil {
		what += " about " + *m.Subject
	}
	if m.Install != nil {
		what += " of install " + m.Install.Name
	}
	return what
}
