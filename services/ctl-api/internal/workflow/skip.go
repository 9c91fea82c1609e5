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

// Skip has a workflow go on without a failed step, and without what needs it. A
// workflow that left out a deploy does not bring its release.
//
// Errors: ErrConflict unless the step failed, with code not_skippable when the
// workflow makes no sense without it.
func Skip(ctx context.Context, tx *database.Tx, stepID, actor string) (workflowID string, err error) {
	step, err := tx.GetStep(ctx, stepID)
	if err != nil {
		return "", fmt.Errorf("read step: %w", err)
	}
	w, err := tx.LockWorkflow(ctx, step.WorkflowID)
	if err != nil {
		return "", fmt.Errorf("lock workflow: %w", err)
	}
	rows, err := tx.StepsOfWorkflow(ctx, w.ID)
	if err != nil {
		return "", fmt.Errorf("read steps: %w", err)
	}
	for _, r := range rows {
		if r.ID == stepID {
			step = r // as it is with the lock
		}
	}
	if step.State != model.StepFailed {
		return "", fault.Newf(fault.ErrConflict, "step %q is %s; only a failed step can be skipped", step.Name, step.State)
	}
	if w.State == model.WorkflowCancelled || w.CancelRequestedAt != nil {
		return "", fault.Newf(fault.ErrConflict, "workflow %s was cancelled; start a new one", w.ID)
	}
	names, ok := flow.SkippedWith(stepsOf(rows), step.Name)
	if !ok {
		return "", fault.With(fault.Newf(fault.ErrConflict, "step %q cannot be skipped: what comes after it relies on it", step.Name),
			fault.Code("not_skippable"), fault.Remedy("correct the cause and retry it"))
	}
	for _, r := range rows {
		if !slices.Contains(names, r.Name) {
			continue
		}
		if err := tx.SkipFailedStep(ctx, ctldb.SkipFailedStepParams{ID: r.ID, Actor: actor}); err != nil {
			return "", fmt.Errorf("skip step %s: %w", r.Name, err)
		}
		body := events.Body{"step_id": r.ID, "step": r.Name, "state": model.StepSkipped, "skipped_by": actor}
		if err := events.Append(ctx, tx, events.Event{WorkflowID: w.ID, Kind: events.Step, Body: body}); err != nil {
			return "", err
		}
	}
	if w.State == model.WorkflowFailed {
		if err := tx.RequestWorkflowAgain(ctx, w.ID); err != nil {
			return "", fmt.Errorf("request workflow again: %w", err)
		}
		if err := tx.SetWorkflowState(ctx, ctldb.SetWorkflowStateParams{ID: w.ID, State: model.WorkflowRunning}); err != nil {
			return "", err
		}
	}
	return w.ID, tx.WakeWorkflow(ctx, w.ID)
}

// stepsOf are rows as the flow looks at what needs what.
func stepsOf(rows []ctldb.Step) (steps []flow.Step) {
	for _, r := range rows {
		steps = append(steps, flow.Step{ID: r.ID, Name: r.Name, Kind: flow.StepKind(r.Kind), State: r.State, Needs: r.Needs})
	}
	return steps
}
