package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// runCheck has the runner run a health check once, now. It mutates nothing, so
// it needs no decision.
func (e *Engine) runCheck(ctx context.Context, tx *database.Tx, s subject) error {
	if err := goOn(ctx, tx, s.step); err != nil {
		return err
	}
	if err := settleCheckRun(ctx, tx, s.step); err != nil {
		return err
	}
	state, err := e.stateFor(ctx, tx, s, "check "+s.step.Name)
	if err != nil {
		return err
	}
	app, err := releaseview.App(ctx, tx.Queries, optional.Value(s.workflow.ReleaseID))
	if err != nil {
		return err
	}
	spec, err := actionSpec(s, app, jobspec.OperationRun)
	if err != nil {
		return endStep(ctx, tx, s, flow.Decision{Do: flow.DoFailStep, Error: err.Error()})
	}
	runID, err := insertRun(ctx, tx, s, nil)
	if err != nil {
		return err
	}
	if err := tx.CountStepAttempt(ctx, s.step.ID); err != nil {
		return err
	}
	spec.State, spec.StateVersion = state.Tree, int(state.Version)
	return e.dispatch(ctx, tx, s, job{spec: spec, actionRunID: runID, releaseID: optional.Value(s.workflow.ReleaseID)})
}

// actionRunFor records that an action is being run, for steps that run one.
func actionRunFor(ctx context.Context, tx *database.Tx, s subject) (*string, error) {
	if kind := flow.StepKind(s.step.Kind); kind != flow.StepAction && kind != flow.StepScript {
		return nil, nil
	}
	return insertRun(ctx, tx, s, &s.change.ID)
}

func insertRun(ctx context.Context, tx *database.Tx, s subject, changeID *string) (*string, error) {
	runID := id.New(id.ActionRun)
	trigger := "manual"
	if flow.Kind(s.workflow.Kind) != flow.KindActionRun {
		trigger = s.workflow.Kind
	}
	params, err := paramsOf(s.workflow)
	if err != nil {
		return nil, err
	}
	if params.RoleSwitch != nil {
		trigger = string(params.RoleSwitch.Trigger())
	}
	if params.Inputs == nil {
		params.Inputs = map[string]string{}
	}
	err = tx.InsertActionRun(ctx, ctldb.InsertActionRunParams{
		ID: runID, InstallID: s.install.ID, Action: optional.Value(s.step.Action), Trigger: trigger, ChangeID: changeID,
		WorkflowID: &s.workflow.ID, RunnerID: optional.Of(s.runner.id), Inputs: mustJSON(params.Inputs), CreatedBy: s.workflow.CreatedBy,
	})
	if err != nil {
		return nil, fmt.Errorf("insert action run: %w", err)
	}
	return &runID, nil
}

// settleActionRun records what came of the action that a change ran, if it ran
// one.
func settleActionRun(ctx context.Context, tx *database.Tx, changeID string, res jobspec.Result) error {
	run, err := tx.ActionRunOfChange(ctx, changeID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return settleRun(ctx, tx, run.ID, res)
}

// settleCheckRun records what came of the last run of a check step, if it has
// not been.
func settleCheckRun(ctx context.Context, tx *database.Tx, step ctldb.Step) error {
	jobs, err := tx.JobsOfStep(ctx, &step.ID)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.ActionRunID == "" || j.State == model.JobQueued || j.State == model.JobLeased {
			continue
		}
		res, row, err := readResult(ctx, tx.Queries, j.ID)
		if err != nil {
			return err
		}
		if len(row.Result) == 0 {
			res.Outcome, res.Error = jobspec.OutcomeCancelled, optional.Value(row.Error)
		}
		if err := settleRun(ctx, tx, j.ActionRunID, res.Result); err != nil {
			return err
		}
	}
	// Its outcome counts for the check's verdict.
	return tx.WakeInstall(ctx, step.InstallID)
}

func settleRun(ctx context.Context, tx *database.Tx, runID string, res jobspec.Result) error {
	state := model.RunFailed
	switch res.Outcome {
	case jobspec.OutcomeSucceeded:
		state = model.RunSucceeded
	case jobspec.OutcomeCancelled:
		state = model.RunCancelled
	}
	steps := map[string]any{}
	for _, s := range res.Steps {
		if len(s.Outputs) > 0 {
			steps[s.Name] = s.Outputs
		}
	}
	code := int32(res.ExitCode)
	p := ctldb.SettleActionRunParams{ID: runID, State: state, ExitCode: &code, Error: optional.Of(res.Error), Outputs: mustJSON(steps)}
	if !res.StartedAt.IsZero() {
		p.StartedAt, p.FinishedAt = &res.StartedAt, &res.FinishedAt
	}
	return tx.SettleActionRun(ctx, p)
}
