package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// stepIs is what a step becomes.
type stepIs struct {
	state  model.StepState
	wait   flow.Wait // of a waiting one
	err    string    // of a failed one
	remedy string
	ended  model.Ended // of a failed one in which nothing went wrong
}

// setStep writes a step's state with its wait and tells it.
func setStep(ctx context.Context, tx *database.Tx, step ctldb.Step, to stepIs) error {
	p := ctldb.SetStepStateParams{ID: step.ID, State: to.state, Error: optional.Of(to.err), Remedy: optional.Of(to.remedy)}
	if to.state == model.StepWaiting {
		p.WaitReason, p.WaitOn, p.WaitDeadline = optional.Of(to.wait.Reason), optional.Of(to.wait.On), optional.Of(to.wait.Deadline)
		p.WaitRetryAt = optional.Of(to.wait.RetryAt)
		if to.wait.On == "" { // who can end it is always named
			p.WaitOn = optional.Of("operator")
		}
	}
	if err := tx.SetStepState(ctx, p); err != nil {
		return fmt.Errorf("set step %s to %s: %w", step.Name, to.state, err)
	}
	return tell(ctx, tx, events.Event{WorkflowID: step.WorkflowID, Kind: events.Step, Body: events.Body{
		"step_id": step.ID, "step": step.Name, "state": to.state, "error": to.err, "remedy": to.remedy, "ended": string(to.ended),
		"wait": waitBody(p.WaitReason, p.WaitOn, p.WaitDeadline),
	}})
}

// waitBody is how an event shows a wait; nil for none.
func waitBody(reason *model.WaitReason, on *string, deadline *time.Time) any {
	if reason == nil {
		return nil
	}
	return map[string]any{"reason": *reason, "on": optional.Value(on), "deadline": deadline}
}

// goOn has a step that waited run again.
func goOn(ctx context.Context, tx *database.Tx, step ctldb.Step) error {
	if step.State != model.StepWaiting {
		return nil
	}
	return setStep(ctx, tx, step, stepIs{state: model.StepRunning})
}

// endStep ends a step as was decided.
func endStep(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	if flow.StepKind(s.step.Kind) == flow.StepCheck {
		if err := settleCheckRun(ctx, tx, s.step); err != nil {
			return err
		}
	}
	switch d.Do {
	case flow.DoSucceedStep:
		if flow.StepKind(s.step.Kind) == flow.StepAwaitStack && !s.workflow.PlanOnly {
			if err := tx.MakeStackLive(ctx, s.install.ID); err != nil {
				return err
			}
		}
		return setStep(ctx, tx, s.step, stepIs{state: model.StepSucceeded})
	case flow.DoFailStep:
		return setStep(ctx, tx, s.step, stepIs{state: model.StepFailed, err: d.Error, remedy: d.Remedy, ended: d.Ended})
	}
	if err := withdraw(ctx, tx, s.step, "the workflow was cancelled"); err != nil {
		return err
	}
	return setStep(ctx, tx, s.step, stepIs{state: model.StepCancelled})
}

// putOff takes a step back to pending: what it planned is not going to be done.
func putOff(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	if err := withdraw(ctx, tx, s.step, d.Error); err != nil {
		return err
	}
	if err := setStep(ctx, tx, s.step, stepIs{state: model.StepPending}); err != nil {
		return err
	}
	// What it planned before now does not count any more.
	return tx.RetryStep(ctx, s.step.ID)
}

// withdraw ends the change of a step that is still open, because of why.
func withdraw(ctx context.Context, tx *database.Tx, step ctldb.Step, why string) error {
	if step.ChangeID == nil {
		return nil
	}
	c, err := tx.GetChange(ctx, *step.ChangeID)
	if err != nil {
		return fmt.Errorf("read change: %w", err)
	}
	if !c.State.Open() {
		return nil
	}
	return tx.EndPlannedChange(ctx, ctldb.EndPlannedChangeParams{
		ID: c.ID, State: model.ChangeWithdrawn, Effect: c.Effect, EffectDigest: c.EffectDigest, Plan: c.Plan, Error: optional.Of(why),
	})
}
