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
// that are live in a cluster, each as its live release has it.
func Probes(ctx context.Context, tx *store.Tx, installID string) ([]jobspec.Probe, error) {
	resources, err := tx.ResourcesOfInstall(ctx, installID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	var probes []jobspec.Probe
	releases := map[string]release{} // most components stand on the same one
	for _, res := range resources {
		if res.LiveReleaseID == nil || res.ComponentID == nil || !jobspec.Kind(res.Type).OnCluster() {
			continue
		}
		live, known := releases[*res.LiveReleaseID]
		if !known {
			if live, err = readRelease(ctx, tx, *res.LiveReleaseID); err != nil {
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

func readRelease(ctx context.Context, tx *store.Tx, releaseID string) (release, error) {
	items, err := tx.ReleaseItemsOf(ctx, releaseID)
	if err != nil {
		return release{}, fmt.Errorf("read release items: %w", err)
	}
	r := release{revisions: make(map[string]json.RawMessage, len(items))}
	for _, item := range items {
		r.revisions[item.ComponentID] = item.Spec
	}
	r.app, err = AppOfRelease(ctx, tx.Queries, releaseID)
	return r, err
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
