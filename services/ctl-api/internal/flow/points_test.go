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
		if strings.HasSuffix(point, "-component") {
			hook.Component = "api"
		}
		planned := false
		for _, kind := range []flow.Kind{
			flow.KindProvision, flow.KindReprovision, flow.KindReprovisionSandbox, flow.KindDeploy, flow.KindInputUpdate,
			flow.KindDeprovisionSandbox, flow.KindDeprovision, flow.KindSyncSecrets,
		} {
			steps, err := flow.Plan(flow.PlanInput{
				Kind: kind, WithDependents: true, HasSandbox: true, Copies: true, Components: []flow.PlanComponent{{Name: "api"}}, Hooks: []flow.PlanHook{hook},
				Made: []flow.PlanMade{{Name: "sandbox", Sandbox: true}, {Name: "api", Needs: []string{"sandbox"}}},
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
