package workflow

import (
	"context"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/health"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// rest writes what the workflow's row shall read while nothing can be done. It
// waits for what the subject's step waits for.
func rest(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	if d.WorkflowState != model.WorkflowRunning && d.WorkflowState != model.WorkflowWaiting {
		return nil
	}
	p := ctldb.SetWorkflowStateParams{ID: s.workflow.ID, State: d.WorkflowState}
	if d.WorkflowState == model.WorkflowWaiting {
		p.WaitReason, p.WaitOn, p.WaitDeadline = s.step.WaitReason, s.step.WaitOn, s.step.WaitDeadline
	}
	if s.workflow.State == p.State && optional.Value(s.workflow.WaitOn) == optional.Value(p.WaitOn) && optional.Value(s.workflow.WaitReason) == optional.Value(p.WaitReason) {
		return nil
	}
	if err := tx.SetWorkflowState(ctx, p); err != nil {
		return err
	}
	return tell(ctx, tx, s.event(events.Workflow, events.Body{"state": p.State, "wait": waitBody(p.WaitReason, p.WaitOn, p.WaitDeadline)}))
}

func startWorkflow(ctx context.Context, tx *database.Tx, s subject) error {
	if err := tx.SetWorkflowState(ctx, ctldb.SetWorkflowStateParams{ID: s.workflow.ID, State: model.WorkflowRunning}); err != nil {
		return err
	}
	if state := installDuring(flow.Kind(s.workflow.Kind)); state != "" && !s.workflow.PlanOnly {
		if err := tx.MoveInstall(ctx, ctldb.MoveInstallParams{ID: s.install.ID, State: state}); err != nil {
			return err
		}
		// While it is made or removed, its checks mean nothing.
		if err := tx.WakeInstall(ctx, s.install.ID); err != nil {
			return err
		}
	}
	return tell(ctx, tx, s.event(events.Workflow, events.Body{"state": model.WorkflowRunning}))
}

// installDuring is what an install is while a workflow of a kind is at work;
// empty leaves it.
func installDuring(k flow.Kind) model.InstallState {
	switch k {
	case flow.KindProvision:
		return model.InstallProvisioning
	case flow.KindDeprovision:
		return model.InstallDeprovisioning
	}
	return ""
}

// finishWorkflow ends the workflow and moves the install.
func finishWorkflow(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	err := tx.SetWorkflowState(ctx, ctldb.SetWorkflowStateParams{ID: s.workflow.ID, State: d.WorkflowState, Error: optional.Of(d.Error)})
	if err != nil {
		return err
	}
	if d.WorkflowState == model.WorkflowSucceeded && !s.workflow.PlanOnly {
		if err := moveInstall(ctx, tx, s); err != nil {
			return err
		}
	}
	if err := tell(ctx, tx, s.event(events.Workflow, events.Body{"state": d.WorkflowState, "error": d.Error})); err != nil {
		return err
	}
	// What the runner does by itself depends on what is deployed.
	return tx.WakeInstall(ctx, s.install.ID)
}

// moveInstall writes what the install is after a workflow that succeeded, and
// makes the verdicts on its health before the workflow is seen as finished:
// a client that waited for it asks for them next.
func moveInstall(ctx context.Context, tx *database.Tx, s subject) error {
	move := ctldb.MoveInstallParams{ID: s.install.ID, State: s.install.State}
	switch flow.Kind(s.workflow.Kind) {
	case flow.KindProvision:
		move.State, move.ReleaseID = model.InstallLive, s.workflow.ReleaseID
	case flow.KindDeploy:
		move.ReleaseID = s.workflow.ReleaseID
	case flow.KindDeprovision:
		move.State = model.InstallDeprovisioned
	}
	if err := tx.MoveInstall(ctx, move); err != nil {
		return err
	}
	install := s.install
	install.State = move.State
	if move.ReleaseID != nil {
		install.ReleaseID = move.ReleaseID
	}
	if install.ReleaseID == nil {
		return nil
	}
	app, err := releaseview.InForce(ctx, tx.Queries, install.ID, *install.ReleaseID)
	if err != nil {
		return err
	}
	probes, err := releaseview.Probes(ctx, tx.Queries, install, app)
	if err != nil {
		return err
	}
	_, err = health.Judge(ctx, tx, health.Judged{Install: install, App: app, Probes: probes, Now: s.now})
	return err
}
