package workflow

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// EventsChannel is notified with a workflow's id after a commit that appended
// to its events.
const EventsChannel = "berth_workflow"

// appendEvent hands out the workflow's next sequence number and stores the
// event under it. The workflow's row is locked from here on, so numbers have no
// gaps and become visible in order.
func appendEvent(ctx context.Context, tx *store.Tx, workflowID, kind string, body map[string]any) error {
	seq, err := tx.NextEventSeq(ctx, workflowID)
	if err != nil {
		return fmt.Errorf("number event: %w", err)
	}
	if body == nil {
		body = map[string]any{}
	}
	err = tx.InsertWorkflowEvent(ctx, db.InsertWorkflowEventParams{WorkflowID: workflowID, Seq: seq, Kind: kind, Body: mustJSON(body)})
	if err != nil {
		return fmt.Errorf("store event: %w", err)
	}
	tx.NotifyAfterCommit(EventsChannel, workflowID)
	return nil
}
