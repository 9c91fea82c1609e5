package api

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/metricsapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListActions answers the actions of the release that an install has.
func (s *Server) ListActions(ctx context.Context, req apigen.ListActionsRequestObject) (apigen.ListActionsResponseObject, error) {
	out := apigen.ListActions200JSONResponse{Items: []apigen.Action{}}
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil || install.ReleaseID == nil {
			return err
		}
		app, err := releaseview.App(ctx, tx.Queries, *install.ReleaseID)
		if err != nil {
			return err
		}
		for i := range app.Actions {
			view := actionView(&app.Actions[i])
			if install.State == model.InstallLive && (view.HealthCheck || view.Unattended) {
				nextTicks(view.Triggers, s.now())
			}
			last, err := tx.ListActionRuns(ctx, ctldb.ListActionRunsParams{InstallID: &install.ID, Action: &view.Name, Most: 1})
			if err != nil {
				return err
			}
			if len(last) > 0 {
				run := actionRunView(last[0])
				view.LastRun = &run
			}
			out.Items = append(out.Items, view)
		}
		return nil
	})
	return out, err
}

// RunAction starts a workflow that runs an action once.
func (s *Server) RunAction(ctx context.Context, req apigen.RunActionRequestObject) (apigen.RunActionResponseObject, error) {
	w, err := s.startWorkflow(ctx, req.Install, asked{Request: workflow.Request{
		Kind: flow.KindActionRun, Action: req.Action, Inputs: optional.Value(req.Body.Inputs), ApproveAll: req.Body.ApproveAll, Role: req.Body.Role,
	}})
	return apigen.RunAction202JSONResponse(w), err
}

// ListActionRuns answers runs, newest first.
func (s *Server) ListActionRuns(ctx context.Context, req apigen.ListActionRunsRequestObject) (apigen.ListActionRunsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListActionRuns200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		installID, err := installFilter(ctx, tx, req.Params.Install)
		if err != nil {
			return err
		}
		rows, err := tx.ListActionRuns(ctx, ctldb.ListActionRunsParams{
			InstallID: installID, Action: req.Params.Action, After: optional.Of(optional.Value(req.Params.After)), Most: int32(limit + 1),
		})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ListActionRunsRow) string { return r.ActionRun.ID })
		out.Items = convert(rows, actionRunView)
		return err
	})
	return out, err
}

// GetActionRun answers one run.
func (s *Server) GetActionRun(ctx context.Context, req apigen.GetActionRunRequestObject) (apigen.GetActionRunResponseObject, error) {
	var out apigen.GetActionRun200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListActionRuns(ctx, ctldb.ListActionRunsParams{ID: &req.Run, Most: 1})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.Newf(fault.ErrNotFound, "there is no run %q", req.Run)
		}
		out = apigen.GetActionRun200JSONResponse(actionRunView(rows[0]))
		out.Metrics, err = metricsapi.OfRun(ctx, tx, rows[0].ActionRun)
		return err
	})
	return out, err
}

func actionView(a *appconfig.Action) apigen.Action {
	_, check := a.HealthCheck()
	return apigen.Action{
		Name: a.Name, Description: a.Description, HealthCheck: check, Unattended: a.Unattended(),
		Triggers: convert(a.Triggers, func(t appconfig.Trigger) apigen.ActionTrigger {
			return apigen.ActionTrigger{Type: string(t.Type), CronSchedule: optional.Of(t.CronSchedule), Component: optional.Of(t.ComponentName)}
		}),
		Inputs: convert(a.Inputs, func(in appconfig.ActionInput) apigen.ActionInput {
			return apigen.ActionInput{Name: in.Name, Description: in.Description, Required: in.Required}
		}),
		Steps: convert(a.Steps, func(st appconfig.Step) string { return st.Name }),
	}
}

// nextTicks says of each schedule when it is next due.
func nextTicks(triggers []apigen.ActionTrigger, now time.Time) {
	for i := range triggers {
		if triggers[i].CronSchedule == nil {
			continue
		}
		if schedule, err := cron.ParseStandard("CRON_TZ=UTC " + *triggers[i].CronSchedule); err == nil {
			next := schedule.Next(now.UTC())
			triggers[i].NextAt = &next
		}
	}
}

func actionRunView(r ctldb.ListActionRunsRow) apigen.ActionRun {
	a := r.ActionRun
	out := apigen.ActionRun{
		ID: a.ID, Install: ref(a.InstallID, r.InstallName), Action: a.Action, Trigger: a.Trigger, ScheduledAt: a.ScheduledAt,
		State: apigen.ActionRunState(a.State), Outputs: a.Outputs, MetricsKept: optional.Of(int(a.MetricsKept)), MetricsError: a.MetricsError, RemediationID: a.RemediationID, Error: a.Error, ChangeID: a.ChangeID, WorkflowID: a.WorkflowID,
		StreamID: a.StreamID, CreatedBy: a.CreatedBy, CreatedAt: a.CreatedAt, StartedAt: a.StartedAt, FinishedAt: a.FinishedAt, ReportedAt: a.ReportedAt,
	}
	if a.ExitCode != nil {
		code := int(*a.ExitCode)
		out.ExitCode = &code
	}
	if a.RemediationAttempt != nil {
		attempt := int(*a.RemediationAttempt)
		out.RemediationAttempt = &attempt
	}
	return out
}
