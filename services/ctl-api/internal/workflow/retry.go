package workflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Retry begins a failed or cancelled step again, with a new change. The workflow goes
// on with it and with everything behind it.
//
// Errors: ErrConflict unless the step failed or was cancelled.
func Retry(ctx context.Context, tx *database.Tx, stepID, actor string) (workflowID string, err error) {
	step, err := tx.GetStep(ctx, stepID)
	if err != nil {
		return "", fmt.Errorf("read step: %w", err)
	}
	return step.WorkflowID, retry(ctx, tx, again{workflowID: step.WorkflowID, step: step.Name, actor: actor})
}

// RetryAll begins every failed or cancelled step of a workflow again.
//
// Errors: ErrConflict when there is none.
func RetryAll(ctx context.Context, tx *database.Tx, workflowID, actor string) error {
	return retry(ctx, tx, again{workflowID: workflowID, actor: actor})
}

// again is what somebody wants to begin again.
type again struct {
	workflowID string
	step       string // empty for all that failed or were cancelled
	actor      string
}

func retry(ctx context.Context, tx *database.Tx, a again) error {
	w, err := tx.LockWorkflow(ctx, a.workflowID)
	if err != nil {
		return fmt.Errorf("lock workflow: %w", err)
	}
	if w.CancelRequestedAt != nil && !w.State.Finished() {
		return fault.With(fault.Newf(fault.ErrConflict, "workflow %s is being cancelled", w.ID), fault.Code("being_cancelled"),
			fault.Remedy("retry it once it has stopped: `berth workflows watch %s`", w.ID))
	}
	rows, err := tx.StepsOfWorkflow(ctx, w.ID)
	if err != nil {
		return fmt.Errorf("read steps: %w", err)
	}
	names, err := flow.Retried(stepsOf(rows), a.step)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if !slices.Contains(names, r.Name) {
			continue
		}
		if err := tx.RetryStep(ctx, r.ID); err != nil {
			return fmt.Errorf("retry step %s: %w", r.Name, err)
		}
		body := events.Body{"step_id": r.ID, "step": r.Name, "state": model.StepPending, "retried_by": a.actor}
		if err := events.Append(ctx, tx, events.Event{WorkflowID: w.ID, Kind: events.Step, Body: body}); err != nil {
			return err
		}
	}
	if err := tx.RequestWorkflowAgain(ctx, w.ID); err != nil {
		return fmt.Errorf("request workflow again: %w", err)
	}
	if w.State == model.WorkflowFailed || w.State == model.WorkflowCancelled {
		if err := tx.SetWorkflowState(ctx, ctldb.SetWorkflowStateParams{ID: w.ID, State: model.WorkflowRunning}); err != nil {
			return err
		}
	}
	return tx.WakeWorkflow(ctx, w.ID)
}
