package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/order"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// planned is what runner-api stores of PUT /jobs/{job}/plan, under "plan" in
// the job's result.
type plannedResult struct {
	Effect          capsule.Effect      `json:"effect"`
	EffectDigest    string              `json:"effect_digest"`
	Pinned          string              `json:"pinned"`
	PlanBytesDigest string              `json:"plan_bytes_digest"`
	Summary         jobspec.PlanSummary `json:"summary"`
}

// jobResult is the result column of a job: the runner's Result, and the plan
// beside it.
type jobResult struct {
	jobspec.Result
	Plan *plannedResult `json:"plan,omitempty"`
}

// planChange makes a change for the step and has it planned. A change that the
// step had before is replaced: what was approved of it counts for the new one
// as long as the effect is the same.
func (r *round) planChange(ctx context.Context, step db.Step) error {
	state, err := r.ensureState(ctx, "plan of "+step.Name)
	if err != nil {
		return err
	}
	changeID := newID(id.Change)
	origin := changeID
	insert := db.InsertChangeParams{
		ID: changeID, InstallID: r.install.ID, WorkflowID: r.workflow.ID, StepID: step.ID, ResourceID: step.ResourceID,
		InputsVersion: r.workflow.InputsVersion, StateVersion: state.Version, ReleaseID: r.workflow.ReleaseID,
	}
	if old, ok := r.changes[step.ID]; ok {
		insert.Replaces, insert.ApprovedEffectDigest = &old.ID, old.ApprovedEffectDigest
		origin = originOf(old)
	}
	insert.OriginID = &origin
	spec, err := r.planSpec(ctx, step, &insert)
	if err == nil {
		spec.Continues, err = r.continues(ctx, step)
	}
	if err != nil {
		return r.endStep(ctx, step, flow.Decision{Do: flow.DoFailStep, Error: err.Error(), Remedy: "sync a config that this version can deploy, then start a new workflow"})
	}
	spec.ChangeID = changeID
	if spec.Kind != jobspec.KindRelease { // it has no templates to render
		spec.State, spec.StateVersion = state.Tree, int(state.Version)
	}
	insert.PlanJobID = &spec.JobID
	if err := r.tx.InsertChange(ctx, insert); err != nil {
		return fmt.Errorf("insert change: %w", err)
	}
	if err := r.tx.SetStepChange(ctx, db.SetStepChangeParams{ID: step.ID, ChangeID: &changeID}); err != nil {
		return err
	}
	body := map[string]any{"change_id": changeID, "step": step.Name, "state": flow.ChangePreparing, "replaces": optional.Value(insert.Replaces)}
	if err := r.event(ctx, "change", body); err != nil {
		return err
	}
	return r.dispatch(ctx, step, job{spec: spec, origin: origin, releaseID: optional.Value(insert.ReleaseID)})
}

// planSpec says what is planned, and completes the change's row.
func (r *round) planSpec(ctx context.Context, step db.Step, insert *db.InsertChangeParams) (jobspec.Spec, error) {
	switch flow.StepKind(step.Kind) {
	case flow.StepAccept, flow.StepForget:
		return r.planAcceptance(ctx, step, insert)
	case flow.StepAction:
		app, err := r.app(ctx)
		if err != nil {
			return jobspec.Spec{}, err
		}
		action, timeout, err := ActionSpec(app, optional.Value(step.Action), r.actionInputs())
		if err != nil {
			return jobspec.Spec{}, err
		}
		insert.Kind = "script"
		spec := r.baseSpec(jobspec.KindAction, jobspec.OperationPlan, timeout)
		spec.Action = action
		return spec, nil
	}
	sub, err := r.subjectOf(ctx, step)
	if err != nil {
		return jobspec.Spec{}, err
	}
	app, err := AppOfRelease(ctx, r.tx.Queries, sub.releaseID)
	if err != nil {
		return jobspec.Spec{}, err
	}
	insert.Kind = "deploy"
	spec := r.baseSpec("", jobspec.OperationPlan, 0)
	timeout, err := sub.fill(&spec, app)
	if err != nil {
		return jobspec.Spec{}, err
	}
	spec.TimeoutSeconds = int(timeout / time.Second)
	if flow.StepKind(step.Kind) == flow.StepTeardown {
		insert.Kind, spec.Destroy = "teardown", true
	}
	insert.ReleaseID, insert.RevisionID = &sub.releaseID, &sub.revisionID
	insert.ArtifactRepository, insert.ArtifactDigest = &sub.repository, &sub.digest
	spec.Resource = &jobspec.Resource{ID: sub.resource.ID, Kind: sub.resource.Kind, Name: sub.resource.Name}
	spec.Artifact = &jobspec.Artifact{Repository: sub.repository, Digest: sub.digest}
	return spec, nil
}

