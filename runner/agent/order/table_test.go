package order_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/order"
)

// The runner has a rule for each operation of each kind, and for no other work;
// by order only an apply changes something, and only what its own plan pinned.
func TestRules(t *testing.T) {
	t.Parallel()
	operations := []jobspec.Operation{jobspec.OperationBuild, jobspec.OperationPlan, jobspec.OperationApply, jobspec.OperationRun, jobspec.OperationTick, jobspec.OperationDrift, "drop"}
	for kind, info := range jobspec.Kinds {
		for _, operation := range operations {
			r, known := order.RuleOf(kind, operation)
			if known != info.Has(operation) {
				t.Errorf("%s of %s: rule %t, in jobspec.Kinds %t", operation, kind, known, info.Has(operation))
			}
			if !known {
				continue
			}
			apply, starts := operation == jobspec.OperationApply, capsule.StartsOfReading
			if apply {
				starts = capsule.StartsOfMutation
			}
			tick := operation == jobspec.OperationTick
			// A look at a module works with what the plan of the live change rendered.
			drift := operation == jobspec.OperationDrift
			own := tick || drift || kind == jobspec.KindProbes
			if own {
				starts = 0 // no order starts it
			}
			want := order.Rule{
				Mutates: apply || tick, Own: own, Pinned: apply, Starts: starts,
				Artifact: (info.Component || info.Resource) && (apply || operation == jobspec.OperationPlan || drift && info.HasState),
				Leaves:   !info.ByAgent && (operation == jobspec.OperationPlan || operation == jobspec.OperationRun || tick || drift && !info.HasState),
				Script:   kind == jobspec.KindAction && operation != jobspec.OperationPlan,
			}
			if r != want {
				t.Errorf("%s of %s: rule %+v, want %+v", operation, kind, r, want)
			}
		}
	}
	if _, known := order.RuleOf("no such kind", jobspec.OperationPlan); known {
		t.Error("there is a rule for a kind that is not known")
	}
}
