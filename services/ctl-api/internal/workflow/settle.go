package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// settleChange takes over what came of a change's jobs: the change ends, the
// resource is freed, and those who waited for it are woken.
func (r *round) settleChange(ctx context.Context, step db.Step, d flow.Decision) error {
	c := r.changes[step.ID]
	if d.ChangeState == flow.ChangeDenied {
		if err := r.tx.DenyChange(ctx, db.DenyChangeParams{ID: c.ID, Error: optional.Of(d.Error)}); err != nil {
			return err
		}
		return r.event(ctx, "change", map[string]any{"change_id": c.ID, "step": step.Name, "state": flow.ChangeDenied, "error": d.Error})
	}
	res, err := r.endedResult(ctx, c)
	if err != nil {
		return err
	}
	differs := json.RawMessage(nil)
	if len(res.Differs) > 0 {
		differs = mustJSON(res.Differs)
	}
	err = r.tx.SettleChange(ctx, db.SettleChangeParams{
		ID: c.ID, State: d.ChangeState, Result: mustJSON(res.Result), Error: optional.Of(d.Error), Remedy: optional.Of(d.Remedy), Differs: differs,
	})
	if err != nil {
		return fmt.Errorf("settle change: %w", err)
	}
	if c.State == flow.ChangeExecuting {
		if err := r.settleResource(ctx, c, d.ChangeState, res.Result); err != nil {
			return err
		}
		if err := r.settleActionRun(ctx, c, res.Result); err != nil {
			return err
		}
	}
	return r.event(ctx, "change", map[string]any{
		"change_id": c.ID, "step": step.Name, "state": d.ChangeState, "error": d.Error, "differs": nilIfEmpty(res.Differs),
	})
}

// endedResult is what the last job of a change reported; empty when it was
// cancelled before any runner took it.
func (r *round) endedResult(ctx context.Context, c db.Change) (jobResult, error) {
	jobID := optional.Value(c.PlanJobID)
	if c.State == flow.ChangeExecuting {
		jobID = optional.Value(c.ApplyJobID)
	}
	job, err := r.tx.JobResult(ctx, jobID)
	if err != nil {
		return jobResult{}, fmt.Errorf("read job %s: %w", jobID, err)
	}
	var res jobResult
	if len(job.Result) > 0 {
		if err := json.Unmarshal(job.Result, &res); err != nil {
			return jobResult{}, fmt.Errorf("read result of job %s: %w", jobID, err)
		}
	}
	return res, nil
}

// settleResource frees the resource that an executing change held and says what
// it is now.
func (r *round) settleResource(ctx context.Context, c db.Change, state string, res jobspec.Result) error {
	if c.ResourceID == nil {
		return nil
	}
	before := r.resource(*c.ResourceID)
	if err := r.tx.SettleResource(ctx, db.SettleResourceParams{ID: *c.ResourceID, ChangeID: c.ID, State: resourceAfter(state, before)}); err != nil {
		return fmt.Errorf("free resource: %w", err)
	}
	if state == flow.ChangeApplied {
		outputs := res.Outputs
		if outputs == nil {
			outputs = jobspec.Outputs{}
		}
		if err := r.landed(ctx, c, optional.Value(c.EffectDigest), outputs); err != nil {
			return err
		}
	}
	return r.wakeOthers(ctx)
}

// wakeOthers has the install's other open workflows look again: all of them,
// because one that is about to wait for the lock has not committed that yet.
func (r *round) wakeOthers(ctx context.Context) error {
	open, err := r.tx.OpenWorkflowsOfInstall(ctx, r.install.ID)
	if err != nil {
		return err
	}
	for _, id := range open {
		if id == r.workflow.ID {
			continue
		}
		if err := r.tx.WakeWorkflow(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// resourceAfter is what a resource is once its change has ended so. An outcome
// that is not known leaves it unknown until a plan has looked.
func resourceAfter(change string, before db.Resource) string {
	switch change {
	case flow.ChangeApplied:
		return "live"
	case flow.ChangeUncertain:
		return "unknown"
	case flow.ChangeFailed:
		return "failed"
	}
	if before.LiveReleaseID != nil {
		return "live"
	}
	return "absent"
}

// landed writes what the resource stands on now. outputs nil keeps those it has.
func (r *round) landed(ctx context.Context, c db.Change, effectDigest string, outputs jobspec.Outputs) error {
	if c.Kind == "teardown" {
		if err := r.tx.MakeResourceAbsent(ctx, db.MakeResourceAbsentParams{ID: *c.ResourceID, ChangeID: c.ID}); err != nil {
			return fmt.Errorf("make resource absent: %w", err)
		}
		return nil
	}
	p := db.MakeResourceLiveParams{
		ID: *c.ResourceID, Type: r.resource(*c.ResourceID).Type, ReleaseID: c.ReleaseID, RevisionID: c.RevisionID, ArtifactDigest: c.ArtifactDigest,
		InputsVersion: c.InputsVersion, EffectDigest: optional.Of(effectDigest), ChangeID: c.ID,
	}
	if outputs != nil {
		p.Outputs = mustJSON(outputs)
	}
	if err := r.tx.MakeResourceLive(ctx, p); err != nil {
		return fmt.Errorf("make resource live: %w", err)
	}
	return nil
}

// settleActionRun records what came of the action that a change ran.
func (r *round) settleActionRun(ctx context.Context, c db.Change, res jobspec.Result) error {
	run, err := r.tx.ActionRunOfChange(ctx, c.ID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.settleRun(ctx, run.ID, res)
}

// settleCheckRun records what came of the last run of a check step, if it has
// not been.
func (r *round) settleCheckRun(ctx context.Context, step db.Step) error {
	jobs, err := r.tx.JobsOfStep(ctx, &step.ID)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.ActionRunID == "" || j.State == flow.JobQueued || j.State == flow.JobLeased {
			continue
		}
		row, err := r.tx.JobResult(ctx, j.ID)
		if err != nil {
			return err
		}
		var res jobResult
		if len(row.Result) > 0 {
			if err := json.Unmarshal(row.Result, &res); err != nil {
				return fmt.Errorf("read result of job %s: %w", j.ID, err)
			}
		} else {
			res.Outcome, res.Error = jobspec.OutcomeCancelled, optional.Value(row.Error)
		}
		if err := r.settleRun(ctx, j.ActionRunID, res.Result); err != nil {
			return err
		}
	}
	// Its outcome counts for the check's verdict.
	return r.tx.WakeInstall(ctx, r.install.ID)
}

func (r *round) settleRun(ctx context.Context, runID string, res jobspec.Result) error {
	state := "failed"
	switch res.Outcome {
	case jobspec.OutcomeSucceeded:
		state = "succeeded"
	case jobspec.OutcomeCancelled:
		state = "cancelled"
	}
	steps := map[string]any{}
	for _, s := range res.Steps {
		if len(s.Outputs) > 0 {
			steps[s.Name] = s.Outputs
		}
	}
	code := int32(res.ExitCode)
	p := db.SettleActionRunParams{ID: runID, State: state, ExitCode: &code, Error: optional.Of(res.Error), Outputs: mustJSON(steps)}
	if !res.StartedAt.IsZero() {
		p.StartedAt, p.FinishedAt = &res.StartedAt, &res.FinishedAt
	}
	return r.tx.SettleActionRun(ctx, p)
}
