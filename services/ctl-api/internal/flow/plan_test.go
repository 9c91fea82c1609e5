package flow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
)

// edges shows steps as "name <- needs", with a dash before what is removed by a
// workflow that does not only remove.
func edges(kind flow.Kind, steps []flow.PlannedStep) []string {
	var out []string
	for _, s := range steps {
		line := s.Name
		if s.Kind == flow.StepTeardown && !strings.HasPrefix(string(kind), "deprovision") && !strings.HasPrefix(string(kind), "teardown") && kind != flow.KindRemoveOrphans {
			line = "-" + line
		}
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
	components := []flow.PlanComponent{
		{Name: "web", Needs: []string{"api", "assets"}},
		{Name: "assets"},
		{Name: "api", MaxRetries: 2},
	}
	tests := []struct {
		name string
		in   flow.PlanInput
		want []string
	}{
		{
			name: "provision runs independent components side by side",
			in:   flow.PlanInput{Kind: flow.KindProvision, HasSandbox: true, Components: components, Checks: []string{"up"}},
			want: []string{
				"stack", "runner <- stack", "release <- runner", "sandbox <- runner",
				"component/api <- sandbox", "component/assets <- sandbox",
				"component/web <- sandbox component/api component/assets",
				"check/up <- component/api component/assets component/web release",
			},
		},
		{
			name: "a plugin is not even planned before it is accepted",
			in:   flow.PlanInput{Kind: flow.KindDeploy, Components: []flow.PlanComponent{{Name: "api"}, {Name: "hello", Plugin: true}}},
			want: []string{"runner", "release <- runner", "component/api <- runner", "component/hello <- runner release"},
		},
		{
			name: "deploy of one component leaves the others alone",
			in:   flow.PlanInput{Kind: flow.KindDeploy, Components: components, Selected: []string{"web"}},
			want: []string{"runner", "release <- runner", "component/web <- runner"},
		},
		{
			name: "deploy of the sandbox alone leaves every component alone",
			in:   flow.PlanInput{Kind: flow.KindDeploy, HasSandbox: true, Components: components, Selected: []string{"sandbox"}, Checks: []string{"up"}},
			want: []string{"runner", "release <- runner", "sandbox <- runner", "check/up <- sandbox release"},
		},
		{
			name: "deploy of the sandbox and a component takes the sandbox first",
			in:   flow.PlanInput{Kind: flow.KindDeploy, HasSandbox: true, Components: components, Selected: []string{"web", "sandbox"}},
			want: []string{"runner", "release <- runner", "sandbox <- runner", "component/web <- sandbox"},
		},
		{
			name: "a component that is called sandbox is that component",
			in:   flow.PlanInput{Kind: flow.KindDeploy, HasSandbox: true, Components: []flow.PlanComponent{{Name: "sandbox"}}, Selected: []string{"sandbox"}},
			want: []string{"runner", "release <- runner", "component/sandbox <- runner"},
		},
		{
			name: "hooks stand around what they belong to, by index",
			in: flow.PlanInput{Kind: flow.KindDeploy, Components: components[1:], Hooks: []flow.PlanHook{
				{Action: "b", Trigger: "pre-deploy-component", Component: "api", Index: 2},
				{Action: "a", Trigger: "pre-deploy-component", Component: "api", Index: 1},
				{Action: "seed", Trigger: "post-deploy-component", Component: "api"},
				{Action: "tell", Trigger: "post-deploy-all-components"},
			}},
			want: []string{
				"runner", "release <- runner",
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
			in: flow.PlanInput{Kind: flow.KindDeprovision, Made: []flow.PlanMade{
				{Name: "sandbox", Sandbox: true}, {Name: "api"}, {Name: "old"}, {Name: "web", Needs: []string{"api", "old"}},
			}},
			want: []string{
				"runner", "component/web <- runner",
				"component/old <- runner component/web", "component/api <- runner component/web",
				"sandbox <- component/web component/old component/api", "scripts <- sandbox",
			},
		},
		{
			name: "what is off and was made is removed by a deploy of all, dependents first, next to the rest",
			in: flow.PlanInput{Kind: flow.KindDeploy, Components: []flow.PlanComponent{
				{Name: "api"}, {Name: "db", Off: true}, {Name: "admin", Needs: []string{"db"}, Off: true}, {Name: "never", Off: true},
			}, Made: []flow.PlanMade{{Name: "sandbox", Sandbox: true}, {Name: "api"}, {Name: "db"}, {Name: "admin", Needs: []string{"db"}}, {Name: "orphan"}},
				Checks: []string{"up"}},
			want: []string{
				"runner", "release <- runner", "-component/admin <- runner", "-component/db <- runner component/admin", "component/api <- runner",
				"check/up <- component/admin component/db component/api release",
			},
		},
		{
			name: "what stands on a component is removed before that one moves",
			in: flow.PlanInput{Kind: flow.KindProvision, HasSandbox: true, Components: []flow.PlanComponent{
				{Name: "api"}, {Name: "metrics", Needs: []string{"api"}, Off: true},
			}, Made: []flow.PlanMade{{Name: "api"}, {Name: "metrics", Needs: []string{"api"}}}},
			want: []string{"stack", "runner <- stack", "release <- runner", "sandbox <- runner", "-component/metrics <- sandbox", "component/api <- sandbox component/metrics"},
		},
		{
			name: "what a component stood on before this release is removed once it has moved, and so is what that stands on",
			in: flow.PlanInput{Kind: flow.KindDeploy, Components: []flow.PlanComponent{
				{Name: "api"}, {Name: "cache", Off: true}, {Name: "disk", Off: true}, {Name: "viewer", Off: true},
			}, Made: []flow.PlanMade{
				{Name: "api", Needs: []string{"cache"}}, {Name: "cache", Needs: []string{"disk"}}, {Name: "disk"}, {Name: "viewer", Needs: []string{"disk"}},
			}},
			want: []string{
				"runner", "release <- runner", "-component/viewer <- runner", "component/api <- runner",
				"-component/cache <- runner component/api", "-component/disk <- runner component/viewer component/cache",
			},
		},
		{
			name: "hooks of a teardown stand around what is switched off, and those of its deploy are left out",
			in: flow.PlanInput{Kind: flow.KindDeploy, Components: []flow.PlanComponent{{Name: "api", Off: true}}, Made: []flow.PlanMade{{Name: "api"}},
				Hooks: []flow.PlanHook{
					{Action: "drain", Trigger: "pre-teardown-component", Component: "api"}, {Action: "tell", Trigger: "post-teardown-component", Component: "api"},
					{Action: "seed", Trigger: "post-deploy-component", Component: "api"}, {Action: "end", Trigger: "post-deploy-all-components"},
				}},
			want: []string{
				"runner", "release <- runner", "pre-teardown-component/api/drain <- runner", "-component/api <- pre-teardown-component/api/drain",
				"post-teardown-component/api/tell <- component/api", "post-deploy-all-components/end <- post-teardown-component/api/tell",
			},
		},
		{
			name: "a deploy of one component removes nothing",
			in: flow.PlanInput{Kind: flow.KindDeploy, Selected: []string{"api"},
				Components: []flow.PlanComponent{{Name: "api"}, {Name: "db", Off: true}}, Made: []flow.PlanMade{{Name: "db"}}},
			want: []string{"runner", "release <- runner", "component/api <- runner"},
		},
		{
			name: "an install of which nothing was made has nothing to tear down",
			in:   flow.PlanInput{Kind: flow.KindDeprovision},
			want: []string{"runner"},
		},
		{
			name: "an action that is a check runs as a check",
			in:   flow.PlanInput{Kind: flow.KindActionRun, Action: "up", Checks: []string{"up"}},
			want: []string{"runner", "release <- runner", "action/up <- runner release"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			steps, err := flow.Plan(tt.in)
			if err != nil {
				t.Fatalf("Plan: %v", err)
			}
			if diff := cmp.Diff(tt.want, edges(tt.in.Kind, steps)); diff != "" {
				t.Errorf("steps differ (-want +got):\n%s", diff)
			}
		})
	}
}

// selectedOf are the components without which a kind is refused.
var selectedOf = map[string][]string{"teardown": {"old"}}

// Each workflow kind of the contract has steps.
func TestPlanKnowsTheKindsOfTheContract(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range spec.Components.Schemas["WorkflowKind"].Value.Enum {
		if _, err := flow.Plan(flow.PlanInput{
			Kind: flow.Kind(kind.(string)), Action: "a", HasSandbox: true, Selected: selectedOf[kind.(string)], Copies: true, Made: []flow.PlanMade{{Name: "old", Orphan: true}}, WithDependents: true,
		}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	components := []flow.PlanComponent{
		{Name: "web", Needs: []string{"api"}}, {Name: "api", Off: true}, {Name: "alone"}, {Name: "chart", Misfit: "tf_vars: it is no Terraform module"},
	}
	for _, tt := range []struct {
		name       string
		in         flow.PlanInput
		kind       error
		want, help string
	}{
		{
			name: "a component that the release does not have", in: flow.PlanInput{Kind: flow.KindDeploy, Selected: []string{"nope"}},
			kind: fault.ErrInvalid, want: `no component "nope"`,
		},
		{
			name: "a typo in a component", in: flow.PlanInput{Kind: flow.KindDeploy, Selected: []string{"wbe"}},
			kind: fault.ErrInvalid, want: `no component "wbe"; did you mean web?`,
		},
		{
			name: "a component that is off", in: flow.PlanInput{Kind: flow.KindDeploy, Selected: []string{"alone", "api"}},
			kind: fault.ErrInvalid, want: `"api" is switched off in install acme`, help: "berth installs toggle acme api on",
		},
		{
			name: "a deploy of what overrides do not fit", in: flow.PlanInput{Kind: flow.KindDeploy},
			kind: fault.ErrConflict, want: `"chart" does not fit: tf_vars`, help: "berth installs sync",
		},
		{
			name: "a deploy of what needs something off", in: flow.PlanInput{Kind: flow.KindDeploy, Selected: []string{"web"}},
			kind: fault.ErrConflict, want: `component "web" needs "api", which is switched off in install acme`, help: "berth installs toggle acme api on",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Install, tt.in.Components = "acme", components
			_, err := flow.Plan(tt.in)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.From(err).Remedy, tt.help) {
				t.Errorf("Plan: %v (%s), want %q (%s)", err, fault.From(err).Remedy, tt.want, tt.help)
			}
		})
	}
	steps, err := flow.Plan(flow.PlanInput{Kind: flow.KindDeploy, Install: "acme", Components: components, Selected: []string{"alone"}})
	if err != nil || len(steps) != 3 {
		t.Errorf("a component that has nothing to do with it is not deployed: %v %v", steps, err)
	}
}
