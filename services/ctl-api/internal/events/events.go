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
// become visible in order. Within Gather it only takes the event.
func Append(ctx context.Context, tx *database.Tx, e Event) error {
	body, err := json.Marshal(e.Body)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if g, ok := ctx.Value(gatherKey{}).(*gathered); ok && g.WorkflowID == e.WorkflowID {
		g.Kinds, g.Bodies = append(g.Kinds, e.Kind), append(g.Bodies, string(body))
		return nil
	}
	return store(ctx, tx, ctldb.AppendWorkflowEventsParams{WorkflowID: e.WorkflowID, Kinds: []string{e.Kind}, Bodies: []string{string(body)}})
}

type gatherKey struct{}

type gathered struct {
	ctldb.AppendWorkflowEventsParams
}

// Gather does something in a transaction that holds a workflow's row, and then stores
// all events of that workflow by one statement. An error leaves none.
func Gather(ctx context.Context, tx *database.Tx, workflowID string, do func(context.Context) error) error {
	g := &gathered{ctldb.AppendWorkflowEventsParams{WorkflowID: workflowID}}
	if err := do(context.WithValue(ctx, gatherKey{}, g)); err != nil || len(g.Kinds) == 0 {
		return err
	}
	return store(ctx, tx, g.AppendWorkflowEventsParams)
}

func store(ctx context.Context, tx *database.Tx, p ctldb.AppendWorkflowEventsParams) error {
	n, err := tx.AppendWorkflowEvents(ctx, p)
	if err != nil {
		return fmt.Errorf("store events: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("store events: workflow %s: %w", p.WorkflowID, fault.ErrNotFound)
	}
	tx.NotifyAfterCommit(model.ChannelWorkflow, p.WorkflowID)
	return nil
}
