package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/bulk"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/explain"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/ctl-api/internal/rollback"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// CreateWorkflow starts a workflow.
func (s *Server) CreateWorkflow(ctx context.Context, req apigen.CreateWorkflowRequestObject) (apigen.CreateWorkflowResponseObject, error) {
	r := asked{
		Request: workflow.Request{
			Kind: flow.Kind(req.Body.Kind), Components: req.Body.Components, Action: optional.Value(req.Body.Action),
			Inputs: optional.Value(req.Body.Inputs), PlanOnly: req.Body.PlanOnly, ApproveAll: req.Body.ApproveAll,
			OnFailure: model.OnFailure(req.Body.OnFailure), Confirm: req.Body.Confirm, Role: req.Body.Role, WithDependents: req.Body.WithDependents, WithoutComponents: req.Body.WithoutComponents,
			RunnerVersion: req.Body.RunnerVersion, ControlPlane: s.Version,
		},
		release: optional.Value(req.Body.Release),
	}
	if s := req.Body.HoldSeconds; s != nil {
		hold := time.Duration(*s) * time.Second
		r.Hold = &hold
	}
	r.script = req.Body.Script
	if p := req.Body.PreviewToggles; p != nil {
		r.toggles = installs.Toggles(*p)
	}
	if p := req.Body.PreviewInputs; p != nil {
		r.inputs = &installs.Change{Set: installs.Values(optional.Value(p.Values)), Unset: p.Unset, Actor: auth.PrincipalOf(ctx).AccountName}
	}
	w, err := s.startWorkflow(ctx, req.Install, r)
	return apigen.CreateWorkflow202JSONResponse(w), err
}

// asked is a workflow as a caller asks for it.
type asked struct {
	workflow.Request
	release string           // id or number; empty for the one that the kind takes by itself
	inputs  *installs.Change // planned with, but not set
	toggles installs.Toggles // planned with, but not set
	script  *apigen.AdHocScript
}

// startWorkflow starts a workflow on an install and answers it.
func (s *Server) startWorkflow(ctx context.Context, installRef string, r asked) (apigen.Workflow, error) {
	var out apigen.Workflow
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		install, err := installs.Find(ctx, tx, installRef)
		if err != nil {
			return "", err
		}
		if r.inputs != nil {
			if r.InputsVersion, err = s.previewInputs(ctx, tx, install, r); err != nil {
				return "", err
			}
		}
		if r.Script, err = s.askedScript(install, r); err != nil {
			return "", err
		}
		if r.toggles != nil {
			if r.Toggles, err = s.previewToggles(ctx, tx, install, r); err != nil {
				return "", err
			}
		}
		if r.release != "" {
			number, _ := strconv.ParseInt(r.release, 10, 32) // 0 when it is an id
			find := ctldb.FindReleaseOfAppParams{AppID: install.AppID, Number: int32(number)}
			if number == 0 {
				find.ID = r.release
			}
			row, err := tx.FindReleaseOfApp(ctx, find)
			if err != nil {
				return "", missing(err, "the app has no release %q", r.release)
			}
			r.ReleaseID = row.ID
		}
		if r.Kind == flow.KindInputUpdate {
			if r.Moved, err = s.Installs.Moved(ctx, tx, install, cmp.Or(r.InputsVersion, install.InputsVersion)); err != nil {
				return "", err
			}
		}
		r.InstallID, r.Actor = install.ID, auth.PrincipalOf(ctx).AccountName
		if r.Kind == flow.KindRollback {
			if err := (rollback.Finder{Installs: s.Installs}).Prepare(ctx, tx, &r.Request); err != nil {
				return "", err
			}
		}
		id, err := workflow.Start(ctx, tx, r.Request)
		if err != nil {
			return "", err
		}
		if out, err = s.workflowView(ctx, tx, id); err != nil {
			return "", err
		}
		others, err := workflow.Others(ctx, tx, id)
		out.Others = convert(others, otherView)
		if err != nil {
			return "", err
		}
		out.Notice, err = noticeOf(ctx, tx, id)
		return "start workflow " + id + " (" + string(r.Kind) + ") on install " + install.Name, err
	})
	return out, err
}

