// Package events is the record of what happened to a workflow: numbered without
// gaps, so that who follows it knows that nothing is missing.
package events

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// What an event is about.
const (
	Workflow = "workflow"
	Step     = "step"
	Change   = "change"
	Job      = "job"
)

// Body is what an event says, by key. It never holds a secret.
type Body map[string]any

// Event is one thing that happened to a workflow.
type Event struct {
	WorkflowID string
	Kind       string
	Body       Body
}

// Append hands out the workflow's next sequence number and stores the event under
// it. The workflow's row is locked from here on, so numbers have no gaps and
// become visible in order.
func Append(ctx context.Context, tx *database.Tx, e Event) error {
	body, err := json.Marshal(e.Body)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	n, err := tx.AppendWorkflowEvent(ctx, ctldb.AppendWorkflowEventParams{WorkflowID: e.WorkflowID, Kind: e.Kind, Body: body})
	if err != nil {
		return fmt.Errorf("store event: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("store event: workflow %s: %w", e.WorkflowID, fault.ErrNotFound)
	}
	tx.NotifyAfterCommit(model.ChannelWorkflow, e.WorkflowID)
	return nil
}
