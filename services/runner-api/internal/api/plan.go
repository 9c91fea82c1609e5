package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// PutPlan records what a plan would do.
func (a *API) PutPlan(ctx context.Context, req apigen.PutPlanRequestObject) (apigen.PutPlanResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		at, err := attemptOf(ctx, tx, s, session.Attempt{JobID: req.Job, Attempt: req.Body.Attempt})
		if err != nil {
			return err
		}
		if err := putPlan(ctx, tx, at, planOf(*req.Body)); err != nil || req.Body.Consent == nil {
			return err
		}
		return putPlansConsent(ctx, tx, at, *req.Body)
	})
	if err != nil {
		return nil, fmt.Errorf("put plan: %w", err)
	}
	return apigen.PutPlan204Response{}, nil
}

func planOf(p apigen.Plan) model.Plan {
	return model.Plan{
		Attempt: p.Attempt, Effect: p.Effect, EffectDigest: p.EffectDigest, Pinned: p.Pinned, PlanBytesDigest: p.PlanBytesDigest,
		Summary: p.Summary, Judgement: p.Judgement,
	}
}

// unjudged is why a plan is denied that has policies and was held against none.
const unjudged = "denied, for its runner holds no plan against the app's policies: update the runner (berth runners update), then retry the step"

// putPlansConsent records whether the customer has to agree to a plan, or has agreed to its
// effect before. Nobody waits for it yet: the job's result wakes the workflow.
func putPlansConsent(ctx context.Context, tx *database.Tx, at attempt, p apigen.Plan) error {
	if at.ChangeID == nil || p.Consent.ChangeID != *at.ChangeID || p.Consent.EffectDigest != p.EffectDigest {
		return fault.With(fault.Newf(fault.ErrInvalid, "the consent is not about this plan"), fault.Fields(fault.FieldError{
			Pointer: "/consent", Detail: "must name the job's change and the plan's effect digest"}))
	}
	_, err := putConsent(ctx, tx, at.session.InstallID, *p.Consent)
	return err
}

func putPlan(ctx context.Context, tx *database.Tx, at attempt, plan model.Plan) error {
	body, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	before, err := at.stored()
	if err != nil {
		return err
	}
	if before.Plan != nil && before.Plan.Attempt == plan.Attempt {
		known, err := json.Marshal(before.Plan)
		if err != nil {
			return err
		}
		if string(known) == string(body) {
			return nil // a lost reply
		}
		return fault.With(fault.Newf(fault.ErrConflict, "this attempt has already handed in a different plan"), fault.Code("plan_differs"))
	}
	if !at.open() {
		return errSuperseded("attempt %d of the job is over", plan.Attempt)
	}
	if err := checkPlan(at, plan); err != nil {
		return err
	}
	p := runnerdb.RunnerSetPlanParams{ID: at.ID, Plan: body}
	text, to := unjudged, &p.Unjudged
	if plan.Judgement != nil {
		text, to = plan.Judgement.Denies(), &p.Denied
	}
	if text != "" {
		if *to, err = json.Marshal(model.Denial{Text: text, EffectDigest: plan.EffectDigest}); err != nil {
			return err
		}
	}
	return tx.RunnerSetPlan(ctx, p)
}

// checkPlan holds the effect against the job: people must not approve an
// effect on something else than they look at.
func checkPlan(at attempt, plan model.Plan) error {
	if at.Operation != string(jobspec.OperationPlan) {
		return fault.Newf(fault.ErrInvalid, "a job with operation %s has no plan", at.Operation)
	}
	var wrong []fault.FieldError
	check := func(pointer, got, want string) {
		if got != want {
			wrong = append(wrong, fault.FieldError{Pointer: pointer, Detail: fmt.Sprintf("is %q, want %q", got, want)})
		}
	}
	resource := ""
	if at.ResourceID != nil {
		resource = *at.ResourceID
	}
	check("/effect/org_id", plan.Effect.OrgID, at.session.OrgID)
	check("/effect/install_id", plan.Effect.InstallID, at.session.InstallID)
	check("/effect/resource_id", plan.Effect.ResourceID, resource)
	check("/effect_digest", plan.EffectDigest, plan.Effect.Digest())
	if wrong != nil {
		return fault.With(fault.Newf(fault.ErrInvalid, "the effect is not about this job"), fault.Fields(wrong...))
	}
	return nil
}
