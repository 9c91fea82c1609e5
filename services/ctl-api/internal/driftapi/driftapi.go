// Package driftapi answers how what is live differs from what was deployed, and has runners
// look.
package driftapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/fleetapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// maxObjects is how many objects of a component are listed when all components are.
const maxObjects = 25

// Drift are the routes. Read and Write are as in package eventapi.
type Drift struct {
	Read  func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	Write func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) (what string, err error)) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// GetDrift answers what the last looks found.
func (d *Drift) GetDrift(ctx context.Context, req apigen.GetDriftRequestObject) (apigen.GetDriftResponseObject, error) {
	only := optional.Value(req.Params.Component)
	out := apigen.GetDrift200JSONResponse{Components: []apigen.ComponentDrift{}}
	err := d.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		surveys, err := surveysOf(ctx, tx, install)
		if err != nil {
			return err
		}
		rows, err := tx.LooksOfInstall(ctx, install.ID)
		if err != nil {
			return err
		}
		open, err := tx.OpenDrift(ctx, install.ID)
		if err != nil {
			return err
		}
		for _, s := range surveys {
			if only != "" && s.Resource.Name != only {
				continue
			}
			view, err := componentDrift(s, rows, open)
			if err != nil {
				return err
			}
			if only == "" && view.Found != nil {
				shorten(view.Found)
			}
			out.Components = append(out.Components, view)
		}
		if only != "" && len(out.Components) == 0 {
			return noSuch(only)
		}
		return nil
	})
	return out, err
}

func noSuch(component string) error {
	return fault.With(fault.Newf(fault.ErrNotFound, "nothing called %q is live here of which a runner could see drift", component),
		fault.Remedy("runners look at the sandbox and at components that are live, and are charts, manifests or Terraform modules"))
}

// surveysOf are the live components of kinds that can drift.
func surveysOf(ctx context.Context, tx *database.Tx, install ctldb.Install) ([]releaseview.Survey, error) {
	if install.State != model.InstallLive || install.ReleaseID == nil {
		return nil, nil
	}
	app, err := releaseview.InForce(ctx, tx.Queries, install.ID, *install.ReleaseID)
	if err != nil {
		return nil, err
	}
	state, err := tx.GetStateTree(ctx, ctldb.GetStateTreeParams{InstallID: install.ID})
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return releaseview.Surveys(ctx, tx.Queries, install, app, state.Tree)
}

func componentDrift(s releaseview.Survey, looks []ctldb.LooksOfInstallRow, open []ctldb.DriftEpisode) (apigen.ComponentDrift, error) {
	out := apigen.ComponentDrift{
		ID: s.Resource.ID, Name: s.Resource.Name, Type: s.Resource.Type, State: apigen.ComponentDriftStateUnknown,
		Why: optional.Of(s.Why), ChangeID: s.Resource.LiveChangeID, AskedAt: s.Resource.DriftAskedAt,
	}
	if s.Look == nil {
		out.State = apigen.ComponentDriftStateNotLookedAt
		return out, nil
	}
	out.Schedule = &s.Look.Cron
	var last *ctldb.LooksOfInstallRow
	for i := range looks {
		row := &looks[i]
		if row.ResourceID != s.Resource.ID {
			continue
		}
		if last == nil || row.ScheduledAt.After(last.ScheduledAt) {
			last = row
		}
		if row.Error == "" {
			out.Found = &jobspec.Drift{}
			if err := json.Unmarshal(row.Report, out.Found); err != nil {
				return out, fmt.Errorf("read a look at %s: %w", s.Resource.Name, err)
			}
		}
	}
	if i := slices.IndexFunc(open, func(e ctldb.DriftEpisode) bool {
		return e.ResourceID == s.Resource.ID && e.ChangeID == s.Look.Drift.Change
	}); i >= 0 {
		e := open[i]
		out.Episode = &apigen.DriftEpisode{ID: e.ID, Class: apigen.DriftClass(e.Class), OpenedAt: e.OpenedAt, SeenAt: e.SeenAt}
	}
	if last != nil {
		out.BeganAt, out.LookedAt = &last.ScheduledAt, &last.LookedAt
	}
	switch {
	case last != nil && last.Error != "":
		out.State, out.Why = apigen.ComponentDriftStateFailed, &last.Error
	case out.Episode != nil:
		out.State = apigen.ComponentDriftStateDrifted
	case out.Found != nil && out.Found.Digest != "":
		out.State = apigen.ComponentDriftStateSuspected
	case out.Found != nil:
		out.State = apigen.ComponentDriftStateNone
	}
	return out, nil
}

