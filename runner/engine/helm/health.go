package helm

import (
	"context"

	"helm.sh/helm/v3/pkg/release"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Health tells whether the objects of a release are ready. It changes nothing.
func Health(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	result := jobspec.Result{Tool: tool()}
	in, err := renderInputs(j, false)
	if err != nil {
		return result, err
	}
	cluster, err := kube.Connect(ctx, j)
	if err != nil {
		return result, err
	}
	found, err := history(cluster, in)
	if err != nil {
		return result, err
	}
	last := stand(found).Last
	if last == nil {
		return result, job.Failf("deploy it", "release %s is not in namespace %s", in.ReleaseName, in.Namespace)
	}
	refs, err := refsOf(cluster, last)
	if err != nil {
		return result, err
	}
	statuses, err := cluster.Ready(ctx, refs)
	if err != nil {
		return result, err
	}
	if last.Info.Status == release.StatusFailed {
		j.Logf("revision %d of release %s failed", last.Version, last.Name)
	}
	if why := kube.NotReady(statuses); why != "" {
		return result, job.Failf("look at its pods and events", "release %s: not ready: %s", last.Name, why)
	}
	j.Logf("all %d objects of release %s are ready", len(refs), last.Name)
	return result, nil
}
