package follow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestQuestionsOfAWorkflow(t *testing.T) {
	t.Parallel()
	step := func(id string, kind ctlapi.ChangeKind, state ctlapi.StepState, change ctlapi.ChangeState) ctlapi.Step {
		return ctlapi.Step{Name: id, State: state, Change: &ctlapi.ChangeSummary{ID: id, Kind: kind, State: change}}
	}
	release := step("release", ctlapi.ChangeKindAccept, ctlapi.StepStateWaiting, ctlapi.ChangeStateProposed)
	one := step("one", ctlapi.ChangeKindDeploy, ctlapi.StepStateWaiting, ctlapi.ChangeStateProposed)
	two := step("two", ctlapi.ChangeKindDeploy, ctlapi.StepStateWaiting, ctlapi.ChangeStateProposed)
	planned := step("one", ctlapi.ChangeKindDeploy, ctlapi.StepStateRunning, ctlapi.ChangeStatePreparing)
	held := step("one", ctlapi.ChangeKindDeploy, ctlapi.StepStateWaiting, ctlapi.ChangeStateApproved)
	held.Wait = &ctlapi.Waiting{Reason: "release"}
	for _, tc := range []struct {
		name  string
		steps []ctlapi.Step
		want  [][]string
		only  bool // only decisions help
	}{
		{"a plan alone", []ctlapi.Step{one}, [][]string{{"one"}}, true},
		{"the release goes with the first plan", []ctlapi.Step{release, one, two}, [][]string{{"one", "release"}, {"two"}}, true},
		{"it waits for what is being planned", []ctlapi.Step{release, planned}, nil, false},
		{"alone when nothing else comes", []ctlapi.Step{release}, [][]string{{"release"}}, true},
		{"alone when the rest waits for it", []ctlapi.Step{release, held}, [][]string{{"release"}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := ctlapi.Workflow{State: ctlapi.WorkflowStateWaiting, Steps: tc.steps}
			var got [][]string
			for _, q := range follow.Questions(w) {
				var ids []string
				for _, c := range q {
					ids = append(ids, c.ID)
				}
				got = append(got, ids)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
			if only := follow.OnlyDecisionsHelp(w); only != tc.only {
				t.Errorf("only decisions help: %v, want %v", only, tc.only)
			}
		})
	}
}
