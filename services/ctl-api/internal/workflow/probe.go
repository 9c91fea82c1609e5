package workflow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// Probes lists what a runner looks at by itself: the components of an install
// that are live in a cluster, each as its live release has it. app is that of
// the install's own release, which most components stand on.
func Probes(ctx context.Context, tx *store.Tx, install db.Install, app *appconfig.App) ([]jobspec.Probe, error) {
	resources, err := tx.ResourcesOfInstall(ctx, install.ID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	var probes []jobspec.Probe
	releases := map[string]release{}
	for _, res := range resources {
		if res.LiveReleaseID == nil || res.ComponentID == nil || !jobspec.Kind(res.Type).OnCluster() {
			continue
		}
		live, known := releases[*res.LiveReleaseID]
		if !known {
			if install.ReleaseID != nil && *res.LiveReleaseID == *install.ReleaseID {
				live.app = app
			}
			if err := live.read(ctx, tx, *res.LiveReleaseID); err != nil {
				return nil, err
			}
			releases[*res.LiveReleaseID] = live
		}
		revision, ok := live.revisions[*res.ComponentID]
		if !ok {
			continue
		}
		probe, err := probeOf(res, revision, live.app)
		if err != nil {
			return nil, err
		}
		probes = append(probes, probe)
	}
	return probes, nil
}

// release is what a release says of its components.
type release struct {
	app       *appconfig.App
	revisions map[string]json.RawMessage // by component id
}

// read fills in what is not known of a release yet.
func (r *release) read(ctx context.Context, tx *store.Tx, releaseID string) error {
	items, err := tx.ReleaseItemsOf(ctx, releaseID)
	if err != nil {
		return fmt.Errorf("read release items: %w", err)
	}
	r.revisions = make(map[string]json.RawMessage, len(items))
	for _, item := range items {
		r.revisions[item.ComponentID] = item.Spec
	}
	if r.app == nil {
		r.app, err = AppOfRelease(ctx, tx.Queries, releaseID)
	}
	return err
}

func probeOf(res db.Resource, revision json.RawMessage, app *appconfig.App) (jobspec.Probe, error) {
	var spec jobspec.Spec
	if _, err := (subject{resource: res, spec: revision}).fill(&spec, app); err != nil {
		return jobspec.Probe{}, err
	}
	probe := jobspec.Probe{
		Resource: jobspec.Resource{ID: res.ID, Kind: res.Kind, Name: res.Name},
		Kind:     spec.Kind, HelmChart: spec.HelmChart, KubernetesManifest: spec.KubernetesManifest,
	}
	if probe.HelmChart != nil {
		probe.HelmChart.Values, probe.HelmChart.ValuesFiles = nil, nil // what is deployed is in the cluster
	}
	return probe, nil
}
