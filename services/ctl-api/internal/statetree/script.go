package statetree

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/recipient"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ScriptEnv are the sensitive variables of a script that is part of no release.
type ScriptEnv struct {
	Install  ctldb.Install
	ChangeID string // the change that runs it
	Values   map[string]string
}

// WithScript adds the variables to a copy of a tree, each sealed to the install for that
// change alone. What it returns is for one job and is stored nowhere else.
//
// Errors: ErrConflict when there is nobody to seal to.
func WithScript(ctx context.Context, tx *database.Tx, tree json.RawMessage, e ScriptEnv) (json.RawMessage, error) {
	b := builder{tx: tx, Wanted: Wanted{Install: e.Install}}
	var err error
	if b.runner, err = tx.InstallRunner(ctx, e.Install.ID); err != nil {
		return nil, fmt.Errorf("read runner: %w", err)
	}
	if b.to, err = recipient.Of(ctx, tx, b.runner); err != nil {
		return nil, fmt.Errorf("whom to seal to: %w", err)
	}
	secret := map[string]any{}
	for name, value := range e.Values {
		secret[name] = value
	}
	purpose := func(org, install, name string) seal.Purpose {
		return interpolate.ScriptPurpose(org, install, e.ChangeID, name)
	}
	env, err := b.sealed("script variables", purpose, map[string]any{}, secret)
	if err != nil {
		return nil, err
	}
	added, err := json.Marshal(map[string]any{"change_id": e.ChangeID, "env": env})
	if err != nil {
		return nil, fmt.Errorf("write variables of the script: %w", err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(tree, &parts); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	parts[interpolate.ScriptKey] = added
	return json.Marshal(parts)
}
