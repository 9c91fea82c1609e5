package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/destruction"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListApps answers apps by name.
func (s *Server) ListApps(ctx context.Context, req apigen.ListAppsRequestObject) (apigen.ListAppsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListApps200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListApps(ctx, ctldb.ListAppsParams{After: optional.Value(req.Params.After), Most: int32(limit + 1)})
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(a ctldb.App) string { return a.Name })
		out.Items, err = appViews(ctx, tx, rows...)
		return err
	})
	return out, err
}

// CreateApp makes an empty app.
func (s *Server) CreateApp(ctx context.Context, req apigen.CreateAppRequestObject) (apigen.CreateAppResponseObject, error) {
	var out apigen.CreateApp201JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		row, err := tx.InsertApp(ctx, ctldb.InsertAppParams{
			ID: id.New(id.App), Name: req.Body.Name, DisplayName: optional.Value(req.Body.DisplayName),
			Description: optional.Value(req.Body.Description), Labels: labelsJSON(req.Body.Labels),
		})
		if err != nil {
			return "", err
		}
		view, err := appView(row, ctldb.AppHeadsRow{})
		out = apigen.CreateApp201JSONResponse(view)
		return "create app " + row.Name, err
	})
	return out, err
}

// GetApp answers one app.
func (s *Server) GetApp(ctx context.Context, req apigen.GetAppRequestObject) (apigen.GetAppResponseObject, error) {
	var app apigen.App
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		app, err = oneApp(ctx, tx, req.App)
		return err
	})
	tag := appTag(app)
	return apigen.GetApp200JSONResponse{Body: app, Headers: apigen.GetApp200ResponseHeaders{ETag: &tag}}, err
}

// appTag names the version of what PATCH changes.
func appTag(a apigen.App) string { return tagOf(a.ID, a.DisplayName, a.Description, a.Labels) }

// UpdateApp changes how an app is shown.
func (s *Server) UpdateApp(ctx context.Context, req apigen.UpdateAppRequestObject) (apigen.UpdateAppResponseObject, error) {
	var app apigen.App
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		row, err := findApp(ctx, tx, req.App)
		if err != nil {
			return "", err
		}
		err = checkTag(req.Params.IfMatch, "app "+row.Name, func() (string, error) {
			if _, err := tx.LockApp(ctx, row.ID); err != nil {
				return "", err
			}
			now, err := oneApp(ctx, tx, row.ID)
			return appTag(now), err
		})
		if err != nil {
			return "", err
		}
		change := ctldb.UpdateAppParams{ID: row.ID, DisplayName: req.Body.DisplayName, Description: req.Body.Description}
		if req.Body.Labels != nil {
			change.Labels = labelsJSON(req.Body.Labels)
		}
		if _, err := tx.UpdateApp(ctx, change); err != nil {
			return "", err
		}
		app, err = oneApp(ctx, tx, row.ID)
		return "change app " + row.Name, err
	})
	tag := appTag(app)
	return apigen.UpdateApp200JSONResponse{Body: app, Headers: apigen.UpdateApp200ResponseHeaders{ETag: &tag}}, err
}

// DeleteApp deletes an app that no install uses, once its name confirms it.
func (s *Server) DeleteApp(ctx context.Context, req apigen.DeleteAppRequestObject) (apigen.DeleteAppResponseObject, error) {
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		row, err := findApp(ctx, tx, req.App)
		if err != nil {
			return "", err
		}
		if _, err := tx.LockApp(ctx, row.ID); err != nil {
			return "", err
		}
		n, err := tx.CountInstallsOfApp(ctx, row.ID)
		if err != nil {
			return "", err
		}
		if n > 0 {
			return "", fault.With(fault.Newf(fault.ErrConflict, "app %s has %d installs", row.Name, n), fault.Code("app_in_use"),
				fault.Remedy("deprovision and forget them first"))
		}
		if err := confirmedDelete(ctx, tx, row, optional.Value(req.Params.Confirm)); err != nil {
			return "", err
		}
		if err := tx.DeleteAppVariables(ctx, row.ID); err != nil { // secrets do not outlive it
			return "", err
		}
		return "delete app " + row.Name, tx.DeleteApp(ctx, row.ID)
	})
	if err != nil {
		return nil, err
	}
	return apigen.DeleteApp204Response{}, nil
}

// confirmedDelete refuses to delete an app without its name.
func confirmedDelete(ctx context.Context, tx *database.Tx, app ctldb.App, confirm string) error {
	heads, err := tx.AppHeads(ctx, []string{app.ID})
	if err != nil {
		return err
	}
	deed := destruction.Deed{What: "deleting app " + app.Name, Name: app.Name}
	for _, head := range heads {
		if head.ConfigNumber > 0 {
			deed.Goes = append(deed.Goes, fmt.Sprintf("configs up to %d", head.ConfigNumber))
		}
		if head.ReleaseNumber > 0 {
			deed.Goes = append(deed.Goes, fmt.Sprintf("releases up to %d", head.ReleaseNumber))
		}
	}
	variables, err := tx.ListAppVariables(ctx, app.ID)
	if err != nil {
		return err
	}
	for _, v := range variables {
		deed.Goes = append(deed.Goes, "variable "+v.Name)
	}
	return deed.Confirmed(confirm)
}

func findApp(ctx context.Context, tx *database.Tx, ref string) (ctldb.App, error) {
	app, err := tx.FindApp(ctx, ref)
	return app, missing(err, "there is no app %q", ref)
}

// appID is the id of an app that a filter names; empty for no filter.
func appID(ctx context.Context, tx *database.Tx, ref *string) (string, error) {
	if optional.Value(ref) == "" {
		return "", nil
	}
	app, err := findApp(ctx, tx, *ref)
	return app.ID, err
}

func oneApp(ctx context.Context, tx *database.Tx, ref string) (apigen.App, error) {
	row, err := findApp(ctx, tx, ref)
	if err != nil {
		return apigen.App{}, err
	}
	views, err := appViews(ctx, tx, row)
	if err != nil {
		return apigen.App{}, err
	}
	return views[0], nil
}

func appViews(ctx context.Context, tx *database.Tx, rows ...ctldb.App) ([]apigen.App, error) {
	heads, err := tx.AppHeads(ctx, convert(rows, func(a ctldb.App) string { return a.ID }))
	if err != nil {
		return nil, err
	}
	byID := map[string]ctldb.AppHeadsRow{}
	for _, h := range heads {
		byID[h.AppID] = h
	}
	return convertAll(rows, func(a ctldb.App) (apigen.App, error) { return appView(a, byID[a.ID]) })
}

func appView(a ctldb.App, h ctldb.AppHeadsRow) (apigen.App, error) {
	labels, err := labelsOf(a.Labels)
	return apigen.App{
		ID: a.ID, Name: a.Name, DisplayName: a.DisplayName, Description: a.Description, Labels: labels, CreatedAt: a.CreatedAt,
		Config: apiref.Number(optional.Of(h.ConfigID), &h.ConfigNumber), Release: apiref.Number(optional.Of(h.ReleaseID), &h.ReleaseNumber),
	}, err
}
