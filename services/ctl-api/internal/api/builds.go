package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apps"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/policyapi"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListBuilds answers builds, newest first.
func (s *Server) ListBuilds(ctx context.Context, req apigen.ListBuildsRequestObject) (apigen.ListBuildsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListBuilds200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		app, err := appID(ctx, tx, req.Params.App)
		if err != nil {
			return err
		}
		filter := ctldb.ShowBuildsParams{AppID: app, State: string(optional.Value(req.Params.State)), Before: optional.Value(req.Params.After), Most: int32(limit + 1)}
		if config := optional.Value(req.Params.Config); config != "" {
			found, err := oneConfig(ctx, tx, config)
			if err != nil {
				return err
			}
			filter.ConfigID = found.ID
		}
		rows, err := tx.ShowBuilds(ctx, filter)
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowBuildsRow) string { return r.Build.ID })
		out.Items, err = s.buildViews(ctx, tx, rows)
		return err
	})
	return out, err
}

// CreateBuilds builds components again.
func (s *Server) CreateBuilds(ctx context.Context, req apigen.CreateBuildsRequestObject) (apigen.CreateBuildsResponseObject, error) {
	out := apigen.CreateBuilds202JSONResponse{Items: []apigen.Build{}}
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		app, ids, err := apps.Rebuild(ctx, tx, apps.RebuildRequest{
			App: req.Body.App, Components: req.Body.Components, Actor: auth.PrincipalOf(ctx).AccountName,
		})
		if err != nil {
			return "", err
		}
		out.Items = out.Items[:0]
		for _, id := range ids {
			build, err := s.oneBuild(ctx, tx, id)
			if err != nil {
				return "", err
			}
			out.Items = append(out.Items, build)
		}
		tx.NotifyAfterCommit(model.ChannelBuild, app.ID)
		return fmt.Sprintf("build %d components of app %s again", len(ids), app.Name), nil
	})
	return out, err
}

// GetBuild answers a build, held back until its state changes when asked to.
func (s *Server) GetBuild(ctx context.Context, req apigen.GetBuildRequestObject) (apigen.GetBuildResponseObject, error) {
	var view apigen.Build
	look := func(ctx context.Context) (bool, error) {
		err := s.read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
			view, err = s.oneBuild(ctx, tx, req.Build)
			return err
		})
		return view.Version > optional.Value(req.Params.AfterVersion), err
	}
	err := s.wait(ctx, req.Params.Wait, wakeUps{model.ChannelBuild, func() string { return view.App.ID }}, look)
	return apigen.GetBuild200JSONResponse(view), err
}

// CancelBuild asks builder to stop a build.
func (s *Server) CancelBuild(ctx context.Context, req apigen.CancelBuildRequestObject) (apigen.CancelBuildResponseObject, error) {
	var out apigen.CancelBuild202JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		if _, err := s.oneBuild(ctx, tx, req.Build); err != nil {
			return "", err
		}
		if err := tx.RequestBuildCancel(ctx, req.Build); err != nil {
			return "", err
		}
		view, err := s.oneBuild(ctx, tx, req.Build)
		if err != nil {
			return "", err
		}
		out = apigen.CancelBuild202JSONResponse(view)
		return "cancel build " + view.ID, tx.WakeBuild(ctx, view.ID)
	})
	return out, err
}

func (s *Server) oneBuild(ctx context.Context, tx *database.Tx, id string) (apigen.Build, error) {
	rows, err := tx.ShowBuilds(ctx, ctldb.ShowBuildsParams{ID: id, Most: 1})
	if err != nil {
		return apigen.Build{}, err
	}
	if id == "" || len(rows) == 0 {
		return apigen.Build{}, fault.Newf(fault.ErrNotFound, "there is no build %q", id)
	}
	views, err := s.buildViews(ctx, tx, rows)
	if err != nil {
		return apigen.Build{}, err
	}
	return views[0], nil
}

func (s *Server) buildViews(ctx context.Context, tx *database.Tx, rows []ctldb.ShowBuildsRow) ([]apigen.Build, error) {
	jobs, err := tx.ShowJobsOfBuilds(ctx, convert(rows, func(r ctldb.ShowBuildsRow) string { return r.Build.ID }))
	if err != nil {
		return nil, err
	}
	byBuild := map[string]*apigen.Job{}
	silent := map[string]time.Duration{}
	for _, j := range jobs {
		silent[optional.Value(j.BuildID)] = s.silence(j)
		byBuild[optional.Value(j.BuildID)] = &apigen.Job{
			ID: j.ID, Operation: j.Operation, State: apigen.JobState(j.State), Attempt: int(j.Attempt), StreamIds: j.StreamIds,
			Error: j.Error, QueuedAt: j.QueuedAt, StartedAt: j.LeasedAt, FinishedAt: j.FinishedAt,
		}
	}
	return convertAll(rows, func(r ctldb.ShowBuildsRow) (apigen.Build, error) {
		view, err := buildView(r)
		view.Job = byBuild[r.Build.ID]
		view.Wait = buildWait(view, silent[r.Build.ID])
		return view, err
	})
}

