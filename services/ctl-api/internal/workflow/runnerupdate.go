package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// updateTime bounds the fetching and verifying of a version of the runner. Its trial
// comes after that.
const updateTime = 15 * time.Minute

// mayUpdate refuses an update to a version that is not on offer, or does not fit the
// control plane. The runner decides by itself whether it may be one of its own.
func mayUpdate(ctx context.Context, tx *database.Tx, req Request) error {
	if req.RunnerVersion == "" {
		return fault.Newf(fault.ErrInvalid, "runner_update needs runner_version")
	}
	offered, err := tx.RunnerVersions(ctx, req.RunnerVersion)
	if err != nil {
		return fmt.Errorf("read runner versions: %w", err)
	}
	if len(offered) == 0 {
		return fault.With(fault.Newf(fault.ErrConflict, "runner version %q is not on offer", req.RunnerVersion), fault.Code("no_such_version"),
			fault.Remedy("see `berth runners versions list`, or offer it: `berth runners versions add ARCHIVE`"))
	}
	if err := version.Skew(req.ControlPlane, req.RunnerVersion); err != nil {
		return fault.With(fault.Newf(fault.ErrInvalid, "%v", err), fault.Code("version_skew"),
			fault.Remedy("choose a version that fits: `berth runners versions list`"))
	}
	return nil
}

// runnerSpec is a job that plans another version of the runner.
func runnerSpec(ctx context.Context, q *ctldb.Queries, s subject, insert *ctldb.InsertChangeParams) (jobspec.Spec, error) {
	params, err := paramsOf(s.workflow)
	if err != nil {
		return jobspec.Spec{}, err
	}
	offered, err := q.RunnerVersions(ctx, params.RunnerVersion)
	if err != nil {
		return jobspec.Spec{}, fmt.Errorf("read runner versions: %w", err)
	}
	if len(offered) == 0 {
		return jobspec.Spec{}, fault.Newf(fault.ErrConflict, "runner version %q is not on offer any more", params.RunnerVersion)
	}
	insert.Kind = model.ChangeRunnerUpdate
	spec := newSpec(s, jobspec.KindRunnerUpdate, jobspec.OperationPlan, updateTime)
	spec.RunnerUpdate = &jobspec.RunnerUpdate{Version: params.RunnerVersion, ControlPlane: params.ControlPlane}
	for _, o := range offered {
		spec.RunnerUpdate.Packages = append(spec.RunnerUpdate.Packages, jobspec.RunnerPackage{
			Platform: o.Platform, Artifact: jobspec.Artifact{Repository: o.Repository, Digest: o.Digest},
		})
	}
	return spec, nil
}
