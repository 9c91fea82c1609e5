package releaseview

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Probes lists what a runner looks at by itself: the components of an install
// that are live in a cluster, each as its live release has it. app is that of
// the install's own release, which most components stand on.
func Probes(ctx context.Context, q *ctldb.Queries, install ctldb.Install, app *appconfig.App) ([]jobspec.Probe, error) {
	live, err := liveResources(ctx, q, install, app, jobspec.KindInfo.Probe)
	if err != nil {
		return nil, err
	}
	var probes []jobspec.Probe
	for _, l := range live {
		probe, err := orders.Probe(l.name(), l.revision)
		if err != nil {
			return nil, err
		}
		probes = append(probes, probe)
	}
	return probes, nil
}

// liveResource is a component that is live, or the sandbox, as its live release has it.
type liveResource struct {
	resource ctldb.Resource
	revision orders.Revision
}

func (l liveResource) name() jobspec.Resource {
	return jobspec.Resource{ID: l.resource.ID, Kind: string(l.resource.Kind), Name: l.resource.Name}
}

// liveResources are those of kinds that runners look at.
func liveResources(ctx context.Context, q *ctldb.Queries, install ctldb.Install, app *appconfig.App, looksAt func(jobspec.KindInfo) bool) ([]liveResource, error) {
	resources, err := q.ResourcesOfInstall(ctx, install.ID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	var all []liveResource
	releases := map[string]pinned{}
	for _, res := range resources {
		if res.LiveReleaseID == nil || res.ComponentID == nil || res.LiveChangeID == nil || !looksAt(jobspec.Kinds[jobspec.Kind(res.Type)]) {
			continue
		}
		live, known := releases[*res.LiveReleaseID]
		if !known {
			if install.ReleaseID != nil && *res.LiveReleaseID == *install.ReleaseID {
				live.app = app
			}
			if err := live.read(ctx, q, *res.LiveReleaseID); err != nil {
				return nil, err
			}
			releases[*res.LiveReleaseID] = live
		}
		if revision, ok := live.revisions[*res.ComponentID]; ok {
			all = append(all, liveResource{res, orders.Revision{Sandbox: res.Kind == model.KindSandbox, Spec: revision, App: live.app}})
		}
	}
	return all, nil
}

// pinned is what a release says of its components.
type pinned struct {
	app       *appconfig.App
	revisions map[string]json.RawMessage // by component id
}

// read fills in what is not known of a release yet.
func (p *pinned) read(ctx context.Context, q *ctldb.Queries, releaseID string) error {
	items, err := q.ReleaseItemsOf(ctx, releaseID)
	if err != nil {
		return fmt.Errorf("read release items: %w", err)
	}
	p.revisions = make(map[string]json.RawMessage, len(items))
	for _, item := range items {
		p.revisions[item.ComponentID] = item.Spec
	}
	if p.app == nil {
		p.app, err = App(ctx, q, releaseID)
	}
	return err
}