// StartBulk starts the workflow of a bulk operation in one install; see
// bulk.Office.
func StartBulk(ctx context.Context, tx *database.Tx, d bulk.Deploy) (string, error) {
	if d.Operation != "" {
		_, err := clearance.Pause(ctx, tx, clearance.Pausing{InstallID: d.InstallID, Actor: d.Actor, Reason: d.Reason})
		return "", err
	}
	return workflow.Start(ctx, tx, workflow.Request{
		InstallID: d.InstallID, Kind: flow.KindDeploy, ReleaseID: d.Release, Components: d.Components, PlanOnly: d.PlanOnly, Actor: d.Actor,
	})
}

// noticeOf says for which role a workflow will wait; "" for none.
func noticeOf(ctx context.Context, tx *database.Tx, workflowID string) (string, error) {
	steps, err := tx.StepsOfWorkflow(ctx, workflowID)
	if err != nil {
		return "", err
	}
	missing, err := roles.Missing(ctx, tx.Queries, steps)
	return strings.Join(slices.Compact(slices.Sorted(maps.Values(missing))), "; "), err
}

// StartRoleSwitch starts the actions of a customer's switch of a role; see
// roleswitch.Starter.
func StartRoleSwitch(ctx context.Context, tx *database.Tx, installID string, s roles.Switch) (string, error) {
	return workflow.Start(ctx, tx, workflow.Request{InstallID: installID, Kind: flow.KindRoleSwitch, RoleSwitch: &s, Actor: "the customer"})
}

// StartRemedy starts the action that is to heal a check, which waits for a decision: for
// remedyask.Starter.
func StartRemedy(ctx context.Context, tx *database.Tx, installID, check, action string) error {
	_, err := workflow.Start(ctx, tx, workflow.Request{InstallID: installID, Kind: flow.KindActionRun, Action: action, Remedy: check, Actor: "berth"})
	return err
}

// previewInputs stores the inputs that a preview of a provision or a deploy is to
// plan with.
func (s *Server) previewInputs(ctx context.Context, tx *database.Tx, install ctldb.Install, r asked) (int32, error) {
	if !r.previewsDeploy() && !(r.PlanOnly && r.Kind == flow.KindInputUpdate) {
		return 0, fault.Newf(fault.ErrInvalid, "preview_inputs is for a provision, deploy or input_update with plan_only")
	}
	return s.Installs.PreviewInputs(ctx, tx, install.ID, *r.inputs)
}

// previewToggles are the toggles that a preview of a provision or a deploy is to
// plan with.
func (s *Server) previewToggles(ctx context.Context, tx *database.Tx, install ctldb.Install, r asked) (installs.Toggles, error) {
	if !r.previewsDeploy() && !r.previewsToggle() {
		return nil, fault.Newf(fault.ErrInvalid, "preview_toggles is for a provision, deploy or toggle with plan_only")
	}
	return s.Installs.PreviewToggles(ctx, tx, install, r.toggles)
}

// previewsToggle tells whether it shows what toggles would do.
func (r asked) previewsToggle() bool { return r.PlanOnly && r.Kind == flow.KindToggle }

// previewsDeploy tells whether it shows what a provision or a deploy would do.
func (r asked) previewsDeploy() bool {
	return r.PlanOnly && (r.Kind == flow.KindProvision || r.Kind == flow.KindDeploy)
}

