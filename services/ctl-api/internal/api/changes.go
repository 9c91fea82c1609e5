package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearanceapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/fleetapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/policyapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/rollback"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListChanges answers changes, newest first.
func (s *Server) ListChanges(ctx context.Context, req apigen.ListChangesRequestObject) (apigen.ListChangesResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListChanges200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		installID, err := installFilter(ctx, tx, req.Params.Install)
		if err != nil {
			return err
		}
		resourceID, err := fleetapi.ResourceFilter(ctx, tx, installID, req.Params.Resource)
		if err != nil {
			return err
		}
		rows, err := tx.ListChanges(ctx, ctldb.ListChangesParams{
			InstallID: installID, WorkflowID: req.Params.Workflow, ResourceID: resourceID, State: (*string)(req.Params.State),
			After: optional.Of(optional.Value(req.Params.After)), Most: int32(limit + 1),
		})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ListChangesRow) string { return r.Change.ID })
		if err != nil {
			return err
		}
		out.Items, err = convertAll(rows, func(r ctldb.ListChangesRow) (apigen.ChangeSummary, error) {
			return changeSummary(r.Change, ref(r.Change.InstallID, r.InstallName), apiref.Resource(r.Change.ResourceID, r.ResourceKind, r.ResourceName))
		})
		return err
	})
	return out, err
}

// GetChange answers a change with its effect, plan and decisions.
func (s *Server) GetChange(ctx context.Context, req apigen.GetChangeRequestObject) (apigen.GetChangeResponseObject, error) {
	var out apigen.Change
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		out, err = changeView(ctx, tx, req.Change)
		return err
	})
	return apigen.GetChange200JSONResponse(out), err
}

// GetPlan answers what a change would do.
func (s *Server) GetPlan(ctx context.Context, req apigen.GetPlanRequestObject) (apigen.GetPlanResponseObject, error) {
	var out apigen.GetPlan200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		c, err := tx.GetChange(ctx, req.Change)
		if err != nil {
			return missing(err, "there is no change %q", req.Change)
		}
		if len(c.Plan) == 0 {
			return fault.Newf(fault.ErrNotFound, "change %s has not been planned yet", c.ID)
		}
		view, err := rollback.PlanView(c.Plan)
		out = apigen.GetPlan200JSONResponse(view)
		return err
	})
	return out, err
}

// Decide records an approval or a denial.
func (s *Server) Decide(ctx context.Context, req apigen.DecideRequestObject) (apigen.DecideResponseObject, error) {
	var out apigen.Change
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		then := model.DeniedThen(optional.Value(req.Body.Then))
		if then == model.DeniedThen(apigen.DecisionRequestThenFail) {
			then = ""
		}
		if then != "" && req.Body.Answer != apigen.DecisionAnswerDeny {
			return "", fault.Newf(fault.ErrInvalid, "then says what becomes of the step of a denied change: it goes with the answer deny only")
		}
		err := workflow.Decide(ctx, tx, workflow.Answer{
			ChangeID: req.Change, Answer: model.Answer(req.Body.Answer), Then: then, EffectDigest: req.Body.EffectDigest,
			By: auth.PrincipalOf(ctx), Note: req.Body.Note,
			Also: convert(req.Body.Also, func(a apigen.AlsoDecided) workflow.Seen {
				return workflow.Seen{ChangeID: a.ChangeID, EffectDigest: a.EffectDigest}
			}),
		})
		if err != nil {
			return "", err
		}
		out, err = changeView(ctx, tx, req.Change)
		done := string(req.Body.Answer) + " change " + req.Change + " with effect " + req.Body.EffectDigest
		for _, a := range req.Body.Also {
			done += ", and " + a.ChangeID + " with effect " + a.EffectDigest
		}
		return done, err
	})
	return apigen.Decide201JSONResponse(out), err
}

// approve records the caller's approval of one change.
func approve(ctx context.Context, tx *database.Tx, seen clearanceapi.Seen) error {
	return workflow.Decide(ctx, tx, workflow.Answer{
		ChangeID: seen.ChangeID, Answer: model.Approve, EffectDigest: seen.EffectDigest, By: auth.PrincipalOf(ctx), Note: seen.Note,
	})
}