func buildView(r ctldb.ShowBuildsRow) (apigen.Build, error) {
	b := r.Build
	source, err := sourceView(b)
	view := apigen.Build{
		ID: b.ID, App: ref(b.AppID, r.AppName), Component: ref(b.ComponentID, r.ComponentName), State: apigen.BuildState(b.State),
		Version: buildVersion(b.State), Reason: b.Reason, Source: source, ReusedFrom: b.ReusedFrom, Error: b.Error,
		RequestedBy: b.RequestedBy, CreatedAt: b.CreatedAt, StartedAt: b.StartedAt, FinishedAt: b.FinishedAt, CancelRequestedAt: b.CancelRequestedAt,
	}
	if b.ArtifactDigest != nil {
		view.Artifact = &apigen.Artifact{Repository: optional.Value(b.ArtifactRepository), Digest: *b.ArtifactDigest, SizeBytes: b.ArtifactSizeBytes}
	}
	if len(b.Provenance) > 0 {
		view.Provenance = &b.Provenance
		var said struct {
			Attestations []apigen.Attestation `json:"attestations"`
			SignedBy     string               `json:"signed_by"`
			Judgement    *policy.Judgement    `json:"judgement"`
		}
		if wrong := json.Unmarshal(b.Provenance, &said); wrong != nil {
			err = errors.Join(err, fmt.Errorf("provenance of build %s: %w", b.ID, wrong))
		}
		view.Attestations, view.AttestedBy = said.Attestations, said.SignedBy
		if said.Judgement != nil {
			view.Policies = policyapi.OfBuild(*said.Judgement)
		}
	}
	return view, err
}

// silence is for how long a job's Build Runner was not heard of: since it was
// made when it never was.
func (s *Server) silence(j ctldb.ShowJobsOfBuildsRow) time.Duration {
	since := j.RunnerSince
	if j.RunnerSeenAt != nil {
		since = *j.RunnerSeenAt
	}
	return s.now().Sub(since)
}

// buildWait says why nobody works on a build that is not finished. silence is
// that of the Build Runner.
func buildWait(b apigen.Build, silence time.Duration) *apigen.BuildWait {
	switch {
	case b.FinishedAt != nil:
		return nil
	case b.Job == nil && b.State == apigen.BuildStateQueued:
		return &apigen.BuildWait{Reason: "builder has not taken it up yet", On: "builder"}
	case b.Job != nil && b.Job.State == apigen.JobStateQueued && silence >= onlineWithin:
		return &apigen.BuildWait{
			Reason: fmt.Sprintf("the Build Runner has been silent for %s; builder keeps it running: check that builder is up, and read its log", silence.Round(time.Second)),
			On:     "builder",
		}
	case b.Job != nil && b.Job.State == apigen.JobStateQueued:
		return &apigen.BuildWait{Reason: "it is queued for the Build Runner", On: "the Build Runner"}
	}
	return nil
}

func sourceView(b ctldb.Build) (apigen.BuildSource, error) {
	view, err := buildSource(b.Source)
	view.Commit = b.SourceCommit
	return view, err
}

func buildSource(raw json.RawMessage) (apigen.BuildSource, error) {
	var src apps.Source
	err := decode("source of a build", raw, &src)
	return apigen.BuildSource{
		Kind: apigen.BuildSourceKind(src.Kind), Digest: optional.Of(src.Digest), Repo: optional.Of(src.Repo), Ref: optional.Of(src.Ref),
		Directory: optional.Of(src.Directory),
	}, err
}

// buildVersion rises with the states that a build goes through.
func buildVersion(state model.BuildState) int64 {
	switch state {
	case model.BuildQueued:
		return 1
	case model.BuildRunning:
		return 2
	}
	return 3
}

// beforeNumber reads the `after` of a list that goes down by number.
func beforeNumber(after *string) (int32, error) {
	if optional.Value(after) == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(*after, 10, 32)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.ErrInvalid, "`after` is not a valid page cursor")
	}
	return int32(n), nil
}
