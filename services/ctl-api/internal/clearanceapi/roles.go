package clearanceapi

import (
	"context"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListInstallRoles answers the roles that the customer of an install switches.
func (h *Clearance) ListInstallRoles(ctx context.Context, req apigen.ListInstallRolesRequestObject) (apigen.ListInstallRolesResponseObject, error) {
	out := apigen.ListInstallRoles200JSONResponse{Items: []apigen.InstallRole{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		rows, err := tx.RolesOfInstall(ctx, install.ID)
		if err != nil {
			return err
		}
		app := &appconfig.App{}
		if install.ReleaseID != nil {
			if app, err = releaseview.App(ctx, tx.Queries, *install.ReleaseID); err != nil {
				return err
			}
		}
		known := roles.Of(rows)
		for _, row := range rows {
			out.Items = append(out.Items, roleView(row, known, app))
		}
		return nil
	})
	return out, err
}

func roleView(row ctldb.RolesOfInstallRow, known roles.Known, app *appconfig.App) apigen.InstallRole {
	r := row.InstallRole
	view := apigen.InstallRole{
		Name: r.Name, Known: r.Known, Written: r.Written, Kind: apigen.InstallRoleKind(r.Kind), DisplayName: r.DisplayName, Description: r.Description,
		On: r.SwitchID != nil, Since: row.SwitchedAt, Until: row.Until, SwitchedBy: row.SwitchedBy, Reason: row.Reason, Actions: []string{},
	}
	for _, a := range app.Actions {
		if a.BreakGlassRole == "" {
			continue
		}
		if role, found := known.Find(a.BreakGlassRole); found && role.Written == r.Written {
			view.Actions = append(view.Actions, a.Name)
		}
	}
	return view
}
