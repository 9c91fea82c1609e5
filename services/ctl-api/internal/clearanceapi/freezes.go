package clearanceapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/freeze"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// maxFreezes bounds those of an app and those of an install that are kept.
const maxFreezes = 100

// ListAppFreezes answers the freezes of an app.
func (h *Clearance) ListAppFreezes(ctx context.Context, req apigen.ListAppFreezesRequestObject) (apigen.ListAppFreezesResponseObject, error) {
	out, err := h.listFreezes(ctx, req.App, "")
	return apigen.ListAppFreezes200JSONResponse(out), err
}

// ListInstallFreezes answers the freezes of an install and of its app.
func (h *Clearance) ListInstallFreezes(ctx context.Context, req apigen.ListInstallFreezesRequestObject) (apigen.ListInstallFreezesResponseObject, error) {
	out, err := h.listFreezes(ctx, "", req.Install)
	return apigen.ListInstallFreezes200JSONResponse(out), err
}

func (h *Clearance) listFreezes(ctx context.Context, app, install string) (apigen.FreezeList, error) {
	out := apigen.FreezeList{Items: []apigen.Freeze{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		s, err := h.scopeOf(ctx, tx, app, install)
		if err != nil {
			return err
		}
		rows, windows, err := h.freezesOf(ctx, tx, s)
		if err != nil {
			return err
		}
		for i, r := range rows {
			out.Items = append(out.Items, h.freezeView(r, windows[i]))
		}
		if _, until, ok := freeze.At(windows, h.now()); ok {
			out.FrozenUntil = &until
		}
		return nil
	})
	return out, err
}

// freezesOf are the freezes that hold an app or an install, now or later.
func (h *Clearance) freezesOf(ctx context.Context, tx *database.Tx, s scope) ([]ctldb.Freeze, []freeze.Window, error) {
	of := ctldb.FreezesOfParams{AppID: &s.app.ID, After: h.now()}
	if s.install != nil {
		of.InstallID = &s.install.ID
	}
	rows, err := tx.FreezesOf(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	windows, err := clearance.Windows(rows)
	return rows, windows, err
}

func (h *Clearance) freezeView(r ctldb.Freeze, w freeze.Window) apigen.Freeze {
	out := apigen.Freeze{
		ID: r.ID, Scope: apigen.FreezeScopeInstall, Reason: r.Reason, StartsAt: r.StartsAt, EndsAt: r.EndsAt, When: w.When(), CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt,
	}
	if r.AppID != nil {
		out.Scope = apigen.FreezeScopeApp
	}
	if w.Weekly != nil {
		out.Weekly = &apigen.WeeklyFreeze{From: w.Weekly.From, To: w.Weekly.To, Zone: w.Weekly.Zone}
		for _, d := range w.Weekly.Days {
			out.Weekly.Days = append(out.Weekly.Days, apigen.WeeklyFreezeDays(d))
		}
	}
	if _, until, ok := freeze.At([]freeze.Window{w}, h.now()); ok {
		out.InForce, out.Until = true, &until
	}
	return out
}

// AddAppFreeze freezes the installs of an app.
func (h *Clearance) AddAppFreeze(ctx context.Context, req apigen.AddAppFreezeRequestObject) (apigen.AddAppFreezeResponseObject, error) {
	out, err := h.addFreeze(ctx, req.App, "", *req.Body)
	return apigen.AddAppFreeze201JSONResponse(out), err
}

// AddInstallFreeze freezes an install.
func (h *Clearance) AddInstallFreeze(ctx context.Context, req apigen.AddInstallFreezeRequestObject) (apigen.AddInstallFreezeResponseObject, error) {
	out, err := h.addFreeze(ctx, "", req.Install, *req.Body)
	return apigen.AddInstallFreeze201JSONResponse(out), err
}

func (h *Clearance) addFreeze(ctx context.Context, app, install string, wish apigen.FreezeRequest) (out apigen.Freeze, err error) {
	w := freeze.Window{Reason: wish.Reason, Starts: optional.Value(wish.StartsAt), Ends: optional.Value(wish.EndsAt)}
	insert := ctldb.InsertFreezeParams{ID: id.New(id.Freeze), Reason: wish.Reason, StartsAt: wish.StartsAt, EndsAt: wish.EndsAt, CreatedBy: auth.PrincipalOf(ctx).AccountName}
	if wish.Weekly != nil {
		w.Weekly = &freeze.Weekly{From: wish.Weekly.From, To: wish.Weekly.To, Zone: wish.Weekly.Zone}
		for _, d := range wish.Weekly.Days {
			w.Weekly.Days = append(w.Weekly.Days, string(d))
		}
		if insert.Weekly, err = json.Marshal(w.Weekly); err != nil {
			return out, err
		}
	}
	if err := w.Valid(); err != nil {
		return out, err
	}
	err = h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		s, err := h.scopeOf(ctx, tx, app, install)
		if err != nil {
			return "", err
		}
		ids, err := s.lock(ctx, tx)
		if err != nil {
			return "", err
		}
		rows, _, err := h.freezesOf(ctx, tx, s)
		if err != nil {
			return "", err
		}
		if len(rows) >= maxFreezes {
			return "", fault.With(fault.Newf(fault.ErrConflict, "%s has %d freezes already", s.name(), len(rows)), fault.Code("too_many_freezes"), fault.Remedy("remove some"))
		}
		insert.AppID, insert.InstallID = s.ids()
		row, err := tx.InsertFreeze(ctx, insert)
		if err != nil {
			return "", err
		}
		w.ID, out = row.ID, h.freezeView(row, w)
		return fmt.Sprintf("add freeze %s of %s (%s): %s", row.ID, s.name(), w.When(), row.Reason), clearance.Wake(ctx, tx, ids...)
	})
	return out, err
}

