package workflow

import (
	"fmt"
	"slices"
	"sort"
)

// Kind says what a workflow is for.
type Kind string

// The kinds.
const (
	KindProvision   Kind = "provision"   // stack, runner, sandbox, every component
	KindDeploy      Kind = "deploy"      // some or all components of a release
	KindActionRun   Kind = "action_run"  // one action, once
	KindDeprovision Kind = "deprovision" // everything that was made, in reverse order
)

// StepKind says what a step does.
type StepKind string

// The kinds of steps.
const (
	StepAwaitStack  StepKind = "await_stack"  // the customer applies the stack, which phones home
	StepAwaitRunner StepKind = "await_runner" // the runner enrols
	StepDeploy      StepKind = "deploy"       // plan, decision, apply of a resource
	StepTeardown    StepKind = "teardown"     // the same, to remove it
	StepAction      StepKind = "action"       // run an action
	StepCheck       StepKind = "check"        // run a health check once, now
)

// PlanInput is everything that Plan looks at.
type PlanInput struct {
	Kind Kind
	// Components are those of the pinned release that are switched on, in any
	// order.
	Components []PlanComponent
	// Selected names the components to deploy; empty means all. Only for
	// KindDeploy.
	Selected []string
	// Made lists the resources of the install that are not absent: "sandbox" and
	// component names, also of components that the release no longer has.
	Made []PlanMade
	// HasSandbox: the release has a sandbox.
	HasSandbox bool
	// Hooks are the actions with life-cycle triggers.
	Hooks []PlanHook
	// Checks are the names of the actions that are health checks.
	Checks []string
	// Action is the one to run, for KindActionRun.
	Action string
}

// PlanComponent is a component and what must be there before it.
type PlanComponent struct {
	Name       string
	Needs      []string // names of other components
	MaxRetries int
}

// PlanMade is a resource that exists, and what it stood on when it was made.
type PlanMade struct {
	Name    string // "sandbox" for the sandbox
	Sandbox bool
	Needs   []string
}

// PlanHook ties an action to a point of the life cycle.
type PlanHook struct {
	Action    string
	Trigger   string // "pre-provision", "post-deploy-component", …
	Component string // for the triggers of one component
	Index     int
}

// PlannedStep is a node of the graph that Plan makes.
type PlannedStep struct {
	Name       string // unique in the workflow: "sandbox", "component/api", "check/greeting"
	Kind       StepKind
	Resource   string // name of the resource, for deploy and teardown
	Sandbox    bool   // the resource is the sandbox
	Action     string
	Needs      []string // names of steps
	Reason     string
	MaxRetries int
}

// Plan makes the steps of a workflow, in an order in which each comes after all
// that it needs. The same input gives the same steps. It fails on a selected
// component that the release does not have.
func Plan(in PlanInput) ([]PlannedStep, error) {
	p := &planner{in: in}
	switch in.Kind {
	case KindProvision:
		p.add(PlannedStep{Name: "stack", Kind: StepAwaitStack, Reason: "a runner gets into the account by the stack"})
		p.add(PlannedStep{Name: "runner", Kind: StepAwaitRunner, Reason: "everything after it is done by the install's runner"})
		p.hooks("pre-provision")
		if in.HasSandbox {
			p.add(PlannedStep{Name: "sandbox", Kind: StepDeploy, Resource: "sandbox", Sandbox: true, Reason: "components stand on the sandbox"})
		}
		if err := p.deploy(nil); err != nil {
			return nil, err
		}
		p.hooks("post-provision")
		p.checks()
	case KindDeploy:
		p.add(PlannedStep{Name: "runner", Kind: StepAwaitRunner, Reason: "everything after it is done by the install's runner"})
		if err := p.deploy(in.Selected); err != nil {
			return nil, err
		}
		p.checks()
	case KindActionRun:
		p.add(PlannedStep{Name: "runner", Kind: StepAwaitRunner, Reason: "actions are run by the install's runner"})
		kind := StepAction
		if slices.Contains(in.Checks, in.Action) {
			kind = StepCheck
		}
		p.add(PlannedStep{Name: "action/" + in.Action, Kind: kind, Action: in.Action, Reason: "asked for"})
	case KindDeprovision:
		p.add(PlannedStep{Name: "runner", Kind: StepAwaitRunner, Reason: "everything after it is done by the install's runner"})
		p.teardown()
	default:
		return nil, fmt.Errorf("workflow kind %q is not known", in.Kind)
	}
	return p.steps, nil
}

// planner collects steps. last holds the steps that whatever is added next
// comes after.
type planner struct {
	in    PlanInput
	steps []PlannedStep
	last  []string
}

// add appends s behind everything so far.
func (p *planner) add(s PlannedStep) {
	s.Needs = slices.Clone(p.last)
	p.steps = append(p.steps, s)
	p.last = []string{s.Name}
}

// hooks appends the actions of a trigger that is of no component, one after the
// other by index.
func (p *planner) hooks(trigger string) {
	p.last = p.hooksAfter(p.last, trigger, "")
}

