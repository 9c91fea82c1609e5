package build

import (
	"context"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Scripts keeps a directory of a repository as it is. Steps of several actions may
// run in it, so which of its files they start shows when they run.
func Scripts(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	tree, err := directory(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	tree.log(j)
	j.Logf("scripts of %d files, %d bytes", tree.files, tree.bytes)
	return jobspec.Result{}, nil
}
