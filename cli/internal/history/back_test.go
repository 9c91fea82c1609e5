package history_test

import (
	"testing"

	"github.com/berth-dev/berth/cli/internal/history"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestBack(t *testing.T) {
	t.Parallel()
	run := func(kind ctlapi.WorkflowKind, release int, state ctlapi.WorkflowState) ctlapi.Workflow {
		return ctlapi.Workflow{Kind: kind, State: state, Release: &ctlapi.NumberRef{ID: string(rune('a' + release)), Number: release}}
	}
	const good, bad = ctlapi.WorkflowStateSucceeded, ctlapi.WorkflowStateFailed
	deploy := func(release int, state ctlapi.WorkflowState) ctlapi.Workflow {
		return run(ctlapi.WorkflowKindDeploy, release, state)
	}
	first := run(ctlapi.WorkflowKindProvision, 1, good)
	planned := deploy(9, good)
	planned.PlanOnly = true
	for _, tc := range []struct {
		name      string
		workflows []ctlapi.Workflow // newest first
		from, to  int               // 0: none
	}{
		{"the release before", []ctlapi.Workflow{deploy(3, good), deploy(2, good), first}, 3, 2},
		{"a failed deploy goes back to what ran", []ctlapi.Workflow{deploy(3, bad), deploy(2, good), first}, 3, 2},
		{"not to what never ran", []ctlapi.Workflow{deploy(3, good), deploy(2, bad), first}, 3, 1},
		{"after a rollback, further back", []ctlapi.Workflow{deploy(2, good), deploy(3, good), deploy(2, good), first}, 2, 1},
		{"plans and actions do not count", []ctlapi.Workflow{planned, {Kind: ctlapi.WorkflowKindActionRun}, deploy(2, good), first}, 2, 1},
		{"the first release", []ctlapi.Workflow{first}, 1, 0},
		{"nothing yet", nil, 0, 0},
	} {
		from, to, found := history.Back(tc.workflows)
		if from.Number != tc.from || to.Number != tc.to || found != (tc.to != 0) {
			t.Errorf("%s: from %d to %d, %t; want from %d to %d", tc.name, from.Number, to.Number, found, tc.from, tc.to)
		}
	}
}
