package flow_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
)

// TestEveryPointOfTheLifeCycle ties an action to each point: a workflow runs it, or
// the app's author is told that nothing does.
func TestEveryPointOfTheLifeCycle(t *testing.T) {
	t.Parallel()
	notYet := map[string]bool{}
	for _, row := range check.NotYets() {
		for _, key := range row.Keys {
			if point, ok := strings.CutPrefix(key, "action.triggers[].type="); ok {
				notYet[point] = true
			}
		}
	}
	others := []string{"manual", "cron", "pre-component-deploy", "post-component-deploy"} // no points, and older names
	count := 0
	for _, point := range appconfig.TriggerType("").Values() {
		if slices.Contains(others, point) {
			continue
		}
		count++
		hook := flow.PlanHook{Action: "look", Trigger: point}
		planned := false
		for _, kind := range []flow.Kind{
			flow.KindProvision, flow.KindReprovision, flow.KindReprovisionSandbox, flow.KindDeploy, flow.KindInputUpdate,
			flow.KindDeprovisionSandbox, flow.KindDeprovision, flow.KindSyncSecrets, flow.KindToggle, flow.KindRoleSwitch,
		} {
			fired := ""
			if strings.HasPrefix(point, "role-") {
				fired = point
			}
			steps, err := flow.Plan(flow.PlanInput{
				Kind: kind, Switch: fired, WithDependents: true, HasSandbox: true, Copies: true, Components: []flow.PlanComponent{{Name: "api"}, {Name: "on", SwitchedOn: true}, {Name: "off", Off: true}}, Hooks: []flow.PlanHook{hook},
				Made: []flow.PlanMade{{Name: "sandbox", Sandbox: true}, {Name: "api", Needs: []string{"sandbox"}}, {Name: "off"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			planned = planned || slices.ContainsFunc(steps, func(s flow.PlannedStep) bool { return s.Action == "look" })
		}
		if planned == notYet[point] {
			t.Errorf("%s: a workflow runs it: %t; it is told of as not supported yet: %t", point, planned, notYet[point])
		}
	}
	if count != 29 {
		t.Errorf("%d points, want 29", count)
	}
}

// A trigger of a single component that names none is of every component, each once.
func TestPointsOfEveryComponent(t *testing.T) {
	t.Parallel()
	steps, err := flow.Plan(flow.PlanInput{
		Kind: flow.KindDeploy, Components: []flow.PlanComponent{{Name: "api"}, {Name: "web", Needs: []string{"api"}}},
		Hooks: []flow.PlanHook{
			{Action: "warm", Trigger: "post-deploy-component"},
			{Action: "look", Trigger: "post-deploy-component", Component: "api", Index: 1},
			{Action: "look", Trigger: "post-deploy-component"},
			{Action: "never", Trigger: "post-deploy-component", Component: "other"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		if s.Action != "" {
			got = append(got, s.Name+" after "+strings.Join(s.Needs, "+"))
		}
	}
	want := []string{
		"post-deploy-component/api/warm after component/api",
		"post-deploy-component/api/look after post-deploy-component/api/warm",
		"post-deploy-component/web/look after component/web",
		"post-deploy-component/web/warm after post-deploy-component/web/look",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
