package health

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Awaited is an install as its health is looked at while a gate of it is open: with the
// release and the inputs that are being deployed, which are there already. ok is false when
// no gate is open.
func Awaited(ctx context.Context, tx *database.Tx, install ctldb.Install) (awaited ctldb.Install, ok bool, err error) {
	w, err := tx.OpenGate(ctx, install.ID)
	if errors.Is(err, fault.ErrNotFound) {
		return install, false, nil
	}
	if err != nil {
		return install, false, fmt.Errorf("look for an open gate: %w", err)
	}
	install.State = model.InstallLive
	if w.ReleaseID != nil {
		install.ReleaseID = w.ReleaseID
	}
	install.InputsVersion = w.InputsVersion
	return install, true, nil
}
