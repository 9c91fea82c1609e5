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
	if trim := types[spec.Kind].probe; trim != nil {
		trim(&spec.Work)
	}
	return jobspec.Probe{Resource: resource, Kind: spec.Kind, Work: spec.Work}, nil
}
