// Package roleswitch starts what the switch of a role starts: one workflow for each
// switch that has actions, once. It looks at rows alone, so it may run again at any
// time: a switch is done with in the transaction that starts its workflow.
package roleswitch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Starter starts workflows. Any number may run side by side.
type Starter struct {
	Store *database.Store
	// Start starts the workflow of a switch, in the transaction that holds the row of
	// its install.
	Start func(ctx context.Context, tx *database.Tx, installID string, s roles.Switch) (workflowID string, err error)
	Log   *slog.Logger
}

// Advance handles the switches of an install that were told since, in their order. One
// that does not exist is no error.
func (s *Starter) Advance(ctx context.Context, installID string) error {
	for {
		left := false
		err := s.Store.TxOf(ctx, installID, func(ctx context.Context, tx *database.Tx) (err error) {
			left, err = s.next(ctx, tx, installID)
			return err
		})
		if errors.Is(err, store.ErrNoObject) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("switches of roles of install %s: %w", installID, err)
		}
		if !left {
			return nil
		}
	}
}

// next handles the oldest switch, and says whether others are left.
func (s *Starter) next(ctx context.Context, tx *database.Tx, installID string) (left bool, err error) {
	if open, err := tx.OpenRoleSwitches(ctx, installID); err != nil || len(open) == 0 {
		return false, err // mostly, and without the install's row
	}
	install, err := tx.LockInstallRow(ctx, installID)
	if err != nil {
		return false, err
	}
	open, err := tx.OpenRoleSwitches(ctx, installID) // another worker may have been here
	if err != nil || len(open) == 0 {
		return false, err
	}
	workflowID, err := s.start(ctx, tx, install, open[0])
	if err != nil {
		return false, err
	}
	err = tx.RoleSwitchHandled(ctx, ctldb.RoleSwitchHandledParams{InstallID: installID, ID: open[0].ID, WorkflowID: optional.Of(workflowID)})
	return len(open) > 1, err
}

// start starts the workflow of a switch, "" when there is nothing to do: no action of the
// release that the install has is about it, or there is no such release.
func (s *Starter) start(ctx context.Context, tx *database.Tx, install ctldb.Install, row ctldb.RoleSwitch) (string, error) {
	if install.ReleaseID == nil || install.State == model.InstallDeprovisioned || install.State == model.InstallForgotten {
		return "", nil
	}
	app, err := releaseview.App(ctx, tx.Queries, *install.ReleaseID)
	if err != nil {
		return "", err
	}
	known, err := roles.Read(ctx, tx.Queries, install.ID)
	if err != nil {
		return "", err
	}
	sw := roles.Switch{ID: row.ID, Role: row.Role, Name: row.Name, On: row.Enabled}
	if !known.Starts(sw, app) {
		return "", nil
	}
	id, err := s.Start(ctx, tx, install.ID, sw)
	if errors.Is(err, fault.ErrConflict) || errors.Is(err, fault.ErrInvalid) {
		s.Log.WarnContext(ctx, "the actions of a role's switch were not started", "install_id", install.ID, "switch_id", sw.ID, "err", err)
		return "", nil
	}
	return id, err
}