// shorten keeps the worst objects.
func shorten(found *jobspec.Drift) {
	for _, object := range found.Objects[min(maxObjects, len(found.Objects)):] {
		found.More += len(object.Differences)
	}
	found.Objects = found.Objects[:min(maxObjects, len(found.Objects))]
}

// AskForDrift brings the next look of the runner forward.
func (d *Drift) AskForDrift(ctx context.Context, req apigen.AskForDriftRequestObject) (apigen.AskForDriftResponseObject, error) {
	now := time.Now()
	if d.Now != nil {
		now = d.Now()
	}
	only := optional.Value(req.Body.Component)
	// The runner takes it for a tick of its schedule, and those are in seconds: the next one,
	// which is after all that has happened.
	out := apigen.AskForDrift202JSONResponse{AskedAt: now.UTC().Truncate(time.Second).Add(time.Second), Components: []string{}}
	err := d.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return "", err
		}
		surveys, err := surveysOf(ctx, tx, install)
		if err != nil {
			return "", err
		}
		var ids []string
		for _, s := range surveys {
			if only != "" && s.Resource.Name != only {
				continue
			}
			if s.Look == nil && only != "" {
				return "", fault.Newf(fault.ErrConflict, "no runner looks at %q: %s", only, s.Why)
			}
			if s.Look != nil {
				ids, out.Components = append(ids, s.Resource.ID), append(out.Components, s.Resource.Name)
			}
		}
		switch {
		case only != "" && len(ids) == 0:
			return "", noSuch(only)
		case len(ids) == 0:
			return "", nil
		}
		if err := tx.AskForLook(ctx, ctldb.AskForLookParams{At: out.AskedAt, Ids: ids}); err != nil {
			return "", err
		}
		return "", tx.WakeInstall(ctx, install.ID)
	})
	return out, err
}

// ListDrift answers episodes in all installs that the caller may see.
func (d *Drift) ListDrift(ctx context.Context, req apigen.ListDriftRequestObject) (apigen.ListDriftResponseObject, error) {
	p := req.Params
	limit := paging.Limit(p.Limit)
	out := apigen.ListDrift200JSONResponse{Items: []apigen.DriftOfInstall{}}
	err := d.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		chosen, err := fleetapi.Choose(ctx, tx, auth.InstallsRead, fleetapi.Filter{App: p.App})
		if err != nil {
			return err
		}
		which := ctldb.DriftEpisodesParams{
			AppID: chosen.AppID, Class: string(optional.Value(p.Class)), ClosedToo: optional.Value(p.Closed),
			Everywhere: chosen.Everywhere, CustomerIds: chosen.CustomerIds, AppIds: chosen.AppIds, InstallIds: chosen.InstallIds,
			After: optional.Value(p.After), Most: int32(limit + 1),
		}
		if which.InstallID, err = fleetapi.OneInstall(ctx, tx, p.Install); err != nil {
			return err
		}
		rows, err := tx.DriftEpisodes(ctx, which)
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.DriftEpisodesRow) string { return r.ID })
		for _, r := range rows {
			item := apigen.DriftOfInstall{
				ID: r.ID, Install: apigen.Ref{ID: r.InstallID, Name: r.InstallName}, App: apigen.Ref{ID: r.AppID, Name: r.AppName},
				Customer: apigen.Ref{ID: r.CustomerID, Name: r.CustomerName}, Component: apigen.Ref{ID: r.ResourceID, Name: r.Name}, Type: r.Type,
				Class: apigen.DriftClass(r.Class), OpenedAt: r.OpenedAt, SeenAt: r.SeenAt, ClosedAt: r.ClosedAt,
			}
			if r.ClosedBy != "" {
				item.ClosedBy = new(apigen.DriftOfInstallClosedBy(r.ClosedBy))
			}
			out.Items = append(out.Items, item)
		}
		return nil
	})
	return out, err
}