func changeView(ctx context.Context, tx *database.Tx, id string) (apigen.Change, error) {
	rows, err := tx.ListChanges(ctx, ctldb.ListChangesParams{ID: &id, Most: 1})
	if err != nil || len(rows) == 0 {
		return apigen.Change{}, missing(orNotFound(err), "there is no change %q", id)
	}
	c := rows[0].Change
	out := apigen.Change{
		ID: c.ID, Install: ref(c.InstallID, rows[0].InstallName), WorkflowID: c.WorkflowID, StepID: c.StepID, Resource: apiref.Resource(c.ResourceID, rows[0].ResourceKind, rows[0].ResourceName),
		Kind: apigen.ChangeKind(c.Kind), State: apigen.ChangeState(c.State), Release: apiref.Number(c.ReleaseID, rows[0].ReleaseNumber),
		InputsVersion: int(c.InputsVersion), StateVersion: int(c.StateVersion), EffectDigest: c.EffectDigest, ApprovedEffectDigest: c.ApprovedEffectDigest,
		Replaces: c.Replaces, Fence: c.Fence, Error: c.Error, Remedy: c.Remedy, Wait: waiting(c.WaitReason, c.WaitOn, c.WaitDeadline, nil),
		ExpiresAt: c.WaitDeadline, CreatedAt: c.CreatedAt, ProposedAt: c.ProposedAt, DecidedAt: c.DecidedAt, ExecutedAt: c.ExecutedAt, FinishedAt: c.FinishedAt,
		Differs: []apigen.Difference{},
	}
	if c.ArtifactDigest != nil {
		out.Artifact = &apigen.Artifact{Repository: optional.Value(c.ArtifactRepository), Digest: *c.ArtifactDigest}
	}
	if len(c.Effect) > 0 {
		out.Effect = &c.Effect
	}
	if len(c.Plan) > 0 {
		view, err := rollback.PlanView(c.Plan)
		if err != nil {
			return out, err
		}
		out.Plan = &view
	}
	if err := json.Unmarshal(c.Differs, &out.Differs); err != nil {
		return out, err
	}
	decisions, err := tx.DecisionsOfChange(ctx, c.ID)
	if err != nil {
		return out, err
	}
	out.Decisions = convert(decisions, func(d ctldb.Decision) apigen.Decision {
		return apigen.Decision{
			ID: d.ID, Answer: apigen.DecisionAnswer(d.Answer), EffectDigest: d.EffectDigest, Actor: d.Actor,
			Rule: apigen.DecisionRule(d.Rule), Note: d.Note, CreatedAt: d.CreatedAt,
		}
	})
	if c.State == model.ChangeProposed || c.State == model.ChangeApproved {
		now, err := clearance.ReadOf(ctx, tx, c, time.Now())
		if err != nil {
			return out, err
		}
		out.Approvals = clearanceapi.ApprovalsView(now.Case(c.ID))
	}
	if err := policyapi.Of(ctx, tx, c, &out); err != nil {
		return out, err
	}
	jobs, err := tx.JobsOfChange(ctx, &c.ID)
	out.Jobs = convert(jobs, func(j ctldb.JobsOfChangeRow) apigen.Job {
		return jobView(ctldb.JobsOfStepRow(j))
	})
	return out, err
}

func changeSummary(c ctldb.Change, install apigen.Ref, resource *apigen.ResourceRef) (apigen.ChangeSummary, error) {
	out := apigen.ChangeSummary{
		ID: c.ID, Install: install, WorkflowID: c.WorkflowID, StepID: c.StepID, Resource: resource, Kind: apigen.ChangeKind(c.Kind),
		State: apigen.ChangeState(c.State), EffectDigest: c.EffectDigest, Wait: waiting(c.WaitReason, c.WaitOn, c.WaitDeadline, nil),
		ExpiresAt: c.WaitDeadline, Error: c.Error, CreatedAt: c.CreatedAt, ProposedAt: c.ProposedAt, DecidedAt: c.DecidedAt,
	}
	if len(c.Plan) > 0 {
		var plan jobspec.PlanSummary
		if err := decode("plan of change "+c.ID, c.Plan, &plan); err != nil {
			return out, err
		}
		n := plan.Counts()
		out.RollbackClass = rollback.ClassOf(plan)
		out.Counts = &apigen.PlanCounts{
			NoChange: n.NoChange, Create: n.Create, Update: n.Update, Replace: n.Replace, Delete: n.Delete, Run: n.Run, Outputs: n.Outputs, Other: n.Other,
		}
	}
	return out, nil
}

// installFilter turns the query's install, an id or a name, into an id.
func installFilter(ctx context.Context, tx *database.Tx, install *string) (*string, error) {
	if optional.Value(install) == "" {
		return nil, nil
	}
	row, err := installs.Find(ctx, tx, *install)
	if err != nil {
		return nil, err
	}
	return &row.ID, nil
}

// orNotFound is ErrNotFound for a look-up that found no row without an error.
func orNotFound(err error) error {
	if err == nil {
		return fault.ErrNotFound
	}
	return err
}
