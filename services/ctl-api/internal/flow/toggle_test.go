package flow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
)

// switchable is a shop in which some components are off and some are not there.
func switchable(off, absent string) flow.PlanInput {
	in := shop(flow.KindToggle)
	for i := range in.Components {
		c := &in.Components[i]
		c.Off = strings.Contains(off, c.Name)
		c.SwitchedOn = !c.Off && strings.Contains(absent, c.Name)
	}
	var made []flow.PlanMade
	for _, m := range in.Made {
		if !strings.Contains(absent, m.Name) {
			made = append(made, m)
		}
	}
	in.Made = made
	return in
}

func TestPlanOfToggles(t *testing.T) {
	t.Parallel()
	hooks := []flow.PlanHook{
		{Action: "dump", Trigger: "pre-disable-component"}, {Action: "drain", Trigger: "pre-teardown-component"},
		{Action: "gone", Trigger: "post-teardown-component"}, {Action: "tell", Trigger: "post-disable-component"},
		{Action: "ask", Trigger: "pre-enable-component"}, {Action: "look", Trigger: "pre-deploy-component"},
		{Action: "seed", Trigger: "post-deploy-component"}, {Action: "cheer", Trigger: "post-enable-component", Component: "web"},
	}
	for _, tt := range []struct {
		name string
		in   flow.PlanInput
		edit func(*flow.PlanInput)
		want []string
	}{
		{
			name: "off: its points are around the removal, and those of the removal inside", in: switchable("web", ""),
			edit: func(in *flow.PlanInput) { in.Selected, in.Hooks, in.Checks = []string{"web"}, hooks, []string{"up"} },
			want: []string{
				"runner", "release <- runner", "pre-disable-component/web/dump <- runner", "pre-teardown-component/web/drain <- pre-disable-component/web/dump",
				"-component/web <- pre-teardown-component/web/drain", "post-teardown-component/web/gone <- component/web",
				"post-disable-component/web/tell <- post-teardown-component/web/gone", "check/up <- post-disable-component/web/tell release",
			},
		},
		{
			name: "on: its points are around the deploy, and those of the deploy inside", in: switchable("", "web"),
			edit: func(in *flow.PlanInput) { in.Selected, in.Hooks = []string{"web"}, hooks },
			want: []string{
				"runner", "release <- runner", "pre-enable-component/web/ask <- runner", "pre-deploy-component/web/look <- pre-enable-component/web/ask",
				"component/web <- pre-deploy-component/web/look", "post-deploy-component/web/seed <- component/web",
				"post-enable-component/web/cheer <- post-deploy-component/web/seed",
			},
		},
		{
			name: "on, with what it needs and is not there", in: switchable("", "web api"),
			edit: func(in *flow.PlanInput) {
				in.Selected, in.Hooks = []string{"web"}, []flow.PlanHook{{Action: "ask", Trigger: "pre-enable-component"}}
				in.Components[1].SwitchedOn = false // on by default, and never deployed: nobody switched it
			},
			want: []string{"runner", "release <- runner", "component/api <- runner", "pre-enable-component/web/ask <- runner component/api", "component/web <- pre-enable-component/web/ask"},
		},
		{
			name: "named and there, it is deployed again: its last deploy may have failed", in: switchable("", ""),
			edit: func(in *flow.PlanInput) { in.Selected = []string{"web"} },
			want: []string{"runner", "release <- runner", "component/web <- runner"},
		},
		{
			name: "off and not there, nothing is to be done", in: switchable("web", "web"),
			edit: func(in *flow.PlanInput) { in.Selected = []string{"web"} },
			want: []string{"runner", "release <- runner"},
		},
		{
			name: "without a name all that differ: what goes is gone before what comes", in: switchable("web", "web assets"),
			edit: func(in *flow.PlanInput) {
				in.Components = append(in.Components, flow.PlanComponent{Name: "old", Off: true})
				in.Made = append(in.Made, flow.PlanMade{Name: "old"})
				in.Secrets, in.Copies = true, true
			},
			want: []string{
				"runner", "release <- runner", "secrets <- runner", "-component/old <- secrets", "secrets-sync <- component/old", "component/assets <- secrets-sync",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.edit(&tt.in)
			steps, err := flow.Plan(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, edges(tt.in.Kind, steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTogglesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		in         flow.PlanInput
		selected   string
		kind       error
		code, want string
	}{
		{"off, while what stays needs it", switchable("api", ""), "api", fault.ErrConflict, "has_dependents", `component "web" needs "api"`},
		{"on, while what it needs is off", switchable("api", "web api"), "web", fault.ErrConflict, "component_off", `"web" needs "api", which is switched off`},
		{"a typo", switchable("", ""), "wbe", fault.ErrInvalid, "", "did you mean web?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Selected = []string{tt.selected}
			_, err := flow.Plan(tt.in)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) || tt.code != "" && fault.From(err).Code != tt.code {
				t.Errorf("Plan: %v (%s), want %q (%s)", err, fault.From(err).Code, tt.want, tt.code)
			}
		})
	}
}

// However a switch takes effect, its points run: also when a deploy of all brings it.
// What was on all along, or is new in the release, nobody has switched.
func TestPointsOfSwitchesInADeploy(t *testing.T) {
	t.Parallel()
	in := switchable("web", "assets api")
	in.Kind = flow.KindDeploy
	in.Components[1].SwitchedOn = false // new in the release
	in.Components[2].SwitchedOn = true  // and there already
	in.Hooks = []flow.PlanHook{{Action: "a", Trigger: "pre-enable-component"}, {Action: "z", Trigger: "post-disable-component"}}
	fired := func() (names []string) {
		steps, err := flow.Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if s.Action != "" {
				names = append(names, s.Name)
			}
		}
		return names
	}
	if diff := cmp.Diff([]string{"post-disable-component/web/z", "pre-enable-component/assets/a"}, fired()); diff != "" {
		t.Errorf("a deploy (-want +got):\n%s", diff)
	}
	in.Kind = flow.KindProvision
	if diff := cmp.Diff([]string{"post-disable-component/web/z"}, fired()); diff != "" {
		t.Errorf("a provision (-want +got):\n%s", diff)
	}
}
