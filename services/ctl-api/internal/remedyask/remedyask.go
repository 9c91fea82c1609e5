// Package remedyask asks people about remediations that the app does not want to run by
// themselves: when a check becomes unhealthy, it starts the action as a workflow of its own,
// which is planned and waits for a decision as every change does. It looks at rows alone, so it
// may run again at any time: a check is asked about once for each time that it is unhealthy.
package remedyask

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
)

// Starter starts workflows. Any number may run side by side.
type Starter struct {
	Store *database.Store
	// Start starts an action about a check, in the transaction that holds the row of its
	// install.
	Start func(ctx context.Context, tx *database.Tx, installID, check, action string) error
	Log   *slog.Logger
}

// Advance asks about the checks of an install that are unhealthy. One that does not exist is
// no error.
func (s *Starter) Advance(ctx context.Context, installID string) error {
	err := s.Store.TxOf(ctx, installID, func(ctx context.Context, tx *database.Tx) error { return s.ask(ctx, tx, installID) })
	if err != nil && !errors.Is(err, store.ErrNoObject) {
		return fmt.Errorf("remediations of install %s: %w", installID, err)
	}
	return nil
}

func (s *Starter) ask(ctx context.Context, tx *database.Tx, installID string) error {
	if checks, err := tx.ChecksToAskAbout(ctx, installID); err != nil || len(checks) == 0 {
		return err // mostly, and without the install's row
	}
	install, err := tx.LockInstallRow(ctx, installID)
	if err != nil || install.State != model.InstallLive || install.ReleaseID == nil {
		return err
	}
	checks, err := tx.ChecksToAskAbout(ctx, installID) // another worker may have been here
	if err != nil {
		return err
	}
	app, err := releaseview.InForce(ctx, tx.Queries, installID, *install.ReleaseID)
	if err != nil {
		return err
	}
	for _, r := range app.Remedied() {
		if r.RemediationMode != appconfig.RemediationAsk || !slices.Contains(checks, r.Check()) {
			continue
		}
		err := s.Start(ctx, tx, installID, r.Check(), r.Remediation)
		if errors.Is(err, fault.ErrConflict) || errors.Is(err, fault.ErrInvalid) {
			s.Log.WarnContext(ctx, "a remediation was not asked for", "install_id", installID, "check", r.Check(), "err", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
