package workflow

import (
	"context"
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
	for _, res := range resources {
		if res.LiveReleaseID == nil || res.ComponentID == nil || !jobspec.Kind(res.Type).OnCluster() {
			continue
		}
		items, err := tx.ReleaseItemsOf(ctx, *res.LiveReleaseID)
		if err != nil {
			return nil, fmt.Errorf("read release items: %w", err)
		}
		app, err := AppOfRelease(ctx, tx.Queries, *res.LiveReleaseID)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if item.ComponentID != *res.ComponentID {
				continue
			}
			probe, err := probeOf(res, item, app)
			if err != nil {
				return nil, err
			}
			probes = append(probes, probe)
		}
	}
	return probes, nil
}

func probeOf(res db.Resource, item db.ReleaseItemsOfRow, app *appconfig.App) (jobspec.Probe, error) {
	var spec jobspec.Spec
	if _, err := (subject{resource: res, spec: item.Spec}).fill(&spec, app); err != nil {
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