// RemoveAppFreeze ends a freeze of an app.
func (h *Clearance) RemoveAppFreeze(ctx context.Context, req apigen.RemoveAppFreezeRequestObject) (apigen.RemoveAppFreezeResponseObject, error) {
	if err := h.removeFreeze(ctx, req.App, "", req.Freeze); err != nil {
		return nil, err
	}
	return apigen.RemoveAppFreeze204Response{}, nil
}

// RemoveInstallFreeze ends a freeze of an install.
func (h *Clearance) RemoveInstallFreeze(ctx context.Context, req apigen.RemoveInstallFreezeRequestObject) (apigen.RemoveInstallFreezeResponseObject, error) {
	if err := h.removeFreeze(ctx, "", req.Install, req.Freeze); err != nil {
		return nil, err
	}
	return apigen.RemoveInstallFreeze204Response{}, nil
}

func (h *Clearance) removeFreeze(ctx context.Context, app, install, ref string) error {
	return h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		s, err := h.scopeOf(ctx, tx, app, install)
		if err != nil {
			return "", err
		}
		row, err := tx.GetFreeze(ctx, ref)
		appID, installID := s.ids()
		if err != nil || optional.Value(row.AppID) != optional.Value(appID) || optional.Value(row.InstallID) != optional.Value(installID) {
			if err == nil || errors.Is(err, fault.ErrNotFound) {
				err = fault.Newf(fault.ErrNotFound, "%s has no freeze %q of its own", s.name(), ref)
			}
			return "", err
		}
		ids, err := s.lock(ctx, tx)
		if err != nil {
			return "", err
		}
		if err := tx.RemoveFreeze(ctx, ctldb.RemoveFreezeParams{ID: row.ID, RemovedBy: auth.PrincipalOf(ctx).AccountName}); err != nil {
			return "", err
		}
		return fmt.Sprintf("remove freeze %s of %s: %s", row.ID, s.name(), row.Reason), clearance.Wake(ctx, tx, ids...)
	})
}

// OverrideFreeze lets a workflow through the freezes in force.
func (h *Clearance) OverrideFreeze(ctx context.Context, req apigen.OverrideFreezeRequestObject) (apigen.OverrideFreezeResponseObject, error) {
	var out apigen.Workflow
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		w, err := tx.LockWorkflow(ctx, req.Workflow)
		if errors.Is(err, fault.ErrNotFound) {
			err = fault.Newf(fault.ErrNotFound, "there is no workflow %q", req.Workflow)
		}
		if err != nil {
			return "", err
		}
		if w.State.Finished() {
			return "", fault.Newf(fault.ErrConflict, "workflow %s has ended as %s", w.ID, w.State)
		}
		install, err := installs.Find(ctx, tx, w.InstallID)
		if err != nil {
			return "", err
		}
		s, err := h.scopeOf(ctx, tx, "", install.ID)
		if err != nil {
			return "", err
		}
		_, windows, err := h.freezesOf(ctx, tx, s)
		if err != nil {
			return "", err
		}
		in := freeze.In(windows, h.now())
		if len(in) == 0 {
			return "", fault.With(fault.Newf(fault.ErrConflict, "no freeze holds install %s now", install.Name), fault.Code("not_frozen"))
		}
		done := "let workflow " + w.ID + " of install " + install.Name + " through"
		for _, f := range in {
			err := tx.PutOverride(ctx, ctldb.PutOverrideParams{
				WorkflowID: w.ID, FreezeID: f.ID, InstallID: install.ID, Until: f.EndsAfter(h.now()), Reason: req.Body.Reason, Actor: auth.PrincipalOf(ctx).AccountName,
			})
			if err != nil {
				return "", err
			}
			done += " freeze " + f.ID
		}
		if err := tx.WakeWorkflow(ctx, w.ID); err != nil {
			return "", err
		}
		out, err = h.Workflow(ctx, tx, w.ID)
		return done + ": " + req.Body.Reason, err
	})
	return apigen.OverrideFreeze200JSONResponse(out), err
}
