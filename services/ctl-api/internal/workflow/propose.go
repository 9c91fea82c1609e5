package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/policies"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// readResult reads what came of a job; empty when it was cancelled before any
// runner took it.
func readResult(ctx context.Context, q *ctldb.Queries, jobID string) (model.JobResult, ctldb.JobResultRow, error) {
	var res model.JobResult
	row, err := q.JobResult(ctx, jobID)
	if err != nil {
		return res, row, fmt.Errorf("read job %s: %w", jobID, err)
	}
	if len(row.Result) > 0 {
		if err := json.Unmarshal(row.Result, &res); err != nil {
			return res, row, fmt.Errorf("read result of job %s: %w", jobID, err)
		}
	}
	return res, row, nil
}

// readPlan returns what the plan job of a change found. The result has a plan.
func readPlan(ctx context.Context, q *ctldb.Queries, c ctldb.Change) (model.JobResult, error) {
	res, row, err := readResult(ctx, q, optional.Value(c.PlanJobID))
	if err != nil {
		return model.JobResult{}, err
	}
	if res.Plan == nil {
		return model.JobResult{}, fmt.Errorf("plan job %s ended without a plan", row.ID)
	}
	return res, nil
}

// propose takes the plan over into the change and asks for a decision. What an
// older request proposes for the same resource gives way; when a newer request is
// further, this one does.
func propose(ctx context.Context, tx *database.Tx, s subject) error {
	if lost, err := contest(ctx, tx, s, false); lost || err != nil {
		return err
	}
	res, err := readPlan(ctx, tx.Queries, *s.change)
	if err != nil {
		return err
	}
	if err := policies.Keep(ctx, tx, *s.change, res.Plan); err != nil {
		return err
	}
	differs, err := voided(ctx, tx.Queries, *s.change, res.Plan)
	if err != nil {
		return err
	}
	hours := int(s.install.ApprovalHours)
	if !s.free {
		if _, hours, err = clearance.PolicyOf(ctx, tx, s.install); err != nil {
			return err
		}
	}
	deadline := flow.ApprovalDeadline(s.now, hours)
	err = tx.ProposeChange(ctx, ctldb.ProposeChangeParams{
		ID: s.change.ID, Effect: mustJSON(res.Plan.Effect), EffectDigest: &res.Plan.EffectDigest,
		PlanBytesDigest: optional.Of(res.Plan.PlanBytesDigest), Pinned: optional.Of(res.Plan.Pinned), Plan: mustJSON(res.Plan.Summary),
		Differs: mustJSON(differs), Deadline: &deadline,
	})
	if err != nil {
		return fmt.Errorf("propose change: %w", err)
	}
	return tell(ctx, tx, s.event(events.Change, events.Body{
		"change_id": s.change.ID, "step": s.step.Name, "state": model.ChangeProposed, "effect_digest": res.Plan.EffectDigest, "differs": nilIfEmpty(differs),
	}))
}