// ListWorkflows answers workflows, newest first.
func (s *Server) ListWorkflows(ctx context.Context, req apigen.ListWorkflowsRequestObject) (apigen.ListWorkflowsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListWorkflows200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		installID, err := installFilter(ctx, tx, req.Params.Install)
		if err != nil {
			return err
		}
		rows, err := tx.ListWorkflows(ctx, ctldb.ListWorkflowsParams{
			InstallID: installID, State: (*string)(req.Params.State), After: optional.Of(optional.Value(req.Params.After)), Most: int32(limit + 1),
		})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ListWorkflowsRow) string { return r.Workflow.ID })
		if err != nil {
			return err
		}
		out.Items, err = convertAll(rows, workflowHead)
		return err
	})
	return out, err
}

// GetWorkflow answers a workflow with its steps; with wait, once it moved or is
// finished.
func (s *Server) GetWorkflow(ctx context.Context, req apigen.GetWorkflowRequestObject) (apigen.GetWorkflowResponseObject, error) {
	var view apigen.Workflow
	look := func(ctx context.Context) (bool, error) {
		err := s.read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
			view, err = s.workflowView(ctx, tx, req.Workflow)
			return err
		})
		return view.Version > optional.Value(req.Params.AfterVersion) || model.WorkflowState(view.State).Finished(), err
	}
	err := s.wait(ctx, req.Params.Wait, wakeUps{model.ChannelWorkflow, func() string { return req.Workflow }}, look)
	return apigen.GetWorkflow200JSONResponse(view), err
}

// CancelWorkflow asks a workflow to stop.
func (s *Server) CancelWorkflow(ctx context.Context, req apigen.CancelWorkflowRequestObject) (apigen.CancelWorkflowResponseObject, error) {
	var out apigen.Workflow
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		if err := workflow.Cancel(ctx, tx, req.Workflow, auth.PrincipalOf(ctx).AccountName); err != nil {
			return "", err
		}
		var err error
		out, err = s.workflowView(ctx, tx, req.Workflow)
		return "cancel workflow " + req.Workflow, err
	})
	return apigen.CancelWorkflow202JSONResponse(out), err
}

// ApproveAll makes a standing answer for a workflow.
func (s *Server) ApproveAll(ctx context.Context, req apigen.ApproveAllRequestObject) (apigen.ApproveAllResponseObject, error) {
	var out apigen.Workflow
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		if err := workflow.ApproveAll(ctx, tx, workflow.Standing{WorkflowID: req.Workflow, Actor: auth.PrincipalOf(ctx).AccountName, Note: req.Body.Note}); err != nil {
			return "", err
		}
		var err error
		out, err = s.workflowView(ctx, tx, req.Workflow)
		return "approve all changes of workflow " + req.Workflow, err
	})
	return apigen.ApproveAll202JSONResponse(out), err
}

// GetStep answers a step with the jobs that worked on it.
func (s *Server) GetStep(ctx context.Context, req apigen.GetStepRequestObject) (apigen.GetStepResponseObject, error) {
	var out apigen.GetStep200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.GetStep(ctx, req.Step)
		if err != nil {
			return missing(err, "there is no step %q", req.Step)
		}
		w, err := s.workflowView(ctx, tx, row.WorkflowID)
		if err != nil {
			return err
		}
		for _, step := range w.Steps {
			if step.ID == row.ID {
				out = apigen.GetStep200JSONResponse(step)
			}
		}
		jobs, err := tx.JobsOfStep(ctx, &row.ID)
		out.Jobs = convert(jobs, jobView)
		return err
	})
	return out, err
}

// RetryStep begins a failed step again.
func (s *Server) RetryStep(ctx context.Context, req apigen.RetryStepRequestObject) (apigen.RetryStepResponseObject, error) {
	var out apigen.Workflow
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		id, err := workflow.Retry(ctx, tx, req.Step, auth.PrincipalOf(ctx).AccountName)
		if err != nil {
			return "", err
		}
		out, err = s.workflowView(ctx, tx, id)
		return "retry step " + req.Step, err
	})
	return apigen.RetryStep202JSONResponse(out), err
}

