package workflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// contest settles which of the changes to one thing continues, now that the plan of
// the subject's change is there: older requests give way. lost tells that the
// change itself has; it is superseded then.
//
// The engine holds the install's row: two plans that come at the same moment see
// each other.
func contest(ctx context.Context, tx *database.Tx, s subject, noChange bool) (lost bool, err error) {
	c := s.change
	if c.ResourceID == nil && c.Kind != model.ChangeAccept || s.workflow.PlanOnly {
		return false, nil
	}
	rows, err := tx.RivalsOfChange(ctx, ctldb.RivalsOfChangeParams{
		InstallID: s.install.ID, WorkflowID: s.workflow.ID, ResourceID: c.ResourceID, RequestedAt: s.workflow.RequestedAt,
	})
	if err != nil {
		return false, fmt.Errorf("read rivals of change %s: %w", c.ID, err)
	}
	of := flow.Contest{RequestedAt: s.workflow.RequestedAt, NoChange: noChange}
	for _, r := range rows {
		if c.Kind == model.ChangeAccept && (r.State == model.ChangeNoChange || noChange && r.State == model.ChangeProposed) {
			continue // who accepts what was accepted, as an action that runs meanwhile, wants nothing else
		}
		of.Rivals = append(of.Rivals, flow.Rival{ChangeID: r.ID, State: r.State, RequestedAt: r.RequestedAt})
	}
	byID := map[string]ctldb.RivalsOfChangeRow{}
	for _, r := range rows {
		byID[r.ID] = r
	}
	by, yield := of.Settle()
	if by >= 0 {
		winner := byID[of.Rivals[by].ChangeID]
		why := supersededBy(winner.ID, ctldb.Workflow{ID: winner.WorkflowID, Kind: winner.WorkflowKind, CreatedBy: winner.CreatedBy})
		if _, err := tx.SupersedeChange(ctx, ctldb.SupersedeChangeParams{ID: c.ID, Error: why}); err != nil {
			return true, fmt.Errorf("supersede change: %w", err)
		}
		return true, tell(ctx, tx, s.event(events.Change, events.Body{"change_id": c.ID, "step": s.step.Name, "state": model.ChangeSuperseded, "error": why}))
	}
	for _, i := range yield {
		older := byID[of.Rivals[i].ChangeID]
		n, err := tx.SupersedeChange(ctx, ctldb.SupersedeChangeParams{ID: older.ID, Error: supersededBy(c.ID, s.workflow)})
		if err != nil {
			return false, fmt.Errorf("supersede change: %w", err)
		}
		if n == 0 {
			continue // somebody decided on it in the meantime
		}
		if err := tx.WakeWorkflow(ctx, older.WorkflowID); err != nil {
			return false, err
		}
	}
	return false, nil
}

// supersededBy says what replaced a change, and who asked for it.
func supersededBy(changeID string, w ctldb.Workflow) string {
	return fmt.Sprintf("superseded by %s of the newer %s %s, which %s requested", changeID, strings.ReplaceAll(w.Kind, "_", " "), w.ID, w.CreatedBy)
}

// Other is another unfinished workflow of an install, as a new one meets it.
type Other struct {
	Workflow  ctldb.Workflow
	Meeting   flow.Meeting
	Resources []string // that both have still to change
}

// Others reads the other unfinished workflows of an install and says what becomes
// of them and a workflow that was just made; none for one that only shows plans.
func Others(ctx context.Context, tx *database.Tx, workflowID string) ([]Other, error) {
	mine, err := tx.GetWorkflow(ctx, workflowID)
	if err != nil || mine.PlanOnly {
		return nil, err
	}
	install, err := tx.FindInstall(ctx, mine.InstallID)
	if err != nil {
		return nil, fmt.Errorf("read install: %w", err)
	}
	rows, err := tx.StepsOfOtherWorkflows(ctx, ctldb.StepsOfOtherWorkflowsParams{WorkflowID: mine.ID, InstallID: mine.InstallID})
	if err != nil {
		return nil, fmt.Errorf("read other workflows: %w", err)
	}
	var others []Other
	var shared []flow.Shared
	for i, row := range rows {
		s := flow.Shared{Resource: row.Resource, Step: model.StepState(row.StepState), Change: model.ChangeState(row.ChangeState)}
		if row.Both && s.Open() {
			shared = append(shared, s)
		}
		if i+1 < len(rows) && rows[i+1].Workflow.ID == row.Workflow.ID {
			continue
		}
		other := Other{Workflow: row.Workflow, Meeting: flow.Meet(shared, row.Workflow.ApproveAll || approvesAll(install))}
		for _, s := range shared {
			other.Resources = append(other.Resources, s.Resource)
		}
		others, shared = append(others, other), nil
	}
	return others, nil
}

// approvesAll tells whether an install needs no decisions.
func approvesAll(install ctldb.Install) bool { return install.ApprovalOption == "approve_all" }

// supersededText is why a change was superseded, for a person who wants to decide
// on it.
func supersededText(c ctldb.Change) string {
	return fmt.Sprintf("change %s needs no decision any more: it was %s", c.ID, optional.Value(c.Error))
}