// hooksAfter appends the actions of a trigger behind after and returns what
// comes next must need.
func (p *planner) hooksAfter(after []string, trigger, component string) []string {
	var hooks []PlanHook
	for _, h := range p.in.Hooks {
		if h.Trigger == trigger && h.Component == component {
			hooks = append(hooks, h)
		}
	}
	sort.SliceStable(hooks, func(i, j int) bool {
		if hooks[i].Index != hooks[j].Index {
			return hooks[i].Index < hooks[j].Index
		}
		return hooks[i].Action < hooks[j].Action
	})
	for _, h := range hooks {
		name := trigger + "/" + h.Action
		if component != "" {
			name = trigger + "/" + component + "/" + h.Action
		}
		p.steps = append(p.steps, PlannedStep{
			Name: name, Kind: StepAction, Action: h.Action,
			Needs: slices.Clone(after), Reason: "trigger " + trigger,
		})
		after = []string{name}
	}
	return after
}

// deploy appends the selected components (all, when selected is empty), side by
// side where nothing orders them.
func (p *planner) deploy(selected []string) error {
	chosen := map[string]bool{}
	for _, c := range p.in.Components {
		chosen[c.Name] = len(selected) == 0 || slices.Contains(selected, c.Name)
	}
	for _, name := range selected {
		if !chosen[name] {
			return fmt.Errorf("the release has no component %q", name)
		}
	}
	all := len(selected) == 0
	if all {
		p.hooks("pre-deploy-all-components")
	}
	base := slices.Clone(p.last)
	ends := map[string][]string{} // component → what its dependents come after
	var leaves []string
	for _, c := range inOrder(p.in.Components) {
		if !chosen[c.Name] {
			continue
		}
		after := slices.Clone(base)
		for _, need := range c.Needs {
			if chosen[need] {
				after = append(after, ends[need]...)
			}
		}
		after = p.hooksAfter(after, "pre-deploy-component", c.Name)
		step := PlannedStep{
			Name: "component/" + c.Name, Kind: StepDeploy, Resource: c.Name,
			Needs: after, Reason: deployReason(all), MaxRetries: c.MaxRetries,
		}
		p.steps = append(p.steps, step)
		ends[c.Name] = p.hooksAfter([]string{step.Name}, "post-deploy-component", c.Name)
		leaves = append(leaves, ends[c.Name]...)
	}
	if len(leaves) > 0 {
		p.last = leaves
	}
	if all {
		p.hooks("post-deploy-all-components")
	}
	return nil
}

func deployReason(all bool) string {
	if all {
		return "every component of the release is deployed"
	}
	return "asked for"
}

// checks appends every health check, side by side, behind everything.
func (p *planner) checks() {
	base := slices.Clone(p.last)
	var names []string
	for _, c := range slices.Sorted(slices.Values(p.in.Checks)) {
		name := "check/" + c
		p.steps = append(p.steps, PlannedStep{Name: name, Kind: StepCheck, Action: c, Needs: slices.Clone(base), Reason: "shows that the install is healthy"})
		names = append(names, name)
	}
	if len(names) > 0 {
		p.last = names
	}
}

// teardown appends the removal of all that was made: what stands on something
// goes first, the sandbox last.
func (p *planner) teardown() {
	p.hooks("pre-deprovision")
	p.hooks("pre-teardown-all-components")
	base := slices.Clone(p.last)

	var components []PlanComponent
	sandbox := false
	for _, m := range p.in.Made {
		if m.Sandbox {
			sandbox = true
			continue
		}
		components = append(components, PlanComponent{Name: m.Name, Needs: m.Needs})
	}
	ordered := inOrder(components)
	slices.Reverse(ordered)
	ends := map[string][]string{}
	var leaves []string
	for _, c := range ordered {
		after := slices.Clone(base)
		for _, other := range ordered {
			if slices.Contains(other.Needs, c.Name) {
				after = append(after, ends[other.Name]...)
			}
		}
		after = p.hooksAfter(after, "pre-teardown-component", c.Name)
		name := "component/" + c.Name
		p.steps = append(p.steps, PlannedStep{Name: name, Kind: StepTeardown, Resource: c.Name, Needs: after, Reason: "it was made"})
		ends[c.Name] = p.hooksAfter([]string{name}, "post-teardown-component", c.Name)
		leaves = append(leaves, ends[c.Name]...)
	}
	if len(leaves) > 0 {
		p.last = leaves
	}
	p.hooks("post-teardown-all-components")
	if sandbox {
		p.add(PlannedStep{Name: "sandbox", Kind: StepTeardown, Resource: "sandbox", Sandbox: true, Reason: "it was made; nothing stands on it any more"})
	}
	p.hooks("post-deprovision")
}

// inOrder sorts components so that each comes after its needs, by name where
// nothing orders them. Components of a cycle, which validation refuses, come
// last by name, so that nothing is lost.
func inOrder(components []PlanComponent) []PlanComponent {
	rest := slices.Clone(components)
	sort.Slice(rest, func(i, j int) bool { return rest[i].Name < rest[j].Name })
	there := map[string]bool{}
	for _, c := range rest {
		there[c.Name] = true
	}
	var ordered []PlanComponent
	done := map[string]bool{}
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(c PlanComponent) bool {
			return !slices.ContainsFunc(c.Needs, func(n string) bool { return there[n] && !done[n] })
		})
		if i < 0 {
			i = 0
		}
		done[rest[i].Name] = true
		ordered = append(ordered, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return ordered
}
