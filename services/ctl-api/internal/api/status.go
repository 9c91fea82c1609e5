package api

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/rollback"
	"github.com/berth-dev/berth/services/ctl-api/internal/status"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListStatus answers how the installs that the caller may see stand, by name.
func (s *Server) ListStatus(ctx context.Context, req apigen.ListStatusRequestObject) (apigen.ListStatusResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListStatus200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		filter, err := installsOf(ctx, tx, req.Params.App, req.Params.Label)
		if err != nil {
			return err
		}
		filter.After, filter.Most = optional.Value(req.Params.After), int32(limit+1)
		rows, err := tx.ShowInstalls(ctx, filter)
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowInstallsRow) string { return r.Install.Name })
		if err != nil {
			return err
		}
		out.Items, err = s.statusOf(ctx, tx, rows)
		return err
	})
	return out, err
}

// GetInstallStatus answers how one install stands.
func (s *Server) GetInstallStatus(ctx context.Context, req apigen.GetInstallStatusRequestObject) (apigen.GetInstallStatusResponseObject, error) {
	var out apigen.InstallStatus
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		out, err = s.oneStatus(ctx, tx, found.ID)
		return err
	})
	return apigen.GetInstallStatus200JSONResponse(out), err
}

func (s *Server) oneStatus(ctx context.Context, tx *database.Tx, installID string) (apigen.InstallStatus, error) {
	row, err := showInstall(ctx, tx, installID)
	if err != nil {
		return apigen.InstallStatus{}, err
	}
	all, err := s.statusOf(ctx, tx, []ctldb.ShowInstallsRow{row})
	if err != nil {
		return apigen.InstallStatus{}, err
	}
	return all[0], nil
}

// around is what is read about installs to say how they stand, by install; newest
// is by app.
type around struct {
	newest  map[string]ctldb.Release
	open    map[string]ctldb.OpenWorkflowsOfInstallsRow
	last    map[string]ctldb.LastWorkflowsOfInstallsRow
	offers  map[string]string // what takes it back after a failure
	runners map[string]ctldb.Runner
	untaken map[string]installs.Untaken
}

func (s *Server) statusOf(ctx context.Context, tx *database.Tx, rows []ctldb.ShowInstallsRow) ([]apigen.InstallStatus, error) {
	a, err := s.readAround(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	return convertAll(rows, func(r ctldb.ShowInstallsRow) (apigen.InstallStatus, error) { return s.statusView(r, a) })
}

func (s *Server) readAround(ctx context.Context, tx *database.Tx, rows []ctldb.ShowInstallsRow) (around, error) {
	a := around{
		newest: map[string]ctldb.Release{}, open: map[string]ctldb.OpenWorkflowsOfInstallsRow{},
		last: map[string]ctldb.LastWorkflowsOfInstallsRow{}, offers: map[string]string{}, runners: map[string]ctldb.Runner{},
	}
	list, ids, apps := []ctldb.Install{}, []string{}, map[string]bool{}
	for _, r := range rows {
		list, ids = append(list, r.Install), append(ids, r.Install.ID)
		apps[r.Install.AppID] = true
	}
	for app := range apps {
		newest, err := tx.FindReleaseOfApp(ctx, ctldb.FindReleaseOfAppParams{AppID: app})
		switch {
		case err == nil:
			a.newest[app] = newest
		case !errors.Is(err, fault.ErrNotFound):
			return a, err
		}
	}
	open, err := tx.OpenWorkflowsOfInstalls(ctx, ids)
	if err != nil {
		return a, err
	}
	for _, w := range open {
		a.open[w.Workflow.InstallID] = w
	}
	last, err := tx.LastWorkflowsOfInstalls(ctx, ids)
	if err != nil {
		return a, err
	}
	for _, w := range last {
		a.last[w.Workflow.InstallID] = w
		if _, a.offers[w.Workflow.InstallID], err = (rollback.Finder{Installs: s.Installs}).Offer(ctx, tx, w.Workflow); err != nil {
			return a, err
		}
	}
	runners, err := tx.RunnersOfInstalls(ctx, ids)
	if err != nil {
		return a, err
	}
	for _, r := range runners {
		a.runners[optional.Value(r.InstallID)] = r
	}
	a.untaken, err = s.Installs.Untaken(ctx, tx, list)
	return a, err
}

func (s *Server) statusView(r ctldb.ShowInstallsRow, a around) (apigen.InstallStatus, error) {
	in := r.Install
	view, err := installView(r)
	if err != nil {
		return apigen.InstallStatus{}, err
	}
	out := apigen.InstallStatus{Install: view, Pending: []apigen.InstallStatusPending{}}
	if newest, ok := a.newest[in.AppID]; ok {
		out.NewestRelease = &apigen.NumberRef{ID: newest.ID, Number: int(newest.Number)}
	}
	if w, ok := a.open[in.ID]; ok {
		brief := workflowBrief(w.Workflow, w.ReleaseNumber)
		out.Workflow = &brief
	}
	if w, ok := a.last[in.ID]; ok {
		brief := workflowBrief(w.Workflow, w.ReleaseNumber)
		brief.Step, brief.Superseded = optional.Of(w.FailedStep), w.Superseded
		brief.Rollback = optional.Of(a.offers[in.ID])
		brief.Error = optional.Of(w.StepError)
		if brief.Error == nil {
			brief.Error = w.Workflow.Error
		}
		out.Last = &brief
	}
	if runner, ok := a.runners[in.ID]; ok && runner.State == model.RunnerActive {
		brief := s.runnerBrief(runner)
		out.Runner = &brief
	}
	st := status.Of(a.facts(in))
	out.Standing = apigen.InstallStatusStanding(st.Standing)
	for _, p := range st.Pending {
		out.Pending = append(out.Pending, apigen.InstallStatusPending(p))
	}
	return out, nil
}

// facts is what the status of one of the installs is made from.
func (a around) facts(in ctldb.Install) status.Facts {
	f := status.Facts{
		State: in.State, Release: optional.Value(in.ReleaseID), Newest: a.newest[in.AppID].ID,
		Inputs: a.untaken[in.ID].Inputs, Toggles: a.untaken[in.ID].Toggles, Rehearsal: in.Rehearsal != nil,
	}
	if w, ok := a.open[in.ID]; ok && !w.Workflow.PlanOnly {
		f.Doing = w.Workflow.Kind
	}
	return f
}

func workflowBrief(w ctldb.Workflow, release *int32) apigen.WorkflowBrief {
	return apigen.WorkflowBrief{
		ID: w.ID, Kind: apigen.WorkflowKind(w.Kind), State: apigen.WorkflowState(w.State), Release: apiref.Number(w.ReleaseID, release),
		Wait: waiting(w.WaitReason, w.WaitOn, w.WaitDeadline, nil), Ended: (*apigen.Ended)(w.Ended), EndedBy: w.EndedBy, CreatedBy: w.CreatedBy, CreatedAt: w.CreatedAt, FinishedAt: w.FinishedAt,
	}
}

func (s *Server) runnerBrief(r ctldb.Runner) apigen.RunnerBrief {
	full := s.runnerView(r, "")
	return apigen.RunnerBrief{
		ID: full.ID, Online: full.Online, LastSeenAt: full.LastSeenAt, Switch: full.Switch, SwitchReason: full.SwitchReason,
		SwitchSince: full.SwitchSince, Problem: full.Problem,
	}
}
