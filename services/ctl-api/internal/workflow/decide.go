package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/approval"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Answer is a person's decision on a change.
type Answer struct {
	ChangeID string
	Answer   model.Answer
	// Then is what becomes of the steps of denied changes.
	Then model.DeniedThen
	// EffectDigest is what the person saw; another one than the proposed is
	// refused.
	EffectDigest string
	By           auth.Principal
	Note         string
	// Also are other changes of the same workflow that the answer is for.
	Also []Seen
}

// Seen is a change with the digest of what a person saw of it.
type Seen struct{ ChangeID, EffectDigest string }

// Decide records a decision and wakes the workflow. When the answer is for
// several changes, all of them are decided, or none.
//
// Errors: ErrConflict with code not_proposed when a change waits for no
// decision, effect_changed when the digest is not the proposed one, not_skippable when
// a step cannot be skipped; ErrInvalid when the changes are not of one workflow.
func Decide(ctx context.Context, tx *database.Tx, a Answer) error {
	c, err := tx.GetChange(ctx, a.ChangeID)
	if err != nil {
		return fmt.Errorf("read change: %w", err)
	}
	// The workflow's row is what the engine holds while it moves the changes.
	if _, err := tx.LockWorkflow(ctx, c.WorkflowID); err != nil {
		return fmt.Errorf("lock workflow: %w", err)
	}
	if err := decideOne(ctx, tx, a, c.WorkflowID); err != nil {
		return err
	}
	for _, seen := range a.Also {
		other := a
		other.ChangeID, other.EffectDigest = seen.ChangeID, seen.EffectDigest
		if err := decideOne(ctx, tx, other, c.WorkflowID); err != nil {
			return err
		}
	}
	return tx.WakeWorkflow(ctx, c.WorkflowID)
}

// decideOne answers one change of a workflow whose row is locked.
func decideOne(ctx context.Context, tx *database.Tx, a Answer, workflowID string) error {
	c, err := tx.LockChange(ctx, a.ChangeID)
	if err != nil {
		return fmt.Errorf("lock change: %w", err)
	}
	if c.WorkflowID != workflowID {
		return fault.Newf(fault.ErrInvalid, "change %s belongs to another workflow: decide on it separately", c.ID)
	}
	if c.State == model.ChangeSuperseded && c.Error != nil {
		return fault.With(fault.Newf(fault.ErrConflict, "%s", supersededText(c)), fault.Code("not_proposed"))
	}
	if c.State != model.ChangeProposed {
		return fault.With(fault.Newf(fault.ErrConflict, "change %s is %s and is not waiting for a decision", c.ID, c.State), fault.Code("not_proposed"))
	}
	if a.EffectDigest != optional.Value(c.EffectDigest) {
		return fault.With(
			fault.Newf(fault.ErrConflict, "change %s proposes the effect %s, not %s", c.ID, optional.Value(c.EffectDigest), a.EffectDigest),
			fault.Code("effect_changed"), fault.Remedy("review the change again, then decide"))
	}
	if a.Answer == model.Approve {
		if err := mayVote(ctx, tx, a, c); err != nil {
			return err
		}
	}
	err = tx.InsertDecision(ctx, ctldb.InsertDecisionParams{
		ID: id.New(id.Decision), ChangeID: c.ID, Answer: a.Answer, EffectDigest: a.EffectDigest, Actor: a.By.AccountName, Rule: model.RulePerson, Note: a.Note,
		AccountID: optional.Of(a.By.AccountID), TokenID: optional.Of(a.By.TokenID),
	})
	if err != nil {
		return fmt.Errorf("record decision: %w", err)
	}
	state, err := answer(ctx, tx, a, c)
	if err != nil {
		return fmt.Errorf("%s change: %w", a.Answer, err)
	}
	body := events.Body{"change_id": c.ID, "state": state, "actor": a.By.AccountName}
	return events.Append(ctx, tx, events.Event{WorkflowID: c.WorkflowID, Kind: events.Change, Body: body})
}

// answer writes what a proposed change becomes by an answer.
func answer(ctx context.Context, tx *database.Tx, a Answer, c ctldb.Change) (model.ChangeState, error) {
	switch a.Answer {
	case model.Approve:
		of, err := caseOf(ctx, tx, c)
		if err != nil || of.Count().Missing() > 0 {
			return model.ChangeProposed, err
		}
		return model.ChangeApproved, tx.ApproveChange(ctx, c.ID)
	case model.PlanAgain:
		reason := said("to be planned again, asked for by "+a.By.AccountName, a.Note)
		return model.ChangeWithdrawn, tx.PlanChangeAgain(ctx, ctldb.PlanChangeAgainParams{ID: c.ID, Error: &reason})
	}
	if err := skipDependents(ctx, tx, a, c); err != nil {
		return "", err
	}
	reason := said("denied by "+a.By.AccountName, a.Note)
	return model.ChangeDenied, tx.DenyChange(ctx, ctldb.DenyChangeParams{ID: c.ID, Error: &reason, DeniedBy: &a.By.AccountName, DeniedThen: optional.Of(a.Then)})
}

