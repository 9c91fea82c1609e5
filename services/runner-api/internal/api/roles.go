package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
)

// PutRoles records which roles the customer has switched on, and each switch once. It wakes
// what waits for a role, and what starts the actions of a switch.
func (a *API) PutRoles(ctx context.Context, req apigen.PutRolesRequestObject) (apigen.PutRolesResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := installOf(s); err != nil {
		return nil, err
	}
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		changed, err := putRoles(ctx, tx, s.InstallID, *req.Body)
		if err != nil || changed == 0 {
			return err
		}
		return tx.WakeInstall(ctx, s.InstallID)
	})
	if err != nil {
		return nil, fmt.Errorf("put roles: %w", err)
	}
	return apigen.PutRoles204Response{}, nil
}

// putRoles writes a report down and counts what is new in it. The switches come first:
// a role that is on names the one by which it is.
func putRoles(ctx context.Context, tx *database.Tx, installID string, report apigen.RolesReport) (changed int64, err error) {
	for _, told := range report.Switches {
		n, err := tx.RunnerSwitchedRole(ctx, runnerdb.RunnerSwitchedRoleParams{
			InstallID: installID, ID: told.ID, Role: told.Role, Name: told.Name, Enabled: told.On, SwitchedAt: told.At, Until: told.Until,
			SwitchedBy: told.By, Reason: told.Reason,
		})
		if err != nil {
			return 0, err
		}
		changed += n
	}
	written := make([]string, 0, len(report.Roles))
	for _, role := range report.Roles {
		n, err := tx.RunnerPutRole(ctx, runnerdb.RunnerPutRoleParams{
			InstallID: installID, Written: role.Written, Name: role.Name, Known: role.Known, Kind: string(role.Kind),
			DisplayName: role.DisplayName, Description: role.Description, SwitchID: role.SwitchID,
		})
		if err != nil {
			return 0, err
		}
		changed += n
		written = append(written, role.Written)
	}
	n, err := tx.RunnerHasRoles(ctx, runnerdb.RunnerHasRolesParams{InstallID: installID, Written: written})
	return changed + n, err
}
