package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListResources answers the stack, the sandbox and the components.
func (s *Server) ListResources(ctx context.Context, req apigen.ListResourcesRequestObject) (apigen.ListResourcesResponseObject, error) {
	var out apigen.ListResources200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, off, err := resourcesOf(ctx, tx, req.Install, "")
		if err != nil {
			return err
		}
		out.Items = convert(rows, off.view)
		return addQueue(ctx, tx, out.Items, rows)
	})
	return out, err
}

// GetResource answers one resource by id or name.
func (s *Server) GetResource(ctx context.Context, req apigen.GetResourceRequestObject) (apigen.GetResourceResponseObject, error) {
	var out apigen.GetResource200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, off, err := resourcesOf(ctx, tx, req.Install, req.Resource)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.Newf(fault.ErrNotFound, "install %s has no resource %q", req.Install, req.Resource)
		}
		view := convert(rows[:1], off.view)
		err = addQueue(ctx, tx, view, rows)
		out = apigen.GetResource200JSONResponse(view[0])
		return err
	})
	return out, err
}

// switchedOff are the components that an install has switched off, by name.
type switchedOff map[string]bool

func resourcesOf(ctx context.Context, tx *database.Tx, install, ref string) ([]ctldb.ShowResourcesRow, switchedOff, error) {
	found, err := installs.Find(ctx, tx, install)
	if err != nil {
		return nil, nil, err
	}
	off := switchedOff{}
	if found.ReleaseID != nil {
		app, err := releaseview.App(ctx, tx.Queries, *found.ReleaseID)
		if err != nil {
			return nil, nil, err
		}
		toggles := map[string]bool{}
		if err := decode("toggles", found.Toggles, &toggles); err != nil {
			return nil, nil, err
		}
		for i := range app.Components {
			off[app.Components[i].Name] = !app.Components[i].EnabledIn(toggles)
		}
	}
	rows, err := tx.ShowResources(ctx, ctldb.ShowResourcesParams{InstallID: found.ID, Ref: ref})
	return rows, off, err
}

func (off switchedOff) view(r ctldb.ShowResourcesRow) apigen.Resource {
	view := resourceView(r)
	addRehearsedHow(&view, r.Rehearsed)
	if r.KubernetesContext != appconfig.SandboxContext {
		view.KubernetesContext = r.KubernetesContext
	}
	if r.Orphaned && r.Resource.State == model.ResourceLive {
		view.State = apigen.ResourceStateOrphaned
	}
	view.SwitchedOff = r.Resource.Kind == model.KindComponent && off[r.Resource.Name]
	return view
}

func resourceView(r ctldb.ShowResourcesRow) apigen.Resource {
	res := r.Resource
	view := apigen.Resource{
		ID: res.ID, Kind: apigen.ResourceKind(res.Kind), Name: res.Name, Type: res.Type, State: apigen.ResourceState(res.State),
		Health: apigen.HealthVerdict(res.Health), HealthSince: res.HealthSince, Drift: apigen.ResourceDrift(res.Drift), Fence: res.Fence,
		LockedBy: res.LockedBy, LiveRelease: apiref.Number(res.LiveReleaseID, r.LiveReleaseNumber),
		LiveArtifactDigest: res.LiveArtifactDigest, LiveChangeID: res.LiveChangeID, Outputs: redacted(res.Outputs),
		Version: res.Version, UpdatedAt: res.UpdatedAt,
	}
	if res.LiveInputsVersion != nil {
		n := int(*res.LiveInputsVersion)
		view.LiveInputsVersion = &n
	}
	return view
}

// redacted shows "(sealed)" in the place of what only the install can open.
func redacted(raw json.RawMessage) json.RawMessage {
	out, err := json.Marshal(seal.RedactLeaves(raw))
	if err != nil {
		return json.RawMessage(fmt.Sprintf("%q", seal.Redacted))
	}
	return out
}
