package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/order"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// execute gives the exclusive grant: under the install's row, which the engine
// holds, it looks again at the locks, raises the resource's fence, and stores the
// apply job with its order.
func (e *Engine) execute(ctx context.Context, tx *database.Tx, s subject) error {
	c := *s.change
	if ready, err := e.mayExecute(ctx, tx, s); err != nil || !ready {
		return err
	}
	spec, err := e.applySpec(ctx, tx, c)
	if errors.Is(err, order.ErrNotOrdered) {
		return voidPlan(ctx, tx, s, err)
	}
	if err != nil {
		return err
	}
	fence, taken, err := grant(ctx, tx, s)
	if err != nil {
		return err
	}
	if taken {
		return tx.WakeWorkflow(ctx, s.workflow.ID) // the next look waits for the lock
	}
	runID, err := actionRunFor(ctx, tx, s)
	if err != nil {
		return err
	}
	if err := tx.ExecuteChange(ctx, ctldb.ExecuteChangeParams{ID: c.ID, Fence: &fence, ApplyJobID: &spec.JobID}); err != nil {
		return fmt.Errorf("execute change: %w", err)
	}
	if err := goOn(ctx, tx, s.step); err != nil {
		return err
	}
	if err := tell(ctx, tx, s.event(events.Change, events.Body{"change_id": c.ID, "step": s.step.Name, "state": model.ChangeExecuting, "fence": fence})); err != nil {
		return err
	}
	return e.dispatch(ctx, tx, s, job{
		spec: spec, fence: &fence, actionRunID: runID, origin: originOf(c), releaseID: optional.Value(c.ReleaseID),
		effectDigest: optional.Value(c.EffectDigest), planBytesDigest: optional.Value(c.PlanBytesDigest),
	})
}

// mayExecute looks again, under the install's row which the engine holds, whether the change may be carried
// out: freezes and pauses are set under it, and every approver must still have the
// right. When it may not, the next look says why.
func (e *Engine) mayExecute(ctx context.Context, tx *database.Tx, s subject) (bool, error) {
	if s.free || flow.StepKind(s.step.Kind) == flow.StepForget { // which only takes permission away
		return true, nil
	}
	now, err := clearance.Read(ctx, tx, s.workflow, s.install, e.now())
	if err != nil {
		return false, err
	}
	change := flow.Change{ID: s.change.ID, ApprovedDigest: optional.Value(s.change.ApprovedEffectDigest)}
	if now.Fill(&change); now.Hold == nil && change.Enough() {
		return true, nil
	}
	return false, tx.WakeWorkflow(ctx, s.workflow.ID)
}

// reopen has people decide again on a change, because of d.Error.
func (e *Engine) reopen(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	if err := tx.ReopenChange(ctx, ctldb.ReopenChangeParams{ID: s.change.ID, Error: d.Error, Deadline: &d.Wait.Deadline}); err != nil {
		return fmt.Errorf("reopen change: %w", err)
	}
	if err := e.wakeLater(ctx, tx, s, d.Wait); err != nil {
		return err
	}
	if err := setStep(ctx, tx, s.step, stepIs{state: model.StepWaiting, wait: d.Wait}); err != nil {
		return err
	}
	return tell(ctx, tx, s.event(events.Change, events.Body{"change_id": s.change.ID, "step": s.step.Name, "state": model.ChangeProposed, "error": d.Error}))
}

// grant takes the lock of the step's resource, under the install's row, and
// raises its fence. taken says that a lock which excludes it was taken between
// the look and the install's lock; then nothing is done. A step without a
// resource needs no grant. A script holds its resource and does not change what
// Berth knows of it.
func grant(ctx context.Context, tx *database.Tx, s subject) (fence int64, taken bool, err error) {
	c := *s.change
	if s.step.ResourceID == nil {
		return 0, false, nil
	}
	resources, err := tx.ResourcesOfInstall(ctx, c.InstallID)
	if err != nil {
		return 0, false, fmt.Errorf("read resources: %w", err)
	}
	if locksOf(resources).Holder(*s.step.ResourceID) != "" {
		return 0, true, nil
	}
	if c.ResourceID == nil {
		fence, err = tx.HoldResource(ctx, ctldb.HoldResourceParams{ID: *s.step.ResourceID, ChangeID: c.ID})
		return fence, false, err
	}
	if fence, err = tx.GrantResource(ctx, ctldb.GrantResourceParams{ID: *c.ResourceID, ChangeID: c.ID}); err != nil {
		return 0, false, fmt.Errorf("grant resource: %w", err)
	}
	if err := tx.FreeTerraformLock(ctx, ctldb.FreeTerraformLockParams{ResourceID: *c.ResourceID, Fence: fence}); err != nil {
		return 0, false, fmt.Errorf("free terraform lock: %w", err)
	}
	return fence, false, nil
}

// voidPlan ends a change whose plan cannot be ordered any more, so that it is
// planned again.
func voidPlan(ctx context.Context, tx *database.Tx, s subject, why error) error {
	text := why.Error()
	if err := tx.SettleChange(ctx, ctldb.SettleChangeParams{ID: s.change.ID, State: model.ChangeStale, Error: &text}); err != nil {
		return fmt.Errorf("settle change: %w", err)
	}
	if err := wakeOthers(ctx, tx, s.workflow); err != nil { // it may have been their turn after it
		return err
	}
	return tell(ctx, tx, s.event(events.Change, events.Body{"change_id": s.change.ID, "step": s.step.Name, "state": model.ChangeStale, "error": text}))
}

// applySpec is the spec of the plan job, turned into the order to apply it.
func (e *Engine) applySpec(ctx context.Context, tx *database.Tx, c ctldb.Change) (jobspec.Spec, error) {
	spec, err := e.orderedPlan(ctx, tx, c)
	if err != nil {
		return jobspec.Spec{}, err
	}
	spec.JobID, spec.Operation, spec.Pinned = id.New(id.Job), jobspec.OperationApply, optional.Value(c.Pinned)
	spec.Policies = nil                    // its plan has pinned them, rendered
	spec.State, spec.StateVersion = nil, 0 // what it needs of the state, its plan has pinned
	return spec, nil
}

// orderedPlan is the spec of the plan job of a change, as it was ordered. What
// somebody else wrote into the row since is not signed again.
func (e *Engine) orderedPlan(ctx context.Context, tx *database.Tx, c ctldb.Change) (jobspec.Spec, error) {
	row, err := tx.JobSpec(ctx, optional.Value(c.PlanJobID))
	if err != nil {
		return jobspec.Spec{}, fmt.Errorf("read plan job: %w", err)
	}
	key, err := e.Keys.Dispatch(ctx, tx)
	if err != nil {
		return jobspec.Spec{}, err
	}
	spec, err := order.Ordered(key, order.Signed{Spec: row.Spec, Envelope: row.SignedOrder})
	if err != nil {
		return jobspec.Spec{}, fmt.Errorf("plan job %s: %w", optional.Value(c.PlanJobID), err)
	}
	return spec, nil
}
