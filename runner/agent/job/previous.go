package job

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/order"
)

// bringPrevious gives a plan what the change before it pinned, when nobody knows
// how far that one came. Without it the plan is one like any other.
func (j *job) bringPrevious(ctx context.Context) error {
	if j.spec.Operation != jobspec.OperationPlan || j.spec.Continues == "" {
		return nil
	}
	var before order.Record
	found, err := datadir.ReadJSON(j.deps.Dir.Plan(j.spec.Continues), &before)
	if err != nil {
		return fmt.Errorf("record of the change before: %w", err)
	}
	// What another resource pinned is none of this engine's business.
	if !found || j.spec.Resource == nil || before.Effect.ResourceID != j.spec.Resource.ID {
		j.remark("what change " + j.spec.Continues + " had planned is not here any more; this plan looks at what is there as at any other")
		return nil
	}
	sealed := j.pinned(ctx, &before)
	if sealed == nil {
		return nil
	}
	return j.unpin(ctx, j.spec.Continues, sealed, j.dir.In("previous"))
}
