package workflow

import (
	"context"
	"fmt"
	"time"

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
	// A wait that nobody ends becomes an alert.
	if p.State == model.WorkflowWaiting || s.workflow.State == model.WorkflowWaiting {
		if err := tx.WakeInstall(ctx, s.install.ID); err != nil {
			return err
		}
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
	case flow.KindDeprovision, flow.KindDeprovisionSandbox:
		return model.InstallDeprovisioning
	}
	return ""
}

// finishWorkflow ends the workflow and moves the install.
func (e *Engine) finishWorkflow(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	err := tx.SetWorkflowState(ctx, ctldb.SetWorkflowStateParams{
		ID: s.workflow.ID, State: d.WorkflowState, Error: optional.Of(d.Error), Ended: optional.Of(d.Ended), EndedBy: optional.Of(d.EndedBy),
	})
	if err != nil {
		return err
	}
	if !s.workflow.PlanOnly {
		if err := moveInstall(ctx, tx, s, d.WorkflowState); err != nil {
			return err
		}
	}
	notAdded, err := switchedOnSince(ctx, tx, s)
	if err != nil {
		return err
	}
	if err := tell(ctx, tx, s.event(events.Workflow, events.Body{
		"state": d.WorkflowState, "error": d.Error, "ended": string(d.Ended), "ended_by": d.EndedBy, "note": notAdded,
	})); err != nil {
		return err
	}
	tx.AfterCommit(func() { countEnded(ctx, s.workflow, d.WorkflowState) })
	if e.Failed != nil && d.WorkflowState == model.WorkflowFailed {
		if err := e.Failed(ctx, tx, s.workflow); err != nil {
			return fmt.Errorf("after the failure: %w", err)
		}
	}
	// What the runner does by itself depends on what is deployed.
	return tx.WakeInstall(ctx, s.install.ID)
}

// brings are the kinds after which the install has the release of the workflow.
var brings = map[flow.Kind]bool{
	flow.KindProvision: true, flow.KindReprovision: true, flow.KindReprovisionSandbox: true, flow.KindDeploy: true, flow.KindInputUpdate: true,
	flow.KindRollback: true,
}

// moveInstall writes what the install is after a workflow, and makes the verdicts
// on its health before the workflow is seen as finished: a client that waited for
// it asks for them next.
func moveInstall(ctx context.Context, tx *database.Tx, s subject, ended model.WorkflowState) error {
	install, kind := s.install, flow.Kind(s.workflow.Kind)
	skipped, err := tx.SkippedByPeople(ctx, s.workflow.ID)
	if err != nil {
		return fmt.Errorf("read skipped steps: %w", err)
	}
	if skipped && brings[kind] && ended == model.WorkflowSucceeded {
		ended = model.WorkflowFailed // for the install: something of the release is missing
	}
	done := ended == model.WorkflowSucceeded
	var brought *string
	if done && brings[kind] {
		brought = s.workflow.ReleaseID
	}
	if brought != nil && kind == flow.KindRollback {
		if brought, err = wentBack(ctx, tx, s); err != nil {
			return err
		}
	}
	if brought != nil {
		install.ReleaseID = brought
	}
	after, err := whatIsLeft(ctx, tx, install)
	if err != nil {
		return err
	}
	after.Kind, after.State, after.Was = kind, ended, install.State
	install.State = flow.InstallAfter(after)
	if !done && install.State == after.Was {
		return nil
	}
	if err := tx.MoveInstall(ctx, ctldb.MoveInstallParams{ID: install.ID, State: install.State, ReleaseID: brought}); err != nil {
		return err
	}
	return judge(ctx, tx, install, s.now)
}

// wentBack makes what a rollback that succeeded brought back what the install is to
// be: its inputs come into force, unless somebody has set others since it began, and
// its release is the install's. One of single components does neither, as long as
// anything else stands on the install's release.
func wentBack(ctx context.Context, tx *database.Tx, s subject) (release *string, err error) {
	components, err := ComponentsOf(s.workflow)
	if err != nil {
		return nil, err
	}
	if len(components) > 0 {
		stands, err := tx.InstallStandsOn(ctx, ctldb.InstallStandsOnParams{InstallID: s.install.ID, ReleaseID: optional.Value(s.install.ReleaseID)})
		if err != nil || stands {
			return nil, err
		}
		return s.workflow.ReleaseID, nil
	}
	if err := tx.BringInputsBack(ctx, ctldb.BringInputsBackParams{InstallID: s.install.ID, Version: s.workflow.InputsVersion}); err != nil {
		return nil, fmt.Errorf("bring inputs back: %w", err)
	}
	return s.workflow.ReleaseID, nil
}

// whatIsLeft looks whether an install between two states is whole, and whether
// another workflow makes or removes it still.
func whatIsLeft(ctx context.Context, tx *database.Tx, install ctldb.Install) (flow.Ended, error) {
	if install.ReleaseID == nil || install.State != model.InstallProvisioning && install.State != model.InstallDeprovisioning {
		return flow.Ended{}, nil
	}
	missing, err := releaseview.Missing(ctx, tx.Queries, install, *install.ReleaseID)
	if err != nil {
		return flow.Ended{}, err
	}
	busy, err := tx.InstallIsMadeOrRemoved(ctx, install.ID)
	return flow.Ended{Whole: len(missing) == 0, Busy: busy}, err
}

// judge makes the verdicts on the health of an install.
func judge(ctx context.Context, tx *database.Tx, install ctldb.Install, now time.Time) error {
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
	_, err = health.Judge(ctx, tx, health.Judged{Install: install, App: app, Probes: probes, Now: now})
	return err
}
