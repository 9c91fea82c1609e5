package flow_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
)

var update = flag.Bool("update", false, "rewrite docs/reference/workflow-kinds.md")

const kindsPage = "../../../../docs/reference/workflow-kinds.md"

// feature is something that an app or an install may have.
type feature struct {
	name string
	add  func(*flow.PlanInput)
}

// features are on top of an app with the component api, which is deployed.
var features = []feature{
	{"a sandbox", func(in *flow.PlanInput) {
		in.HasSandbox = true
		in.Made = append(in.Made, flow.PlanMade{Name: "sandbox", Sandbox: true})
	}},
	{"a sandbox that refers to what changed", func(in *flow.PlanInput) {
		in.HasSandbox, in.SandboxRefers, in.SandboxMoved = true, []string{"size"}, true
	}},
	{"secrets that need a value", func(in *flow.PlanInput) { in.Secrets = true }},
	{"copies of secrets", func(in *flow.PlanInput) { in.Copies, in.CopiesMade = true, true }},
	{"a health check", func(in *flow.PlanInput) { in.Checks = []string{"up"} }},
	{"a component that was switched off", func(in *flow.PlanInput) {
		in.Components = append(in.Components, flow.PlanComponent{Name: "off", Off: true})
		in.Made = append(in.Made, flow.PlanMade{Name: "off"})
	}},
	{"a component that was switched on", func(in *flow.PlanInput) {
		in.Components = append(in.Components, flow.PlanComponent{Name: "on", SwitchedOn: true})
	}},
	{"a component that left the app", func(in *flow.PlanInput) { in.Made = append(in.Made, flow.PlanMade{Name: "old", Orphan: true}) }},
	{"an action at every point of the life cycle", everyPoint},
	{"the same, and components that were switched off and on", func(in *flow.PlanInput) {
		everyPoint(in)
		in.Components = append(in.Components, flow.PlanComponent{Name: "off", Off: true}, flow.PlanComponent{Name: "on", SwitchedOn: true})
		in.Made = append(in.Made, flow.PlanMade{Name: "off"})
	}},
}

// everyPoint ties an action to each point of the life cycle.
func everyPoint(in *flow.PlanInput) {
	for _, point := range []string{
		"provision", "reprovision", "deprovision", "reprovision-sandbox", "deprovision-sandbox", "provision-sandbox", "deploy-all-components",
		"teardown-all-components", "deploy-component", "teardown-component", "update-inputs", "secrets-sync", "enable-component", "disable-component",
	} {
		in.Hooks = append(in.Hooks, flow.PlanHook{Action: "act", Trigger: "pre-" + point}, flow.PlanHook{Action: "act", Trigger: "post-" + point})
	}
}

// small is an app of one component, which is there.
func small(kind flow.Kind) flow.PlanInput {
	in := flow.PlanInput{
		Kind: kind, Install: "acme", Action: "act", WithDependents: true,
		Components: []flow.PlanComponent{{Name: "api", Refers: []string{"size"}}}, Made: []flow.PlanMade{{Name: "api"}},
	}
	if kind == flow.KindTeardown {
		in.Selected = []string{"api"}
	}
	if kind == flow.KindRoleSwitch {
		in.Switch, in.Hooks = "role-enabled", []flow.PlanHook{{Action: "act", Trigger: "role-enabled"}}
	}
	return in
}

// names are the steps of a workflow in their order, removals with a dash before them; or
// why it is refused.
func names(in flow.PlanInput) []string {
	steps, err := flow.Plan(in)
	if err != nil {
		return []string{"refused: " + err.Error()}
	}
	var all []string
	for _, s := range steps {
		name := s.Name
		if s.Kind == flow.StepTeardown {
			name = "−" + name
		}
		all = append(all, name)
	}
	return all
}

// The page has the steps of every kind of the contract, without and with each feature.
// It is the table of this test, and what people read.
func TestKindsPage(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString(`<!-- Generated from flow.Plan: go test ./ctl-api/internal/flow -run TestKindsPage -update, in services -->
# Workflow kinds

The steps of each kind of workflow, in an order that respects what they need. The app has one component, ` + "`api`" + `, that is deployed and refers to an
input that changed. Below that is what each feature of an app or an install adds; features that add nothing are left out. A − is before what is
removed. What each kind is for: ` + "`POST /installs/{install}/workflows`" + ` in [the API](ctl-api.md); states: [state machines](../state-machines.md#workflow-kinds-ctl-api).
`)
	for _, value := range spec.Components.Schemas["WorkflowKind"].Value.Enum {
		kind := flow.Kind(value.(string))
		plain := names(small(kind))
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", kind, code(plain))
		rows := ""
		for _, f := range features {
			in := small(kind)
			f.add(&in)
			added := slices.DeleteFunc(names(in), func(s string) bool { return slices.Contains(plain, s) })
			if len(added) > 0 {
				rows += fmt.Sprintf("| %s | %s |\n", f.name, code(added))
			}
		}
		if rows != "" {
			page.WriteString("\n| with | adds |\n|---|---|\n" + rows)
		}
	}
	if *update {
		if err := os.WriteFile(kindsPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(kindsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page.String()); diff != "" {
		t.Errorf("the page (-committed +planned):\n%s", diff)
	}
}

func code(steps []string) string {
	steps = slices.Clone(steps)
	for i, s := range steps {
		if !strings.HasPrefix(s, "refused: ") {
			steps[i] = "`" + s + "`"
		}
	}
	return strings.Join(steps, ", ")
}

// With all features at once, no kind has a step twice, one that needs a step that is
// not there or comes later, or a removal of what it deploys.
func TestKindsWithEverything(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range spec.Components.Schemas["WorkflowKind"].Value.Enum {
		in := small(flow.Kind(value.(string)))
		for _, f := range features[:len(features)-1] { // the last one has those before it
			f.add(&in)
		}
		steps, err := flow.Plan(in)
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
		before, resources := map[string]bool{}, map[string]bool{}
		for _, s := range steps {
			for _, need := range s.Needs {
				if !before[need] {
					t.Errorf("%s: %s needs %s, which is not before it", value, s.Name, need)
				}
			}
			if before[s.Name] || s.Resource != "" && resources[s.Resource] {
				t.Errorf("%s: %s is there twice", value, s.Name)
			}
			before[s.Name], resources[s.Resource] = true, true
		}
	}
}
