package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/health"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// rest writes what the workflow's row shall read while nothing can be done.
func (r *round) rest(ctx context.Context, d flow.Decision) error {
	if d.WorkflowState != flow.WorkflowRunning && d.WorkflowState != flow.WorkflowWaiting {
		return nil
	}
	p := db.SetWorkflowStateParams{ID: r.workflow.ID, State: d.WorkflowState}
	if d.WorkflowState == flow.WorkflowWaiting {
		step := r.step(d.StepID)
		p.WaitReason, p.WaitOn, p.WaitDeadline = step.WaitReason, step.WaitOn, step.WaitDeadline
	}
	if r.workflow.State == p.State && optional.Value(r.workflow.WaitOn) == optional.Value(p.WaitOn) && optional.Value(r.workflow.WaitReason) == optional.Value(p.WaitReason) {
		return nil
	}
	if err := r.tx.SetWorkflowState(ctx, p); err != nil {
		return err
	}
	return r.event(ctx, "workflow", map[string]any{"state": p.State, "wait": waitBody(p.WaitReason, p.WaitOn, p.WaitDeadline)})
}

// act does the one thing that was decided.
func (r *round) act(ctx context.Context, d flow.Decision) error {
	step := r.step(d.StepID)
	switch d.Do {
	case flow.DoStartWorkflow:
		return r.startWorkflow(ctx)
	case flow.DoFinishWorkflow:
		return r.finishWorkflow(ctx, d)
	case flow.DoStartStep:
		return r.setStep(ctx, step, flow.StepRunning, flow.Wait{}, "", "")
	case flow.DoWaitStep:
		if err := r.Waker.WakeWorkflowAt(ctx, r.tx, r.workflow.ID, d.Wait.Deadline); err != nil {
			return err
		}
		return r.setStep(ctx, step, flow.StepWaiting, d.Wait, "", "")
	case flow.DoSucceedStep, flow.DoFailStep, flow.DoCancelStep:
		return r.endStep(ctx, step, d)
	case flow.DoPlan, flow.DoRunCheck:
		if step.State == flow.StepWaiting { // for the runner: it is there
			if err := r.setStep(ctx, step, flow.StepRunning, flow.Wait{}, "", ""); err != nil {
				return err
			}
		}
		if d.Do == flow.DoRunCheck {
			return r.runCheck(ctx, step)
		}
		return r.planChange(ctx, step)
	case flow.DoPropose:
		return r.propose(ctx, step)
	case flow.DoNoChange:
		return r.noChange(ctx, step)
	case flow.DoPlanned:
		return r.planned(ctx, step)
	case flow.DoApprove:
		return r.approve(ctx, r.changes[step.ID], d.Rule)
	case flow.DoExecute:
		return r.execute(ctx, step)
	case flow.DoSettleChange:
		return r.settleChange(ctx, step, d)
	case flow.DoPutOff:
		return r.putOff(ctx, step, d)
	case flow.DoCancelJob:
		if err := r.tx.CancelJob(ctx, d.JobID); err != nil {
			return err
		}
		r.tx.NotifyAfterCommit("berth_jobs", optional.Value(r.runnerID()))
		return r.event(ctx, "job", map[string]any{"job_id": d.JobID, "step": step.Name, "cancel": true})
	}
	return fmt.Errorf("no act for decision %q", d.Do)
}

// setStep writes a step's state with its wait and tells it.
func (r *round) setStep(ctx context.Context, step db.Step, state string, w flow.Wait, errText, remedy string) error {
	p := db.SetStepStateParams{ID: step.ID, State: state, Error: optional.Of(errText), Remedy: optional.Of(remedy)}
	if state == flow.StepWaiting {
		p.WaitReason, p.WaitOn, p.WaitDeadline = optional.Of(w.Reason), optional.Of(w.On), optional.Of(w.Deadline)
		if w.On == "" { // who can end it is always named
			p.WaitOn = optional.Of("operator")
		}
	}
	if err := r.tx.SetStepState(ctx, p); err != nil {
		return fmt.Errorf("set step %s to %s: %w", step.Name, state, err)
	}
	return r.event(ctx, "step", map[string]any{
		"step_id": step.ID, "step": step.Name, "state": state, "error": errText, "remedy": remedy,
		"wait": waitBody(p.WaitReason, p.WaitOn, p.WaitDeadline),
	})
}