// RetryWorkflow begins every failed or cancelled step of a workflow again.
func (s *Server) RetryWorkflow(ctx context.Context, req apigen.RetryWorkflowRequestObject) (apigen.RetryWorkflowResponseObject, error) {
	var out apigen.Workflow
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		if err := workflow.RetryAll(ctx, tx, req.Workflow, auth.PrincipalOf(ctx).AccountName); err != nil {
			return "", err
		}
		var err error
		out, err = s.workflowView(ctx, tx, req.Workflow)
		return "retry workflow " + req.Workflow, err
	})
	return apigen.RetryWorkflow202JSONResponse(out), err
}

// SkipStep has a workflow go on without a failed step.
func (s *Server) SkipStep(ctx context.Context, req apigen.SkipStepRequestObject) (apigen.SkipStepResponseObject, error) {
	var out apigen.Workflow
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		id, err := workflow.Skip(ctx, tx, req.Step, auth.PrincipalOf(ctx).AccountName)
		if err != nil {
			return "", err
		}
		out, err = s.workflowView(ctx, tx, id)
		return "skip step " + req.Step, err
	})
	return apigen.SkipStep202JSONResponse(out), err
}

// addHold adds what keeps the changes of an unfinished workflow from being carried
// out, and what it is let through.
func addHold(ctx context.Context, tx *database.Tx, w ctldb.Workflow, out *apigen.Workflow) error {
	overrides, err := tx.OverridesOfWorkflow(ctx, w.ID)
	if err != nil {
		return err
	}
	out.FreezeOverrides = convert(overrides, func(o ctldb.FreezeOverride) apigen.FreezeOverride {
		return apigen.FreezeOverride{FreezeID: o.FreezeID, Until: o.Until, Reason: o.Reason, Actor: o.Actor, CreatedAt: o.CreatedAt}
	})
	if w.State.Finished() && !w.PlanOnly { // a preview says it when it is shown
		return nil
	}
	install, err := installs.Find(ctx, tx, w.InstallID)
	if err != nil {
		return err
	}
	hold, err := clearance.HoldOf(ctx, tx, install, overrides, time.Now())
	if err != nil || hold == nil {
		return err
	}
	out.Hold = &apigen.Hold{Reason: apigen.HoldReason(hold.Reason), Until: optional.Of(hold.Until), Text: hold.Text}
	if hold.Reason == model.WaitFreeze {
		out.Hold.FreezeID = hold.On
	}
	return nil
}

// traceOf is the trace of the request that started a workflow; nil without one.
func (s *Server) traceOf(w ctldb.Workflow) (*apigen.WorkflowTrace, error) {
	var carried map[string]string
	if err := decode("trace of workflow "+w.ID, w.Trace, &carried); err != nil {
		return nil, err
	}
	id, address := s.Traces.Of(carried)
	if id == "" {
		return nil, nil
	}
	return &apigen.WorkflowTrace{ID: id, URL: optional.Of(address)}, nil
}