// mayVote refuses the approval of somebody whose vote would not count.
func mayVote(ctx context.Context, tx *database.Tx, a Answer, c ctldb.Change) error {
	of, err := caseOf(ctx, tx, c)
	if err != nil {
		return err
	}
	install, err := tx.FindInstall(ctx, c.InstallID)
	if err != nil {
		return fmt.Errorf("read install: %w", err)
	}
	vote := clearance.Vote(a.By, auth.Location{CustomerID: install.CustomerID, AppID: install.AppID, InstallID: install.ID})
	account, err := tx.FindAccount(ctx, a.By.AccountID)
	if err != nil {
		return fmt.Errorf("read account: %w", err)
	}
	vote.Service, vote.Removed = account.Kind == "service", account.DisabledAt != nil
	return of.May(vote)
}

// caseOf is how the vote on a change stands, in a transaction that holds its
// workflow's row.
func caseOf(ctx context.Context, tx *database.Tx, c ctldb.Change) (approval.Case, error) {
	now, err := clearance.ReadOf(ctx, tx, c, time.Now())
	if err != nil {
		return approval.Case{}, err
	}
	return now.Case(c.ID), nil
}

// skipDependents skips what needs a step whose change is denied, if that is wanted.
func skipDependents(ctx context.Context, tx *database.Tx, a Answer, c ctldb.Change) error {
	if a.Then == "" {
		return nil
	}
	rows, err := tx.StepsOfWorkflow(ctx, c.WorkflowID)
	if err != nil {
		return fmt.Errorf("read steps: %w", err)
	}
	steps, of := stepsOf(rows), slices.IndexFunc(rows, func(s ctldb.Step) bool { return s.ID == c.StepID })
	if of < 0 {
		return fault.Newf(fault.ErrConflict, "change %s belongs to no step of its workflow", c.ID)
	}
	others, err := flow.SkippedByDenial(steps, steps[of], a.Then)
	if err != nil {
		return err
	}
	for _, s := range rows {
		if slices.Contains(others, s.Name) {
			if err := skipStep(ctx, tx, s, "it needs "+rows[of].Name+", which was denied"); err != nil {
				return err
			}
		}
	}
	return nil
}

func said(what, note string) string {
	if note == "" {
		return what
	}
	return what + ": " + note
}

// Standing is a person's answer to all that a workflow proposes.
type Standing struct {
	WorkflowID string
	Actor      string
	Note       string
}

// ApproveAll makes a standing answer for a workflow: what it proposes now and
// later is approved.
func ApproveAll(ctx context.Context, tx *database.Tx, a Standing) error {
	w, err := tx.LockWorkflow(ctx, a.WorkflowID)
	if err != nil {
		return fmt.Errorf("lock workflow: %w", err)
	}
	if w.State.Finished() {
		return fault.Newf(fault.ErrConflict, "workflow %s needs no decision any more: it ended as %s", w.ID, w.State)
	}
	if err := refuseApproveAll(ctx, tx, w.InstallID); err != nil {
		return err
	}
	if err := tx.ApproveAllOfWorkflow(ctx, w.ID); err != nil {
		return err
	}
	if err := events.Append(ctx, tx, events.Event{WorkflowID: w.ID, Kind: events.Workflow, Body: events.Body{"approve_all": true, "actor": a.Actor, "note": a.Note}}); err != nil {
		return err
	}
	return tx.WakeWorkflow(ctx, w.ID)
}

// refuseApproveAll refuses a standing answer where a policy asks for people: they have
// to see what they approve. Errors: ErrConflict with code people_decide.
func refuseApproveAll(ctx context.Context, tx *database.Tx, installID string) error {
	install, err := tx.FindInstall(ctx, installID)
	if err != nil {
		return fmt.Errorf("read install: %w", err)
	}
	policy, _, err := clearance.PolicyOf(ctx, tx, install)
	if err != nil || !policy.DemandsPeople() {
		return err
	}
	return fault.With(
		fault.Newf(fault.ErrConflict, "the policy of install %s asks for %d approvals of %s: nothing is approved unseen", install.Name, policy.Approvals, policy.Who()),
		fault.Code("people_decide"), fault.Remedy("review the changes and approve them: `berth approve --install %s`", install.Name))
}

// Cancel asks a workflow to stop at the next safe point. One that is finished
// stays as it is.
func Cancel(ctx context.Context, tx *database.Tx, workflowID, actor string) error {
	w, err := tx.LockWorkflow(ctx, workflowID)
	if err != nil {
		return fmt.Errorf("lock workflow: %w", err)
	}
	if w.State.Finished() || w.CancelRequestedAt != nil {
		return nil
	}
	if err := tx.RequestWorkflowCancel(ctx, w.ID); err != nil {
		return err
	}
	if err := events.Append(ctx, tx, events.Event{WorkflowID: w.ID, Kind: events.Workflow, Body: events.Body{"cancel_requested": true, "actor": actor}}); err != nil {
		return err
	}
	return tx.WakeWorkflow(ctx, w.ID)
}
