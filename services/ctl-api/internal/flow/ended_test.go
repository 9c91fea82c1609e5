package flow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

// A workflow that ended because somebody said no, or nobody said anything, did not
// fail, unless something else in it did.
func TestWorkflowThatWasDenied(t *testing.T) {
	t.Parallel()
	ended := func(name string, state model.ChangeState, by, why string) flow.Step {
		return flow.Step{ID: name, Name: name, Kind: flow.StepDeploy, State: model.StepFailed, Change: &flow.Change{ID: "chg", State: state, DeniedBy: by, Error: why}}
	}
	denied := ended("api", model.ChangeDenied, "ada", "denied by ada: not today")
	expired := ended("db", model.ChangeDenied, "", "nobody decided in time")
	superseded := ended("web", model.ChangeSuperseded, "", "superseded")
	failed := ended("web", model.ChangeFailed, "", "exit status 1")
	for _, tc := range []struct {
		name  string
		steps []flow.Step
		want  flow.Decision
	}{
		{"denied", []flow.Step{denied}, flow.Decision{Error: "api was not done: denied by ada: not today", Ended: model.EndedDenied, EndedBy: "ada"}},
		{"expired", []flow.Step{expired}, flow.Decision{Error: "db was not done: nobody decided in time", Ended: model.EndedExpired}},
		{"a person's word counts more than time", []flow.Step{expired, denied}, flow.Decision{Error: "api was not done: denied by ada: not today", Ended: model.EndedDenied, EndedBy: "ada"}},
		{"another step gave way", []flow.Step{superseded, denied}, flow.Decision{Error: "api was not done: denied by ada: not today", Ended: model.EndedDenied, EndedBy: "ada"}},
		{"another step failed", []flow.Step{denied, failed}, flow.Decision{Error: "steps api, web failed"}},
		{"a step without a change failed", []flow.Step{denied, {ID: "stack", Name: "stack", State: model.StepFailed}}, flow.Decision{Error: "steps api, stack failed"}},
		{"all gave way", []flow.Step{superseded}, flow.Decision{Error: "step web failed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.want.Do, tc.want.WorkflowState = flow.DoFinishWorkflow, model.WorkflowFailed
			got := flow.Next(flow.State{WorkflowState: model.WorkflowRunning, Steps: tc.steps})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSkippable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		of     flow.Kind
		change model.ChangeKind
		then   model.DeniedThen
		want   bool
	}{
		{flow.KindDeploy, model.ChangeDeploy, model.ThenSkip, true},
		{flow.KindDeploy, model.ChangeScript, model.ThenSkipDependents, true},
		{flow.KindDeploy, model.ChangeAccept, "", true},
		{flow.KindDeploy, model.ChangeAccept, model.ThenSkip, false},
		{flow.KindDeprovision, model.ChangeForget, model.ThenSkipDependents, false},
		{flow.KindDeprovision, model.ChangeTeardown, model.ThenSkip, false},
		{flow.KindDeprovision, model.ChangeTeardown, model.ThenSkipDependents, true},
		{flow.KindTeardownAll, model.ChangeTeardown, model.ThenSkip, false},
		{flow.KindTeardown, model.ChangeTeardown, model.ThenSkip, true},
		{flow.KindDeprovision, model.ChangeTeardown, "", true},
	} {
		if err := flow.Skippable(tc.of, tc.change, tc.then); (err == nil) != tc.want {
			t.Errorf("%s of %s with %q: %v", tc.change, tc.of, tc.then, err)
		}
	}
}