// workflowView shows a workflow with its steps and the change of each.
func (s *Server) workflowView(ctx context.Context, tx *database.Tx, id string) (apigen.Workflow, error) {
	rows, err := tx.ListWorkflows(ctx, ctldb.ListWorkflowsParams{ID: &id, Most: 1})
	if err != nil || len(rows) == 0 {
		return apigen.Workflow{}, missing(orNotFound(err), "there is no workflow %q", id)
	}
	out, err := workflowHead(rows[0])
	if err != nil {
		return out, err
	}
	if out.Trace, err = s.traceOf(rows[0].Workflow); err != nil {
		return out, err
	}
	back, backErr := (rollback.Finder{Installs: s.Installs}).View(ctx, tx, rows[0].Workflow)
	out.Rollback = back
	steps, err := tx.StepsOfWorkflow(ctx, id)
	if err := errors.Join(backErr, err); err != nil {
		return out, err
	}
	resources, err := tx.ResourcesOfInstall(ctx, rows[0].Workflow.InstallID)
	if err != nil {
		return out, err
	}
	changes, err := tx.CurrentChanges(ctx, id)
	if err != nil {
		return out, err
	}
	jobs, err := tx.JobsOfWorkflow(ctx, &id)
	if err != nil {
		return out, err
	}
	if out.Held, err = s.heldBy(ctx, tx, rows[0].Workflow, jobs); err != nil {
		return out, err
	}
	if err := addHold(ctx, tx, rows[0].Workflow, &out); err != nil {
		return out, err
	}
	progress, err := progressOf(ctx, tx, id, jobs)
	if err != nil {
		return out, err
	}
	byID := map[string]ctldb.Resource{}
	for _, r := range resources {
		byID[r.ID] = r
	}
	byStep := map[string]ctldb.Change{}
	for _, c := range changes {
		byStep[c.StepID] = c
	}
	out.Steps, err = convertAll(steps, func(row ctldb.Step) (apigen.Step, error) {
		step, err := stepView(row)
		if err != nil {
			return step, err
		}
		if row.State == model.StepRunning {
			step.Progress = progress[row.ID]
		}
		if row.ResourceID != nil {
			of := byID[*row.ResourceID]
			step.Resource = apiref.Resource(&of.ID, string(of.Kind), of.Name)
		}
		if c, ok := byStep[row.ID]; ok {
			if err := addChange(&step, c, out.Install); err != nil {
				return step, err
			}
		}
		for _, j := range jobs {
			if optional.Value(j.StepID) == row.ID && j.ActionRunID != nil {
				step.ActionRunID = j.ActionRunID
			}
		}
		return step, nil
	})
	return out, err
}

// endedOf is how a failed step ended whose change was denied.
func endedOf(c ctldb.Change) (*apigen.Ended, *string) {
	switch {
	case c.State != model.ChangeDenied:
		return nil, nil
	case c.DeniedBy == nil:
		return optional.Of(apigen.Ended(model.EndedExpired)), nil
	}
	return optional.Of(apigen.Ended(model.EndedDenied)), c.DeniedBy
}

// addChange shows the change that a step is at.
func addChange(step *apigen.Step, c ctldb.Change, install apigen.Ref) error {
	if model.StepState(step.State) == model.StepFailed {
		step.Ended, step.EndedBy = endedOf(c)
	}
	summary, err := changeSummary(c, install, step.Resource)
	step.Change = &summary
	return err
}

// progressOf is what runners do right now, by step, as they told last.
func progressOf(ctx context.Context, tx *database.Tx, workflowID string, jobs []ctldb.JobsOfWorkflowRow) (map[string]*apigen.StepProgress, error) {
	if !slices.ContainsFunc(jobs, func(j ctldb.JobsOfWorkflowRow) bool { return j.State == model.JobLeased }) {
		return nil, nil
	}
	rows, err := tx.ProgressOfWorkflow(ctx, &workflowID)
	if err != nil {
		return nil, err
	}
	byStep := map[string]*apigen.StepProgress{}
	for _, r := range rows {
		var p model.Progress
		if err := decode("progress of step "+*r.StepID, r.Progress, &p); err != nil {
			return nil, err
		}
		byStep[*r.StepID] = &apigen.StepProgress{
			What: p.What, Doing: p.Doing, Done: p.Done, Total: p.Total,
			StartedAt: r.ProgressAt.Add(-time.Duration(p.Seconds) * time.Second), ReportedAt: *r.ProgressAt,
		}
	}
	return byStep, nil
}

// heldBy says why the runner takes none of a workflow's jobs; nil while it does.
func (s *Server) heldBy(ctx context.Context, tx *database.Tx, w ctldb.Workflow, jobs []ctldb.JobsOfWorkflowRow) (*string, error) {
	queued := func(j ctldb.JobsOfWorkflowRow) bool { return j.State == model.JobQueued }
	if w.State.Finished() || !slices.ContainsFunc(jobs, queued) {
		return nil, nil
	}
	runner, err := explain.Runner(ctx, tx, w.InstallID)
	if err != nil {
		return nil, err
	}
	return optional.Of(why.Held(why.Input{Workflow: w, Jobs: jobs, Runner: runner, Now: s.now()})), nil
}