// continues names the change of uncertain outcome that a new plan for the step
// follows: the one before, or the one that a plan before followed and did not
// come to apply.
func (r *round) continues(ctx context.Context, step db.Step) (string, error) {
	old, ok := r.changes[step.ID]
	switch {
	case !ok:
		return "", nil
	case old.State == flow.ChangeUncertain:
		return old.ID, nil
	case old.ApplyJobID != nil:
		return "", nil
	}
	spec, err := r.orderedPlan(ctx, old)
	if errors.Is(err, order.ErrNotOrdered) {
		return "", nil // it says nothing that could be believed
	}
	return spec.Continues, err
}

// readPlan returns what the plan job of a change found.
func (r *round) readPlan(ctx context.Context, c db.Change) (jobResult, error) {
	job, err := r.tx.JobResult(ctx, optional.Value(c.PlanJobID))
	if err != nil {
		return jobResult{}, fmt.Errorf("read plan job: %w", err)
	}
	var res jobResult
	if err := json.Unmarshal(job.Result, &res); err != nil {
		return jobResult{}, fmt.Errorf("read result of plan job %s: %w", job.ID, err)
	}
	if res.Plan == nil {
		return jobResult{}, fmt.Errorf("plan job %s ended without a plan", job.ID)
	}
	return res, nil
}

// propose takes the plan over into the change and asks for a decision. An older
// proposal for the same resource gives way.
func (r *round) propose(ctx context.Context, step db.Step) error {
	c := r.changes[step.ID]
	res, err := r.readPlan(ctx, c)
	if err != nil {
		return err
	}
	differs, err := r.voided(ctx, c, res.Plan)
	if err != nil {
		return err
	}
	deadline := r.now().Add(flow.ApprovalTime)
	err = r.tx.ProposeChange(ctx, db.ProposeChangeParams{
		ID: c.ID, Effect: mustJSON(res.Plan.Effect), EffectDigest: &res.Plan.EffectDigest,
		PlanBytesDigest: optional.Of(res.Plan.PlanBytesDigest), Pinned: optional.Of(res.Plan.Pinned), Plan: mustJSON(res.Plan.Summary),
		Differs: mustJSON(differs), Deadline: &deadline,
	})
	if err != nil {
		return fmt.Errorf("propose change: %w", err)
	}
	if err := r.supersedeAcceptances(ctx, c); err != nil {
		return err
	}
	if c.ResourceID != nil {
		older, err := r.tx.SupersedeProposals(ctx, db.SupersedeProposalsParams{ID: c.ID, ResourceID: c.ResourceID, Error: "superseded by " + c.ID})
		if err != nil {
			return err
		}
		for _, o := range older {
			if err := r.tx.WakeWorkflow(ctx, o.WorkflowID); err != nil {
				return err
			}
		}
	}
	return r.event(ctx, "change", map[string]any{
		"change_id": c.ID, "step": step.Name, "state": flow.ChangeProposed, "effect_digest": res.Plan.EffectDigest, "differs": nilIfEmpty(differs),
	})
}