// voided names the fields because of which what was approved of the replaced
// change does not cover this plan; empty when nothing was approved, or the
// effect is the same.
func voided(ctx context.Context, q *ctldb.Queries, c ctldb.Change, plan *model.Plan) ([]jobspec.Difference, error) {
	differs := []jobspec.Difference{}
	approved := optional.Value(c.ApprovedEffectDigest)
	if approved == "" || approved == plan.EffectDigest {
		return differs, nil
	}
	for replaced := c.Replaces; replaced != nil; {
		old, err := q.GetChange(ctx, *replaced)
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
func noChange(ctx context.Context, tx *database.Tx, s subject) error {
	if lost, err := contest(ctx, tx, s, true); lost || err != nil {
		return err
	}
	res, err := readPlan(ctx, tx.Queries, *s.change)
	if err != nil {
		return err
	}
	if err := policies.Keep(ctx, tx, *s.change, res.Plan); err != nil {
		return err
	}
	err = tx.EndPlannedChange(ctx, ctldb.EndPlannedChangeParams{
		ID: s.change.ID, State: model.ChangeNoChange, Effect: mustJSON(res.Plan.Effect), EffectDigest: &res.Plan.EffectDigest, Plan: mustJSON(res.Plan.Summary),
	})
	if err != nil {
		return fmt.Errorf("end change: %w", err)
	}
	err = tx.InsertDecision(ctx, ctldb.InsertDecisionParams{
		ID: id.New(id.Decision), ChangeID: s.change.ID, Answer: model.Approve, EffectDigest: res.Plan.EffectDigest, Actor: "berth", Rule: model.RuleNoChange, Note: "the plan is empty",
	})
	if err != nil {
		return err
	}
	if s.change.ResourceID != nil && !s.workflow.PlanOnly {
		if err := landed(ctx, tx, s, standing{effectDigest: res.Plan.EffectDigest, outputs: res.Outputs}); err != nil {
			return err
		}
	}
	return tell(ctx, tx, s.event(events.Change, events.Body{"change_id": s.change.ID, "step": s.step.Name, "state": model.ChangeNoChange}))
}

// showPlan ends a change that was only to be shown.
func showPlan(ctx context.Context, tx *database.Tx, s subject) error {
	res, err := readPlan(ctx, tx.Queries, *s.change)
	if err != nil {
		return err
	}
	if err := policies.Keep(ctx, tx, *s.change, res.Plan); err != nil {
		return err
	}
	err = tx.EndPlannedChange(ctx, ctldb.EndPlannedChangeParams{
		ID: s.change.ID, State: model.ChangePlanned, Effect: mustJSON(res.Plan.Effect), EffectDigest: &res.Plan.EffectDigest, Plan: mustJSON(res.Plan.Summary),
	})
	if err != nil {
		return fmt.Errorf("end change: %w", err)
	}
	return tell(ctx, tx, s.event(events.Change, events.Body{"change_id": s.change.ID, "step": s.step.Name, "state": model.ChangePlanned, "plan_only": true}))
}

// denyPlan ends a change whose plan policies of the vendor deny. People see the plan, and
// what the policies say of it.
func denyPlan(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	res, err := readPlan(ctx, tx.Queries, *s.change)
	if err != nil {
		return err
	}
	if err := policies.Keep(ctx, tx, *s.change, res.Plan); err != nil {
		return err
	}
	err = tx.EndPlannedChange(ctx, ctldb.EndPlannedChangeParams{
		ID: s.change.ID, State: model.ChangeDenied, Effect: mustJSON(res.Plan.Effect), EffectDigest: &res.Plan.EffectDigest, Plan: mustJSON(res.Plan.Summary),
		Error: optional.Of(d.Error), Remedy: optional.Of(d.Remedy), DeniedBy: optional.Of(d.EndedBy),
	})
	if err != nil {
		return fmt.Errorf("end change: %w", err)
	}
	return tell(ctx, tx, s.event(events.Change, events.Body{"change_id": s.change.ID, "step": s.step.Name, "state": model.ChangeDenied, "error": d.Error, "actor": d.EndedBy}))
}

// approveByRule answers a proposal without asking.
func approveByRule(ctx context.Context, tx *database.Tx, s subject, rule model.Rule) error {
	if err := tx.ApproveChange(ctx, s.change.ID); err != nil {
		return fmt.Errorf("approve change: %w", err)
	}
	err := tx.InsertDecision(ctx, ctldb.InsertDecisionParams{
		ID: id.New(id.Decision), ChangeID: s.change.ID, Answer: model.Approve, EffectDigest: optional.Value(s.change.EffectDigest),
		Actor: s.workflow.CreatedBy, Rule: rule,
	})
	if err != nil {
		return err
	}
	return tell(ctx, tx, s.event(events.Change, events.Body{"change_id": s.change.ID, "state": model.ChangeApproved, "rule": rule}))
}

func nilIfEmpty(d []jobspec.Difference) any {
	if len(d) == 0 {
		return nil
	}
	return d
}
