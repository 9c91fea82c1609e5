package fleetapi

import (
	"context"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListAllResources answers resources of all installs that the caller may see.
func (h *Fleet) ListAllResources(ctx context.Context, req apigen.ListAllResourcesRequestObject) (apigen.ListAllResourcesResponseObject, error) {
	p := req.Params
	limit := paging.Limit(p.Limit)
	after, err := afterResource(optional.Value(p.After))
	if err != nil {
		return nil, err
	}
	out := apigen.ListAllResources200JSONResponse{Items: []apigen.ResourceOfInstall{}}
	err = h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		chosen, err := Choose(ctx, tx, auth.InstallsRead, Filter{App: p.App})
		if err != nil {
			return err
		}
		which := ctldb.ResourcesOfInstallsParams{
			AppID: chosen.AppID, Kind: string(optional.Value(p.Kind)), Type: optional.Value(p.Type), Component: optional.Value(p.Component),
			Health: string(optional.Value(p.Health)), State: string(optional.Value(p.State)),
			Everywhere: chosen.Everywhere, CustomerIds: chosen.CustomerIds, AppIds: chosen.AppIds, InstallIds: chosen.InstallIds,
			AfterInstall: after[0], AfterKind: after[1], AfterName: after[2], Most: int32(limit + 1),
		}
		if which.InstallID, err = OneInstall(ctx, tx, p.Install); err != nil {
			return err
		}
		rows, err := tx.ResourcesOfInstalls(ctx, which)
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ResourcesOfInstallsRow) string {
			return strings.Join([]string{r.InstallName, string(r.Kind), r.Name}, "/")
		})
		for _, r := range rows {
			out.Items = append(out.Items, resourceOfInstall(r))
		}
		return nil
	})
	return out, err
}

// OneInstall is the id of the install that a list is narrowed to, "" for none. One that the
// caller may not see is not there.
func OneInstall(ctx context.Context, tx *database.Tx, ref *string) (string, error) {
	if optional.Value(ref) == "" {
		return "", nil
	}
	row, err := installs.Find(ctx, tx, *ref)
	if err != nil {
		return "", err
	}
	if !auth.PrincipalOf(ctx).Scope(auth.InstallsRead).Includes(auth.Location{CustomerID: row.CustomerID, AppID: row.AppID, InstallID: row.ID}) {
		return "", fault.Newf(fault.ErrNotFound, "there is no install %q", *ref)
	}
	return row.ID, nil
}

// afterResource reads a place between pages: install/kind/name. None of the
// three has a slash.
func afterResource(text string) (place [3]string, err error) {
	if text == "" {
		return place, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) != len(place) {
		return place, fault.Newf(fault.ErrInvalid, "after is not the next of a page")
	}
	copy(place[:], parts)
	return place, nil
}

func resourceOfInstall(r ctldb.ResourcesOfInstallsRow) apigen.ResourceOfInstall {
	return apigen.ResourceOfInstall{
		ID: r.ID, Install: apigen.Ref{ID: r.InstallID, Name: r.InstallName}, App: apigen.Ref{ID: r.AppID, Name: r.AppName},
		Customer: apigen.Ref{ID: r.CustomerID, Name: r.CustomerName}, Kind: apigen.ResourceOfInstallKind(r.Kind), Name: r.Name, Type: r.Type,
		State: apigen.StateOfResource(r.State), Health: apigen.HealthVerdict(r.Health), HealthSince: r.HealthSince, Drift: apigen.ResourceOfInstallDrift(r.Drift),
		LiveRelease: apiref.Number(r.LiveReleaseID, r.LiveReleaseNumber), LiveChangeID: r.LiveChangeID, LockedBy: r.LockedBy, UpdatedAt: r.UpdatedAt,
	}
}

// ListRunnerJobs answers the jobs of a runner, newest first.
func (h *Fleet) ListRunnerJobs(ctx context.Context, req apigen.ListRunnerJobsRequestObject) (apigen.ListRunnerJobsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	out := apigen.ListRunnerJobs200JSONResponse{Items: []apigen.RunnerJob{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := tx.ShowRunners(ctx, ctldb.ShowRunnersParams{ID: &req.Runner, Most: 1})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fault.Newf(fault.ErrNotFound, "there is no runner %q", req.Runner)
		}
		rows, err := tx.JobsOfRunner(ctx, ctldb.JobsOfRunnerParams{
			RunnerID: req.Runner, State: string(optional.Value(req.Params.State)), After: optional.Value(req.Params.After), Most: int32(limit + 1),
		})
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.JobsOfRunnerRow) string { return r.ID })
		for _, r := range rows {
			out.Items = append(out.Items, runnerJob(r))
		}
		return nil
	})
	return out, err
}

func runnerJob(r ctldb.JobsOfRunnerRow) apigen.RunnerJob {
	out := apigen.RunnerJob{
		ID: r.ID, Kind: r.Kind, Operation: r.Operation, Mutates: r.Mutates, State: apigen.JobState(r.State), Attempt: int(r.Attempt),
		Resource: apiref.Resource(r.ResourceID, r.ResourceKind, r.ResourceName), WorkflowID: r.WorkflowID, StepID: r.StepID, ChangeID: r.ChangeID,
		ActionRunID: r.ActionRunID, BuildID: r.BuildID, StreamID: r.StreamID, Error: r.Error,
		QueuedAt: r.QueuedAt, StartedAt: r.LeasedAt, FinishedAt: r.FinishedAt,
	}
	if r.InstallID != nil {
		out.Install = &apigen.Ref{ID: *r.InstallID, Name: r.InstallName}
	}
	return out
}
