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

// act does the one thing that was decided.
func (e *Engine) act(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	if leavesQueue(s.step, d) {
		if err := wakeOthers(ctx, tx, s.workflow); err != nil {
			return err
		}
	}
	switch d.Do {
	case flow.DoStartWorkflow:
		return startWorkflow(ctx, tx, s)
	case flow.DoFinishWorkflow:
		return e.finishWorkflow(ctx, tx, s, d)
	case flow.DoStartStep:
		if flow.StepKind(s.step.Kind) == flow.StepGate {
			// From now on the runner looks at what this workflow deployed.
			if err := tx.WakeInstall(ctx, s.install.ID); err != nil {
				return err
			}
		}
		return setStep(ctx, tx, s.step, stepIs{state: model.StepRunning})
	case flow.DoWaitStep:
		if err := e.wakeLater(ctx, tx, s, d.Wait); err != nil {
			return err
		}
		return setStep(ctx, tx, s.step, stepIs{state: model.StepWaiting, wait: d.Wait})
	case flow.DoLookAgain:
		if err := e.wakeLater(ctx, tx, s, d.Wait); err != nil {
			return err
		}
		return tx.SetStepRetryAt(ctx, ctldb.SetStepRetryAtParams{ID: s.step.ID, RetryAt: d.Wait.RetryAt})
	case flow.DoSucceedStep, flow.DoFailStep, flow.DoCancelStep:
		return endStep(ctx, tx, s, d)
	case flow.DoSkipStep:
		return skipStep(ctx, tx, s.step, d.Error)
	case flow.DoPutOff:
		return putOff(ctx, tx, s, d)
	case flow.DoRunCheck:
		return e.runCheck(ctx, tx, s)
	case flow.DoCancelJob:
		return cancelJob(ctx, tx, s, d.JobID)
	}
	return e.actOnChange(ctx, tx, s, d)
}

// leavesQueue tells whether a step that waits for its turn gives it up: those
// behind it have nobody else to wake them. One that executes wakes them at its end.
func leavesQueue(step ctldb.Step, d flow.Decision) bool {
	waits := step.State == model.StepWaiting && optional.Value(step.WaitReason) == model.WaitLock
	return waits && d.Do != flow.DoExecute && d.Do != flow.DoLookAgain && (d.Do != flow.DoWaitStep || d.Wait.Reason != model.WaitLock)
}

// wakeLater has the workflow looked at again when a wait of it says so: at its next
// retry, and at its deadline. What a row says about either is so written nowhere else.
func (e *Engine) wakeLater(ctx context.Context, tx *database.Tx, s subject, w flow.Wait) error {
	for _, at := range []time.Time{w.RetryAt, w.Deadline} {
		renewed := at.Equal(w.Deadline) && s.step.WaitDeadline != nil && at.Equal(*s.step.WaitDeadline)
		if at.IsZero() || renewed {
			continue
		}
		if err := e.Waker.WakeWorkflowAt(ctx, tx, s.workflow.ID, at); err != nil {
			return err
		}
	}
	return nil
}

// actOnChange does what is about the change of a step: it reads that and its
// resource as they are, with their bulk.
func (e *Engine) actOnChange(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	if s.step.ChangeID != nil {
		c, err := tx.GetChange(ctx, *s.step.ChangeID)
		if err != nil {
			return fmt.Errorf("read change: %w", err)
		}
		s.change = &c
	}
	if s.step.ResourceID != nil && (d.Do == flow.DoPlan || d.Do == flow.DoNoChange || d.Do == flow.DoSettleChange) {
		var err error
		if s.resource, err = tx.GetResource(ctx, *s.step.ResourceID); err != nil {
			return fmt.Errorf("read resource: %w", err)
		}
	}
	switch d.Do {
	case flow.DoPlan:
		return e.plan(ctx, tx, s)
	case flow.DoPropose:
		return propose(ctx, tx, s)
	case flow.DoNoChange:
		return noChange(ctx, tx, s)
	case flow.DoPlanned:
		return showPlan(ctx, tx, s)
	case flow.DoDenyPlan:
		return denyPlan(ctx, tx, s, d)
	case flow.DoApprove:
		return approveByRule(ctx, tx, s, d.Rule)
	case flow.DoReopen:
		return e.reopen(ctx, tx, s, d)
	case flow.DoExecute:
		return e.execute(ctx, tx, s)
	case flow.DoSettleChange:
		return settleChange(ctx, tx, s, d)
	}
	return fmt.Errorf("no act for decision %q", d.Do)
}

// cancelJob asks the runner to stop a job.
func cancelJob(ctx context.Context, tx *database.Tx, s subject, jobID string) error {
	if err := tx.CancelJob(ctx, jobID); err != nil {
		return err
	}
	tx.NotifyAfterCommit(model.ChannelJobs, s.runner.id)
	return tell(ctx, tx, s.event(events.Job, events.Body{"job_id": jobID, "step": s.step.Name, "cancel": true}))
}

// tell appends to the workflow's record. What has no value is left out.
func tell(ctx context.Context, tx *database.Tx, e events.Event) error {
	for k, v := range e.Body {
		if v == nil || v == "" {
			delete(e.Body, k)
		}
	}
	return events.Append(ctx, tx, e)
}
