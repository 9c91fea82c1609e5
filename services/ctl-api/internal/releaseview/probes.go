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
	resources, err := q.ResourcesOfInstall(ctx, install.ID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	var probes []jobspec.Probe
	releases := map[string]pinned{}
	for _, res := range resources {
		if res.LiveReleaseID == nil || res.ComponentID == nil || !jobspec.Kinds[jobspec.Kind(res.Type)].Probe() {
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
		revision, ok := live.revisions[*res.ComponentID]
		if !ok {
			continue
		}
		probe, err := orders.Probe(jobspec.Resource{ID: res.ID, Kind: string(res.Kind), Name: res.Name},
			orders.Revision{Sandbox: res.Kind == model.KindSandbox, Spec: revision, App: live.app})
		if err != nil {
			return nil, err
		}
		probes = append(probes, probe)
	}
	return probes, nil
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
