package roles

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Read reads the roles of an install.
func Read(ctx context.Context, q *ctldb.Queries, installID string) (Known, error) {
	rows, err := q.RolesOfInstall(ctx, installID)
	if err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	return Of(rows), nil
}

// OfStep is the role that has to be on for a step's action, as its row keeps it; "" for
// none.
func OfStep(step ctldb.Step) string {
	var p struct {
		Role string `json:"role"`
	}
	if json.Unmarshal(step.Params, &p) != nil {
		return "" // of a version that kept something else there
	}
	return p.Role
}

// Missing says of steps whose actions need a role that is not on why that is so, by the
// id of the step. It reads nothing where no step needs one.
func Missing(ctx context.Context, q *ctldb.Queries, steps []ctldb.Step) (map[string]string, error) {
	why := map[string]string{}
	var known Known
	for _, step := range steps {
		role := OfStep(step)
		if role == "" {
			continue
		}
		if known == nil {
			var err error
			if known, err = Read(ctx, q, step.InstallID); err != nil {
				return nil, err
			}
		}
		if hold := known.Hold(role); hold != nil {
			why[step.ID] = hold.Text
		}
	}
	return why, nil
}
