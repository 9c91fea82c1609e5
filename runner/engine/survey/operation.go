package survey

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// maxLines is how many objects the log of a look names.
const maxLines = 50

// Operation is the look for drift of a kind of component, whose engine says which objects
// there are. Drift is no failure: one that found some has succeeded.
func Operation(objects func(context.Context, *job.Job, *kube.Cluster) (Objects, error)) func(context.Context, *job.Job) (jobspec.Result, error) {
	return func(ctx context.Context, j *job.Job) (jobspec.Result, error) {
		connected, err := kube.Connect(ctx, j)
		if err != nil {
			return jobspec.Result{}, err
		}
		c, err := connected.ReadOnly()
		if err != nil {
			return jobspec.Result{}, err
		}
		found, err := objects(ctx, j, c)
		if err != nil {
			return jobspec.Result{}, err
		}
		report, err := Look(ctx, c, found, drift.Secrets{Hide: j.Spec.Drift.NoValues, Key: j.Spec.DigestKey})
		if err != nil {
			return jobspec.Result{}, err
		}
		report = report.Accept(drift.RulesOf(j), time.Now().UTC())
		for _, line := range report.Lines(maxLines) {
			j.Logf("%s", line)
		}
		result := report.Result(j.Spec.Drift.Change)
		if result.Class == "" {
			j.Logf("none of the %d objects of %s has drifted", result.Looked, j.Subject())
		}
		return jobspec.Result{Drift: &result}, nil
	}
}