func workflowHead(r ctldb.ListWorkflowsRow) (apigen.Workflow, error) {
	w := r.Workflow
	out := apigen.Workflow{
		ID: w.ID, Install: ref(w.InstallID, r.InstallName), Number: int(w.Number), Kind: apigen.WorkflowKind(w.Kind),
		State: apigen.WorkflowState(w.State), Wait: waiting(w.WaitReason, w.WaitOn, w.WaitDeadline, nil),
		Release: apiref.Number(w.ReleaseID, r.ReleaseNumber), InputsVersion: int(w.InputsVersion), PlanOnly: w.PlanOnly, ApproveAll: w.ApproveAll, OnFailure: apigen.OnFailure(w.OnFailure),
		Error: w.Error, Ended: (*apigen.Ended)(w.Ended), EndedBy: w.EndedBy, Version: w.EventSeq, CreatedBy: w.CreatedBy, CreatedAt: w.CreatedAt, StartedAt: w.StartedAt,
		FinishedAt: w.FinishedAt, CancelRequestedAt: w.CancelRequestedAt,
	}
	var params struct {
		Action  string                   `json:"action"`
		Toggles *apigen.ComponentToggles `json:"toggles"`
	}
	err := decode("params of workflow "+w.ID, w.Params, &params)
	out.Action, out.PreviewToggles = optional.Of(params.Action), params.Toggles
	return out, err
}

func otherView(o workflow.Other) apigen.OtherWorkflow {
	w := o.Workflow
	return apigen.OtherWorkflow{
		ID: w.ID, Kind: apigen.WorkflowKind(w.Kind), State: apigen.WorkflowState(w.State), CreatedBy: w.CreatedBy, CreatedAt: w.CreatedAt,
		Meeting: apigen.OtherWorkflowMeeting(o.Meeting), Resources: o.Resources,
	}
}

func stepView(row ctldb.Step) (apigen.Step, error) {
	step := apigen.Step{
		ID: row.ID, WorkflowID: row.WorkflowID, Name: row.Name, Kind: row.Kind, Action: row.Action, Needs: row.Needs, Reason: row.Reason,
		State: apigen.StepState(row.State), Wait: waiting(row.WaitReason, row.WaitOn, row.WaitDeadline, row.WaitRetryAt),
		Attempt: int(row.Attempt), Error: row.Error, Remedy: row.Remedy, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt,
	}
	var mayChange []model.MayChange
	err := decode("what may change in step "+row.ID, row.MayChange, &mayChange)
	step.MayChange = convert(mayChange, func(m model.MayChange) apigen.MayChange {
		return apigen.MayChange{Reads: m.Reads, Of: m.Of, Absent: m.Absent}
	})
	return step, err
}

func waiting(reason *model.WaitReason, on *string, deadline, retryAt *time.Time) *apigen.Waiting {
	if reason == nil || deadline == nil {
		return nil
	}
	return &apigen.Waiting{Reason: string(*reason), On: optional.Value(on), Deadline: *deadline, RetryAt: retryAt}
}

func jobView(row ctldb.JobsOfStepRow) apigen.Job {
	j := apigen.Job{
		ID: row.ID, Operation: row.Operation, State: apigen.JobState(row.State), Attempt: int(row.Attempt), QueuedAt: row.QueuedAt,
		StartedAt: row.LeasedAt, FinishedAt: row.FinishedAt, Error: optional.Of(row.Error), StreamIds: []string{},
	}
	if row.StreamID != "" {
		j.StreamIds = append(j.StreamIds, row.StreamID)
	}
	return j
}
