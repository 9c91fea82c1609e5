package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/order"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// execute gives the exclusive grant: in one transaction, under the install's
// row, it looks again at the locks, raises the resource's fence, and stores the
// apply job with its order.
func (r *round) execute(ctx context.Context, step db.Step) error {
	if _, err := r.tx.LockInstallRow(ctx, r.install.ID); err != nil {
		return fmt.Errorf("lock install: %w", err)
	}
	c := r.changes[step.ID]
	spec, err := r.applySpec(ctx, c)
	if errors.Is(err, order.ErrNotOrdered) {
		return r.voidPlan(ctx, step, c, err)
	}
	if err != nil {
		return err
	}
	var fence int64
	if c.ResourceID != nil {
		resources, err := r.tx.ResourcesOfInstall(ctx, r.install.ID)
		if err != nil {
			return fmt.Errorf("read resources: %w", err)
		}
		if takenSince(resources, *c.ResourceID) {
			return r.tx.WakeWorkflow(ctx, r.workflow.ID) // the next look waits for the lock
		}
		if fence, err = r.tx.GrantResource(ctx, db.GrantResourceParams{ID: *c.ResourceID, ChangeID: c.ID}); err != nil {
			return fmt.Errorf("grant resource: %w", err)
		}
		if err := r.tx.FreeTerraformLock(ctx, db.FreeTerraformLockParams{ResourceID: *c.ResourceID, Fence: fence}); err != nil {
			return fmt.Errorf("free terraform lock: %w", err)
		}
	}
	runID, err := r.actionRunFor(ctx, step, c)
	if err != nil {
		return err
	}
	if err := r.tx.ExecuteChange(ctx, db.ExecuteChangeParams{ID: c.ID, Fence: &fence, ApplyJobID: &spec.JobID}); err != nil {
		return fmt.Errorf("execute change: %w", err)
	}
	if step.State == flow.StepWaiting {
		if err := r.setStep(ctx, step, flow.StepRunning, flow.Wait{}, "", ""); err != nil {
			return err
		}
	}
	if err := r.event(ctx, "change", map[string]any{"change_id": c.ID, "step": step.Name, "state": flow.ChangeExecuting, "fence": fence}); err != nil {
		return err
	}
	return r.dispatch(ctx, step, job{
		spec: spec, fence: &fence, actionRunID: runID, origin: originOf(c), releaseID: optional.Value(c.ReleaseID),
		effectDigest: optional.Value(c.EffectDigest), planBytesDigest: optional.Value(c.PlanBytesDigest),
	})
}

// voidPlan ends a change whose plan cannot be ordered any more, so that it is
// planned again.
func (r *round) voidPlan(ctx context.Context, step db.Step, c db.Change, why error) error {
	text := why.Error()
	if err := r.tx.SettleChange(ctx, db.SettleChangeParams{ID: c.ID, State: flow.ChangeStale, Error: &text}); err != nil {
		return fmt.Errorf("settle change: %w", err)
	}
	return r.event(ctx, "change", map[string]any{"change_id": c.ID, "step": step.Name, "state": flow.ChangeStale, "error": text})
}

// takenSince says whether a lock that excludes the resource was taken between
// the look and the install's lock.
func takenSince(resources []db.Resource, resourceID string) bool {
	return locksOf(resources).Holder(resourceID) != ""
}

// applySpec is the spec of the plan job, turned into the order to apply it.
func (r *round) applySpec(ctx context.Context, c db.Change) (jobspec.Spec, error) {
	spec, err := r.orderedPlan(ctx, c)
	if err != nil {
		return jobspec.Spec{}, err
	}
	spec.JobID, spec.Operation, spec.Pinned = newID(id.Job), jobspec.OperationApply, optional.Value(c.Pinned)
	spec.State, spec.StateVersion = nil, 0 // what it needs of the state, its plan has pinned
	return spec, nil
}

// orderedPlan is the spec of the plan job of a change, as it was ordered. What
// somebody else wrote into the row since is not signed again.
func (r *round) orderedPlan(ctx context.Context, c db.Change) (jobspec.Spec, error) {
	row, err := r.tx.JobSpec(ctx, optional.Value(c.PlanJobID))
	if err != nil {
		return jobspec.Spec{}, fmt.Errorf("read plan job: %w", err)
	}
	key, err := r.Keys.Dispatch(ctx, r.tx)
	if err != nil {
		return jobspec.Spec{}, err
	}
	spec, err := order.Ordered(key, order.Signed{Spec: row.Spec, Envelope: row.SignedOrder})
	if err != nil {
		return jobspec.Spec{}, fmt.Errorf("plan job %s: %w", optional.Value(c.PlanJobID), err)
	}
	return spec, nil
}

// originOf is the first change of the line of plans made again and retries that
// a change is of.
func originOf(c db.Change) string {
	if c.OriginID != nil {
		return *c.OriginID
	}
	return c.ID // it was made before changes had an origin
}

// actionRunFor records that an action is being run, for steps that run one.
func (r *round) actionRunFor(ctx context.Context, step db.Step, c db.Change) (*string, error) {
	if flow.StepKind(step.Kind) != flow.StepAction {
		return nil, nil
	}
	return r.insertRun(ctx, step, &c.ID)
}

// runCheck has the runner run a health check once, now. It mutates nothing, so
// it needs no decision.
func (r *round) runCheck(ctx context.Context, step db.Step) error {
	if err := r.settleCheckRun(ctx, step); err != nil {
		return err
	}
	state, err := r.ensureState(ctx, "check "+step.Name)
	if err != nil {
		return err
	}
	app, err := r.app(ctx)
	if err != nil {
		return err
	}
	action, timeout, err := ActionSpec(app, optional.Value(step.Action), r.actionInputs())
	if err != nil {
		return r.endStep(ctx, step, flow.Decision{Do: flow.DoFailStep, Error: err.Error()})
	}
	runID, err := r.insertRun(ctx, step, nil)
	if err != nil {
		return err
	}
	if err := r.tx.CountStepAttempt(ctx, step.ID); err != nil {
		return err
	}
	spec := r.baseSpec(jobspec.KindAction, jobspec.OperationRun, timeout)
	spec.Action, spec.State, spec.StateVersion = action, state.Tree, int(state.Version)
	return r.dispatch(ctx, step, job{spec: spec, actionRunID: runID, releaseID: optional.Value(r.workflow.ReleaseID)})
}

func (r *round) insertRun(ctx context.Context, step db.Step, changeID *string) (*string, error) {
	runID := newID(id.ActionRun)
	trigger := "manual"
	if flow.Kind(r.workflow.Kind) != flow.KindActionRun {
		trigger = r.workflow.Kind
	}
	inputs := r.actionInputs()
	if inputs == nil {
		inputs = map[string]string{}
	}
	err := r.tx.InsertActionRun(ctx, db.InsertActionRunParams{
		ID: runID, InstallID: r.install.ID, Action: optional.Value(step.Action), Trigger: trigger, ChangeID: changeID,
		WorkflowID: &r.workflow.ID, RunnerID: r.runnerID(), Inputs: mustJSON(inputs), CreatedBy: r.workflow.CreatedBy,
	})
	if err != nil {
		return nil, fmt.Errorf("insert action run: %w", err)
	}
	return &runID, nil
}
