package manifest

import (
	"context"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Health asks once whether the objects of the component are ready. It changes
// nothing; a failure says which are not, and why.
func Health(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	c, err := kube.Connect(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	namespace, err := renderNamespace(j)
	if err != nil {
		return jobspec.Result{}, err
	}
	record, err := c.InventoryOf(j, namespace).Load(ctx)
	if err != nil {
		return jobspec.Result{}, err
	}
	if !record.Exists {
		return jobspec.Result{}, job.Failf("deploy it", "%s has no objects in namespace %s", j.Subject(), namespace)
	}
	findings, err := c.Health(ctx, record.Objects)
	if err != nil {
		return jobspec.Result{}, err
	}
	result := jobspec.Result{Findings: findings, Certificates: c.Certificates(ctx, record.Objects)}
	if why := kube.Verdict(findings); why != "" {
		return result, job.Failf("", "not ready: %s", why)
	}
	j.Logf("%s are ready%s", kube.Counted(len(record.Objects), findings), kube.Untold(findings))
	return result, nil
}
