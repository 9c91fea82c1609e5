package flow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestGate(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(minutes float64) time.Time { return began.Add(time.Duration(minutes * float64(time.Minute))) }
	good := func(since, last float64) flow.GateSource {
		return flow.GateSource{Name: "component/web", Verdict: model.Healthy, Since: at(since), Last: at(last), Good: true}
	}
	bad := func(since, last float64) flow.GateSource {
		return flow.GateSource{Name: "component/web", Verdict: model.Unhealthy, Since: at(since), Last: at(last), Why: "Deployment web: 0 of 2 replicas"}
	}
	other := good(-60, 6)
	other.Name = "check/answers"
	tests := []struct {
		name    string
		now     float64 // minutes after the gate began; it holds for 5
		sources []flow.GateSource
		want    flow.Do
		says    string // in the error, or what is waited for
	}{
		{"nothing to look at", 0, nil, flow.DoSkipStep, "no check"},
		{"healthy from before, not looked at since", 0, []flow.GateSource{good(-60, -1)}, flow.DoWaitStep, "component/web"},
		{"healthy, and not for long enough", 4, []flow.GateSource{good(-60, 4)}, flow.DoWaitStep, "component/web"},
		{"the time is over, and nobody looked at its end", 6, []flow.GateSource{good(-60, 4.5)}, flow.DoWaitStep, "component/web"},
		{"healthy at its end", 6, []flow.GateSource{good(-60, 5.5)}, flow.DoSucceedStep, ""},
		{"one of two is not", 6, []flow.GateSource{other, good(3, 6)}, flow.DoWaitStep, "component/web"},
		{"it became healthy behind the gate, long enough ago", 9, []flow.GateSource{good(3, 8.5)}, flow.DoSucceedStep, ""},
		{"the newest look was bad, and it is not unhealthy yet", 6, []flow.GateSource{func() flow.GateSource { s := good(-60, 6); s.Good = false; return s }()}, flow.DoWaitStep, "component/web"},
		{"it became unhealthy", 2, []flow.GateSource{other, bad(1.5, 2)}, flow.DoFailStep, "component/web became unhealthy after the deploy: Deployment web: 0 of 2 replicas"},
		{"it was unhealthy before the deploy", 2, []flow.GateSource{bad(-30, 2)}, flow.DoWaitStep, "component/web"},
		{"it stayed so", 20, []flow.GateSource{bad(-30, 20)}, flow.DoFailStep, "it was not healthy for 5m0s within 20m0s: component/web is unhealthy: Deployment web: 0 of 2 replicas"},
		{"nobody knows", 20, []flow.GateSource{{Name: "component/web", Verdict: model.Unknown}}, flow.DoFailStep, "component/web is unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			step := flow.Step{ID: "s", Name: "health", Kind: flow.StepGate, State: model.StepRunning, Gate: &flow.Gate{Hold: 5 * time.Minute, Began: began, Sources: tt.sources}}
			state := flow.State{Now: at(tt.now), WorkflowState: model.WorkflowRunning, Steps: []flow.Step{step}}
			d := flow.Next(state)
			if d.Do != tt.want || !strings.Contains(d.Error+d.Wait.On, tt.says) {
				t.Fatalf("got %+v, want %s with %q", d, tt.want, tt.says)
			}
			if d.Do != flow.DoWaitStep {
				return
			}
			if d.Wait.Reason != model.WaitHealth || !d.Wait.Deadline.Equal(at(20)) {
				t.Errorf("waits for %+v", d.Wait)
			}
			state.Steps[0].State, state.Steps[0].WaitReason, state.Steps[0].WaitOn = model.StepWaiting, d.Wait.Reason, d.Wait.On
			if again := flow.Next(state); again.Do != flow.DoNothing || again.WorkflowState != model.WorkflowWaiting {
				t.Errorf("once it waits: %+v", again)
			}
		})
	}
}

