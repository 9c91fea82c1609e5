package clearance

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Pausing is a person's wish to pause an install; without a reason, to resume it.
type Pausing struct {
	InstallID, Actor, Reason string
}

// Pause pauses or resumes an install, under its row, so that no grant comes between;
// and wakes its workflows. changed is false when it was so already. Errors:
// ErrConflict for one that is forgotten.
func Pause(ctx context.Context, tx *database.Tx, p Pausing) (changed bool, err error) {
	install, err := tx.LockInstallRow(ctx, p.InstallID)
	if err != nil {
		return false, fmt.Errorf("lock install: %w", err)
	}
	switch {
	case install.ForgottenAt != nil:
		return false, fault.Newf(fault.ErrConflict, "install %q is forgotten", install.Name)
	case p.Reason == "" && install.PausedAt == nil, p.Reason != "" && install.PausedAt != nil && *install.PauseReason == p.Reason:
		return false, nil
	case p.Reason == "":
		err = tx.ResumeInstall(ctx, ctldb.ResumeInstallParams{ID: install.ID, Actor: p.Actor})
	default:
		err = tx.PauseInstall(ctx, ctldb.PauseInstallParams{ID: install.ID, Actor: p.Actor, Reason: p.Reason})
	}
	if err != nil {
		return false, fmt.Errorf("pause install: %w", err)
	}
	return true, Wake(ctx, tx, install.ID)
}

// Wake has the open workflows of installs look again: what holds them has moved.
func Wake(ctx context.Context, tx *database.Tx, installIDs ...string) error {
	return tx.WakeWorkflowsOfInstalls(ctx, installIDs)
}
