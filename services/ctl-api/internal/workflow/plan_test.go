package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

// edges shows steps as "name <- needs".
func edges(steps []workflow.PlannedStep) []string {
	var out []string
	for _, s := range steps {
		line := s.Name
		for i, n := range s.Needs {
			if i == 0 {
				line += " <-"
			}
			line += " " + n
		}
		out = append(out, line)
	}
	return out
}

func TestPlan(t *testing.T) {
	t.Parallel()
	components := []workflow.PlanComponent{
		{Name: "web", Needs: []string{"api", "assets"}},
		{Name: "assets"},
		{Name: "api", MaxRetries: 2},
	}
	tests := []struct {
		name string
		in   workflow.PlanInput
		want []string
	}{
		{
			name: "provision runs independent components side by side",
			in:   workflow.PlanInput{Kind: workflow.KindProvision, HasSandbox: true, Components: components, Checks: []string{"up"}},
			want: []string{
				"stack", "runner <- stack", "sandbox <- runner",
				"component/api <- sandbox", "component/assets <- sandbox",
				"component/web <- sandbox component/api component/assets",
				"check/up <- component/api component/assets component/web",
			},
		},
		{
			name: "deploy of one component leaves the others alone",
			in:   workflow.PlanInput{Kind: workflow.KindDeploy, Components: components, Selected: []string{"web"}},
			want: []string{"runner", "component/web <- runner"},
		},
		{
			name: "hooks stand around what they belong to, by index",
			in: workflow.PlanInput{Kind: workflow.KindDeploy, Components: components[1:], Hooks: []workflow.PlanHook{
				{Action: "b", Trigger: "pre-deploy-component", Component: "api", Index: 2},
				{Action: "a", Trigger: "pre-deploy-component", Component: "api", Index: 1},
				{Action: "seed", Trigger: "post-deploy-component", Component: "api"},
				{Action: "tell", Trigger: "post-deploy-all-components"},
			}},
			want: []string{
				"runner",
				"pre-deploy-component/api/a <- runner",
				"pre-deploy-component/api/b <- pre-deploy-component/api/a",
				"component/api <- pre-deploy-component/api/b",
				"post-deploy-component/api/seed <- component/api",
				"component/assets <- runner",
				"post-deploy-all-components/tell <- post-deploy-component/api/seed component/assets",
			},
		},
		{
			name: "deprovision goes in reverse, the sandbox last, orphans too",
			in: workflow.PlanInput{Kind: workflow.KindDeprovision, Made: []workflow.PlanMade{
				{Name: "sandbox", Sandbox: true}, {Name: "api"}, {Name: "old"}, {Name: "web", Needs: []string{"api", "old"}},
			}},
			want: []string{
				"runner", "component/web <- runner",
				"component/old <- runner component/web", "component/api <- runner component/web",
				"sandbox <- component/web component/old component/api",
			},
		},
		{
			name: "an install of which nothing was made has nothing to tear down",
			in:   workflow.PlanInput{Kind: workflow.KindDeprovision},
			want: []string{"runner"},
		},
		{
			name: "an action that is a check runs as a check",
			in:   workflow.PlanInput{Kind: workflow.KindActionRun, Action: "up", Checks: []string{"up"}},
			want: []string{"runner", "action/up <- runner"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			steps, err := workflow.Plan(tt.in)
			if err != nil {
				t.Fatalf("Plan: %v", err)
			}
			if diff := cmp.Diff(tt.want, edges(steps)); diff != "" {
				t.Errorf("steps differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanRefusesAnUnknownComponent(t *testing.T) {
	t.Parallel()
	_, err := workflow.Plan(workflow.PlanInput{Kind: workflow.KindDeploy, Selected: []string{"nope"}})
	if err == nil {
		t.Fatal("Plan accepted a component that the release does not have")
	}
}
