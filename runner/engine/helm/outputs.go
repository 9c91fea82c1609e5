package helm

import (
	"context"

	"helm.sh/helm/v3/pkg/release"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// writeOutputs writes what other components may want to know of a release. Its
// manifest is sensitive, since values reach it.
func writeOutputs(ctx context.Context, j *job.Job, cluster *kube.Cluster, r *release.Release) (jobspec.Outputs, error) {
	refs, err := refsOf(cluster, r)
	if err != nil {
		return nil, err
	}
	outputs, err := cluster.Outputs(ctx, refs)
	if err != nil {
		return nil, err
	}
	about := map[string]any{"name": r.Name, "namespace": r.Namespace, "revision": r.Version}
	if r.Chart != nil && r.Chart.Metadata != nil {
		m := r.Chart.Metadata
		about["chart"], about["version"], about["app_version"] = m.Name, m.Version, m.AppVersion
	}
	for name, v := range map[string]any{"release": about, "manifest": r.Manifest} {
		data, err := job.Marshal(v)
		if err != nil {
			return nil, err
		}
		outputs[name] = jobspec.Output{Value: data, Sensitive: name == "manifest"}
	}
	return outputs, j.LeaveJSON(ctx, "outputs.json", outputs)
}

// refsOf are the objects of a release, in the order of its manifest.
func refsOf(cluster *kube.Cluster, r *release.Release) ([]kube.Ref, error) {
	scope := scoped{cluster: cluster}
	past, order, err := scope.past([]*release.Release{r})
	if err != nil {
		return nil, err
	}
	refs := make([]kube.Ref, len(order))
	for i, key := range order {
		refs[i] = kube.RefOf(past[key][0])
	}
	return refs, nil
}