func (r *round) endStep(ctx context.Context, step db.Step, d flow.Decision) error {
	if flow.StepKind(step.Kind) == flow.StepCheck {
		if err := r.settleCheckRun(ctx, step); err != nil {
			return err
		}
	}
	switch d.Do {
	case flow.DoSucceedStep:
		if flow.StepKind(step.Kind) == flow.StepAwaitStack {
			if err := r.tx.MakeStackLive(ctx, r.install.ID); err != nil {
				return err
			}
		}
		return r.setStep(ctx, step, flow.StepSucceeded, flow.Wait{}, "", "")
	case flow.DoFailStep:
		return r.setStep(ctx, step, flow.StepFailed, flow.Wait{}, d.Error, d.Remedy)
	}
	if c, ok := r.changes[step.ID]; ok && flow.ChangeOpen(c.State) {
		err := r.tx.EndPlannedChange(ctx, db.EndPlannedChangeParams{
			ID: c.ID, State: flow.ChangeSuperseded, Effect: c.Effect, EffectDigest: c.EffectDigest, Plan: c.Plan, Error: optional.Of("the workflow was cancelled"),
		})
		if err != nil {
			return err
		}
	}
	return r.setStep(ctx, step, flow.StepCancelled, flow.Wait{}, "", "")
}

func (r *round) startWorkflow(ctx context.Context) error {
	if err := r.tx.SetWorkflowState(ctx, db.SetWorkflowStateParams{ID: r.workflow.ID, State: flow.WorkflowRunning}); err != nil {
		return err
	}
	if state := installDuring(flow.Kind(r.workflow.Kind)); state != "" && !r.workflow.PlanOnly {
		if err := r.tx.MoveInstall(ctx, db.MoveInstallParams{ID: r.install.ID, State: state}); err != nil {
			return err
		}
		// While it is made or removed, its checks mean nothing.
		if err := r.tx.WakeInstall(ctx, r.install.ID); err != nil {
			return err
		}
	}
	return r.event(ctx, "workflow", map[string]any{"state": flow.WorkflowRunning})
}

// installDuring is what an install is while a workflow of a kind is at work;
// empty leaves it.
func installDuring(k flow.Kind) string {
	switch k {
	case flow.KindProvision:
		return "provisioning"
	case flow.KindDeprovision:
		return "deprovisioning"
	}
	return ""
}

// finishWorkflow ends the workflow and moves the install.
func (r *round) finishWorkflow(ctx context.Context, d flow.Decision) error {
	err := r.tx.SetWorkflowState(ctx, db.SetWorkflowStateParams{ID: r.workflow.ID, State: d.WorkflowState, Error: optional.Of(d.Error)})
	if err != nil {
		return err
	}
	if d.WorkflowState == flow.WorkflowSucceeded && !r.workflow.PlanOnly {
		move := db.MoveInstallParams{ID: r.install.ID, State: r.install.State}
		switch flow.Kind(r.workflow.Kind) {
		case flow.KindProvision:
			move.State, move.ReleaseID = "live", r.workflow.ReleaseID
		case flow.KindDeploy:
			move.ReleaseID = r.workflow.ReleaseID
		case flow.KindDeprovision:
			move.State = "deprovisioned"
		}
		if err := r.tx.MoveInstall(ctx, move); err != nil {
			return err
		}
		if err := r.judge(ctx, move); err != nil {
			return err
		}
	}
	if err := r.event(ctx, "workflow", map[string]any{"state": d.WorkflowState, "error": d.Error}); err != nil {
		return err
	}
	// What the runner does by itself depends on what is deployed.
	return r.tx.WakeInstall(ctx, r.install.ID)
}

// judge makes the verdicts on the install's health before the workflow is seen
// as finished: whoever waited for it asks for them next.
func (r *round) judge(ctx context.Context, moved db.MoveInstallParams) error {
	install := r.install
	install.State = moved.State
	if moved.ReleaseID != nil {
		install.ReleaseID = moved.ReleaseID
	}
	if install.ReleaseID == nil {
		return nil
	}
	app, err := AppInForce(ctx, r.tx.Queries, install.ID, *install.ReleaseID)
	if err != nil {
		return err
	}
	probes, err := Probes(ctx, r.tx, install, app)
	if err != nil {
		return err
	}
	_, err = health.Judge(ctx, r.tx, install, app, probes, r.now())
	return err
}

// event appends to the workflow's gapless record and wakes who follows it.
func (r *round) event(ctx context.Context, kind string, body map[string]any) error {
	for k, v := range body {
		if v == nil || v == "" {
			delete(body, k)
		}
	}
	return appendEvent(ctx, r.tx, r.workflow.ID, kind, body)
}

func waitBody(reason, on *string, deadline *time.Time) any {
	if reason == nil {
		return nil
	}
	return map[string]any{"reason": *reason, "on": optional.Value(on), "deadline": deadline}
}

func (r *round) runnerID() *string {
	if r.runner == nil {
		return nil
	}
	return &r.runner.ID
}

// newID is id.New; a variable name of its own keeps the calls short.
func newID(prefix string) string { return id.New(prefix) }

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // only our own structs and maps come here
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return raw
}