// voided names the fields because of which what was approved of the replaced
// change does not cover this plan; empty when nothing was approved, or the
// effect is the same.
func (r *round) voided(ctx context.Context, c db.Change, plan *plannedResult) ([]jobspec.Difference, error) {
	differs := []jobspec.Difference{}
	approved := optional.Value(c.ApprovedEffectDigest)
	if approved == "" || approved == plan.EffectDigest {
		return differs, nil
	}
	for replaced := c.Replaces; replaced != nil; {
		old, err := r.tx.GetChange(ctx, *replaced)
		if err != nil {
			if errors.Is(err, fault.ErrNotFound) {
				break
			}
			return nil, err
		}
		if optional.Value(old.EffectDigest) == approved {
			var was capsule.Effect
			if err := json.Unmarshal(old.Effect, &was); err != nil {
				return nil, fmt.Errorf("read effect of %s: %w", old.ID, err)
			}
			for _, d := range capsule.Diff(was, plan.Effect) {
				differs = append(differs, jobspec.Difference{Field: d.Field, Want: d.A, Got: d.B})
			}
			break
		}
		replaced = old.Replaces
	}
	return differs, nil
}

// noChange ends a change whose plan is empty. The resource stands on the
// release all the same.
func (r *round) noChange(ctx context.Context, step db.Step) error {
	c := r.changes[step.ID]
	res, err := r.readPlan(ctx, c)
	if err != nil {
		return err
	}
	err = r.tx.EndPlannedChange(ctx, db.EndPlannedChangeParams{
		ID: c.ID, State: flow.ChangeNoChange, Effect: mustJSON(res.Plan.Effect), EffectDigest: &res.Plan.EffectDigest, Plan: mustJSON(res.Plan.Summary),
	})
	if err != nil {
		return fmt.Errorf("end change: %w", err)
	}
	if err := r.decision(ctx, c.ID, "approve", res.Plan.EffectDigest, "berth", "no_change", "the plan is empty"); err != nil {
		return err
	}
	if c.ResourceID != nil && !r.workflow.PlanOnly {
		if err := r.landed(ctx, c, res.Plan.EffectDigest, res.Outputs); err != nil {
			return err
		}
	}
	return r.event(ctx, "change", map[string]any{"change_id": c.ID, "step": step.Name, "state": flow.ChangeNoChange})
}

// planned ends a change that was only to be shown.
func (r *round) planned(ctx context.Context, step db.Step) error {
	c := r.changes[step.ID]
	res, err := r.readPlan(ctx, c)
	if err != nil {
		return err
	}
	err = r.tx.EndPlannedChange(ctx, db.EndPlannedChangeParams{
		ID: c.ID, State: flow.ChangeSuperseded, Effect: mustJSON(res.Plan.Effect), EffectDigest: &res.Plan.EffectDigest,
		Plan: mustJSON(res.Plan.Summary), Error: optional.Of("plan only"),
	})
	if err != nil {
		return fmt.Errorf("end change: %w", err)
	}
	return r.event(ctx, "change", map[string]any{"change_id": c.ID, "step": step.Name, "state": flow.ChangeSuperseded, "plan_only": true})
}

// approve answers a proposal by a rule, without asking.
func (r *round) approve(ctx context.Context, c db.Change, rule string) error {
	if err := r.tx.ApproveChange(ctx, c.ID); err != nil {
		return fmt.Errorf("approve change: %w", err)
	}
	if err := r.decision(ctx, c.ID, "approve", optional.Value(c.EffectDigest), r.workflow.CreatedBy, rule, ""); err != nil {
		return err
	}
	return r.event(ctx, "change", map[string]any{"change_id": c.ID, "state": flow.ChangeApproved, "rule": rule})
}

func (r *round) decision(ctx context.Context, changeID, answer, digest, actor, rule, note string) error {
	return r.tx.InsertDecision(ctx, db.InsertDecisionParams{
		ID: newID(id.Decision), ChangeID: changeID, Answer: answer, EffectDigest: digest, Actor: actor, Rule: rule, Note: note,
	})
}

func (r *round) actionInputs() map[string]string {
	var params requestParams
	if err := json.Unmarshal(r.workflow.Params, &params); err != nil {
		return nil
	}
	return params.Inputs
}

func nilIfEmpty(d []jobspec.Difference) any {
	if len(d) == 0 {
		return nil
	}
	return d
}
