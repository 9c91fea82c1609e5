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
	if in.StorageDriver == driverHeld {
		return inventoryHealth(ctx, j, cluster, in)
	}
	found, err := keeping{cluster: cluster, in: in, inventory: cluster.InventoryOf(j, in.Namespace)}.find(ctx)
	if err != nil {
		return result, err
	}
	last := stand(found.history).Last
	if last == nil {
		return result, job.Failf("deploy it", "release %s is not in namespace %s", in.ReleaseName, in.Namespace)
	}
	refs, err := refsOf(cluster, last)
	if err != nil {
		return result, err
	}
	if result.Findings, err = cluster.Health(ctx, refs); err != nil {
		return result, err
	}
	result.Certificates = cluster.Certificates(ctx, refs)
	if last.Info.Status == release.StatusFailed {
		j.Logf("revision %d of release %s failed", last.Version, last.Name)
	}
	if why := kube.Verdict(result.Findings); why != "" {
		return result, job.Failf("look at its pods and events", "release %s: not ready: %s", last.Name, why)
	}
	j.Logf("%s of release %s are ready%s", kube.Counted(len(refs), result.Findings), last.Name, kube.Untold(result.Findings))
	return result, nil
}

// inventoryHealth looks at the objects that the inventory in the cluster names: what the
// control plane keeps of a release is not asked for, so that health checks work without it.
func inventoryHealth(ctx context.Context, j *job.Job, cluster *kube.Cluster, in inputs) (jobspec.Result, error) {
	result := jobspec.Result{Tool: tool()}
	record, err := cluster.InventoryOf(j, in.Namespace).Load(ctx)
	if err != nil {
		return result, err
	}
	if !record.Exists {
		return result, job.Failf("deploy it", "release %s is not in namespace %s", in.ReleaseName, in.Namespace)
	}
	if result.Findings, err = cluster.Health(ctx, record.Objects); err != nil {
		return result, err
	}
	result.Certificates = cluster.Certificates(ctx, record.Objects)
	if why := kube.Verdict(result.Findings); why != "" {
		return result, job.Failf("look at its pods and events", "release %s: not ready: %s", in.ReleaseName, why)
	}
	j.Logf("%s of release %s are ready%s", kube.Counted(len(record.Objects), result.Findings), in.ReleaseName, kube.Untold(result.Findings))
	return result, nil
}