// Who deploys, or the app, puts a gate behind the checks; it looks at what was deployed.
func TestWhereAGateIs(t *testing.T) {
	t.Parallel()
	plain := flow.PlanComponent{Name: "api", Probed: true}
	gated := flow.PlanComponent{Name: "web", Probed: true, Gate: true, Hold: 2 * time.Minute, GateChecks: []string{"answers"}}
	table := flow.PlanComponent{Name: "data", Needs: nil} // no objects in a cluster
	tests := []struct {
		name string
		in   flow.PlanInput
		want *flow.GateSpec
	}{
		{"nobody asks", flow.PlanInput{Kind: flow.KindDeploy, Components: []flow.PlanComponent{plain, table}, Checks: []string{"answers"}}, nil},
		{"who deploys asks", flow.PlanInput{Kind: flow.KindDeploy, Hold: time.Minute, Components: []flow.PlanComponent{plain, table}, Checks: []string{"answers", "other"}},
			&flow.GateSpec{HoldSeconds: 60, Components: []string{"api"}, Checks: []string{"answers", "other"}, Holds: []string{"api", "data"}}},
		{"the app asks, for one", flow.PlanInput{Kind: flow.KindDeploy, Components: []flow.PlanComponent{plain, gated}, Checks: []string{"answers", "other"}},
			&flow.GateSpec{HoldSeconds: 120, Components: []string{"web"}, Checks: []string{"answers"}, Holds: []string{"web"}}},
		{"the longest counts", flow.PlanInput{Kind: flow.KindDeploy, Hold: time.Minute, Components: []flow.PlanComponent{plain, gated}, Checks: []string{"answers"}},
			&flow.GateSpec{HoldSeconds: 120, Components: []string{"api", "web"}, Checks: []string{"answers"}, Holds: []string{"api", "web"}}},
		{"another one is deployed", flow.PlanInput{Kind: flow.KindDeploy, Selected: []string{"api"}, Components: []flow.PlanComponent{plain, gated}}, nil},
		{"a provision", flow.PlanInput{Kind: flow.KindProvision, Hold: time.Minute, Components: []flow.PlanComponent{plain}}, &flow.GateSpec{HoldSeconds: 60, Components: []string{"api"}, Holds: []string{"api"}}},
		{"a rollback", flow.PlanInput{Kind: flow.KindRollback, Hold: time.Minute, Components: []flow.PlanComponent{plain}}, &flow.GateSpec{HoldSeconds: 60, Components: []string{"api"}, Holds: []string{"api"}}},
		{"a removal", flow.PlanInput{Kind: flow.KindTeardownAll, Hold: time.Minute, Components: []flow.PlanComponent{plain}, Made: []flow.PlanMade{{Name: "api"}}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			steps, err := flow.Plan(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			var got *flow.GateSpec
			for i, s := range steps {
				if s.Kind == flow.StepGate {
					got = s.Gate
					if i != len(steps)-1 || len(s.Needs) == 0 {
						t.Errorf("the gate is step %d of %d, and needs %v", i, len(steps), s.Needs)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("gate (-want +got):\n%s", diff)
			}
		})
	}
}

// After a failure a gate does not begin, also where the rest goes on, and nobody needs it
// to go on without it.
func TestGateAfterAFailure(t *testing.T) {
	t.Parallel()
	steps := []flow.Step{
		{ID: "a", Name: "component/api", Kind: flow.StepDeploy, State: model.StepSucceeded},
		{ID: "b", Name: "component/web", Kind: flow.StepDeploy, State: model.StepFailed},
		{ID: "g", Name: "health", Kind: flow.StepGate, State: model.StepPending, Needs: []string{"component/api"}},
	}
	d := flow.Next(flow.State{WorkflowState: model.WorkflowRunning, OnFailure: model.FailureContinues, Steps: steps})
	if d.Do != flow.DoFinishWorkflow || d.WorkflowState != model.WorkflowFailed {
		t.Errorf("got %+v", d)
	}
	if !flow.Skippable(flow.StepGate) {
		t.Error("a person cannot go on without the gate")
	}
	if names, ok := flow.SkippedWith(steps, "component/web"); !ok || len(names) != 1 {
		t.Errorf("skipped with web: %v, %t", names, ok)
	}
}
