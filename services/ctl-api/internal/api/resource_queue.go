package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// addQueue shows on resources, all of one install, who holds each and who is next.
func addQueue(ctx context.Context, tx *database.Tx, views []apigen.Resource, rows []ctldb.ShowResourcesRow) error {
	if len(rows) == 0 {
		return nil
	}
	install := rows[0].Resource.InstallID
	holders, err := tx.LockHolders(ctx, install)
	if err != nil {
		return fmt.Errorf("read holders: %w", err)
	}
	waiting, err := tx.LockQueue(ctx, install)
	if err != nil {
		return fmt.Errorf("read the queue: %w", err)
	}
	for i := range views {
		for _, h := range holders {
			if h.ResourceID == views[i].ID {
				views[i].Holder = &apigen.ResourceTurn{
					Change: h.ChangeID, Workflow: h.WorkflowID, WorkflowKind: apigen.WorkflowKind(h.WorkflowKind), Step: h.Step, CreatedBy: h.CreatedBy, Since: h.Since,
				}
			}
		}
		for _, q := range waiting {
			if q.ResourceID == views[i].ID {
				views[i].Queue = append(views[i].Queue, apigen.ResourceTurn{
					Change: q.ChangeID, Workflow: q.WorkflowID, WorkflowKind: apigen.WorkflowKind(q.WorkflowKind), Step: q.Step, CreatedBy: q.CreatedBy, Since: q.Since,
					WaitsFor: optional.Of(q.WaitsFor),
				})
			}
		}
	}
	return nil
}
