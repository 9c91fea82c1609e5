package orders

import (
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Probe says what a runner looks at of a component that is live in a cluster.
func Probe(resource jobspec.Resource, live Revision) (jobspec.Probe, error) {
	var spec jobspec.Spec
	if _, err := live.Fill(&spec); err != nil {
		return jobspec.Probe{}, err
	}
	probe := jobspec.Probe{
		Resource: resource, Kind: spec.Kind, HelmChart: spec.HelmChart, KubernetesManifest: spec.KubernetesManifest,
	}
	if probe.HelmChart != nil {
		probe.HelmChart.Values, probe.HelmChart.ValuesFiles = nil, nil // what is deployed is in the cluster
	}
	return probe, nil
}
