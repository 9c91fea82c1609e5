package flow_test

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestSecretsAreWaitedFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	waiting := flow.Step{ID: "s", Name: "secrets", Kind: flow.StepSecrets, State: model.StepWaiting, WaitReason: model.WaitSecret, WaitOn: "customer", WaitDeadline: now.Add(time.Hour)}
	late := waiting
	late.WaitDeadline = now
	running := flow.Step{ID: "s", Name: "secrets", Kind: flow.StepSecrets, State: model.StepRunning}
	tests := []struct {
		name    string
		step    flow.Step
		missing []string
		want    flow.Do
	}{
		{"all are there", running, nil, flow.DoSucceedStep},
		{"one is missing", running, []string{"token"}, flow.DoWaitStep},
		{"still missing", waiting, []string{"token"}, flow.DoNothing},
		{"it came", waiting, nil, flow.DoSucceedStep},
		{"it did not come in time", late, []string{"token"}, flow.DoFailStep},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := flow.Next(flow.State{Now: now, WorkflowState: model.WorkflowRunning, Steps: []flow.Step{tt.step}, MissingSecrets: tt.missing})
			if d.Do != tt.want {
				t.Fatalf("got %+v, want %s", d, tt.want)
			}
			if d.Do == flow.DoWaitStep && (d.Wait.Reason != model.WaitSecret || d.Wait.On != "customer" || !d.Wait.Deadline.After(now)) {
				t.Errorf("waits for %+v", d.Wait)
			}
		})
	}
}

func TestEverythingNeedsTheSecrets(t *testing.T) {
	t.Parallel()
	for _, kind := range []flow.Kind{flow.KindProvision, flow.KindReprovision, flow.KindReprovisionSandbox, flow.KindDeploy, flow.KindInputUpdate} {
		in := flow.PlanInput{
			Kind: kind, HasSandbox: true, Secrets: true, SandboxRefers: []string{"size"}, Selected: []string{"sandbox", "api"},
			Components: []flow.PlanComponent{{Name: "api"}},
		}
		if kind != flow.KindDeploy {
			in.Selected = nil
		}
		steps, err := flow.Plan(in)
		if err != nil {
			t.Fatal(kind, err)
		}
		needs := map[string][]string{}
		for _, s := range steps {
			needs[s.Name] = s.Needs
		}
		if !slices.Contains(needs["sandbox"], "secrets") || !slices.Equal(needs["release"], needs["secrets"]) {
			t.Errorf("%s: the sandbox has to come after the secrets, which are next to the release: %v", kind, needs)
		}
		in.Secrets = false
		without, err := flow.Plan(in)
		if err != nil || slices.ContainsFunc(without, func(s flow.PlannedStep) bool { return s.Kind == flow.StepSecrets }) {
			t.Errorf("%s: a release without secrets waits for some: %v, %v", kind, without, err)
		}
	}
}
