package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/store"
)

// Overdue says what should have been done to a workflow already: its rows ask for
// something, and no wake-up is there that would do it. Empty when all is well.
//
// It looks under the workflow's row. Whatever gives it something to do inserts the wake-up
// in the same transaction, and who works that off needs the row: so none is a wake-up lost,
// not one that is a moment late.
func (e *Engine) Overdue(ctx context.Context, workflowID string) (flow.Do, error) {
	var do flow.Do
	err := e.Store.TxOf(ctx, workflowID, func(ctx context.Context, tx *database.Tx) error {
		do = ""
		r, err := load(ctx, tx, workflowID, e.now)
		if err != nil {
			return err
		}
		d := flow.Next(r.state())
		if d.Do == flow.DoNothing {
			return nil
		}
		due, err := jobs.Due(ctx, tx.Tx, store.RiverCtl,
			jobs.Wakeup{Kind: "workflow_advance", Args: map[string]string{"workflow_id": workflowID}},
			jobs.Wakeup{Kind: "install_advance", Args: map[string]string{"install_id": r.workflow.InstallID}},
			jobs.Wakeup{Kind: "install_due", Args: map[string]string{"install_id": r.workflow.InstallID}})
		if !due {
			do = d.Do
		}
		return err
	})
	if errors.Is(err, store.ErrNoObject) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at workflow %s: %w", workflowID, err)
	}
	return do, nil
}
