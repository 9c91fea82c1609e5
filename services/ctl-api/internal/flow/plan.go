package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Kind says what a workflow is for.
type Kind string

// The kinds.
const (
	KindProvision   Kind = "provision"   // stack, runner, sandbox, every component
	KindDeploy      Kind = "deploy"      // some or all components of a release
	KindActionRun   Kind = "action_run"  // one action, once
	KindDeprovision Kind = "deprovision" // everything that was made, in reverse order

	KindReprovision        Kind = "reprovision"         // all of a provision again, with the release that the install has
	KindReprovisionSandbox Kind = "reprovision_sandbox" // the sandbox, then every component
	KindDeprovisionSandbox Kind = "deprovision_sandbox" // the sandbox alone, once nothing stands on it
	KindTeardown           Kind = "teardown"            // some components
	KindTeardownAll        Kind = "teardown_all"        // every component; the sandbox stays
	KindRemoveOrphans      Kind = "remove_orphans"      // components that are no longer part of the app
	KindInputUpdate        Kind = "input_update"        // what refers to inputs that were set since it was deployed
	KindSyncSecrets        Kind = "sync_secrets"        // copies of secrets in the install's cluster
	KindRunScript          Kind = "run_script"          // a script that is part of no release, once
	KindRunnerUpdate       Kind = "runner_update"       // the install's runner runs another version of itself
	KindToggle             Kind = "toggle"              // components that were switched on or off since: makes or removes them
	KindRoleSwitch         Kind = "role_switch"         // the actions that a customer's switch of a role starts
	KindRollback           Kind = "rollback"            // some or all of it, as it was with an earlier release and the inputs of then
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
	StepScript      StepKind = "script"       // run a script that is part of no release
	StepCheck       StepKind = "check"        // run a health check once, now
	StepAccept      StepKind = "accept"       // compare the scripts of the release with the accepted ones, decision, acceptance
	StepSecrets     StepKind = "secrets"      // the customer's secrets that the release needs have values
	StepForget      StepKind = "forget"       // accept no script any more
	StepRunner      StepKind = "runner"       // plan, decision, apply of another version of the runner
	StepGate        StepKind = "gate"         // what was deployed is healthy, and stays so for a while
)

// acceptStep is the name of the step that accepts a release.
const acceptStep = "release"

// PlanInput is everything that Plan looks at.
type PlanInput struct {
	Kind Kind
	// Install is its name, for advice.
	Install string
	// Components are those of the pinned release, in any order.
	Components []PlanComponent
	// Selected names the components to deploy, and "sandbox" for the sandbox, unless
	// a component has that name; empty means all components. KindTeardown removes
	// them, KindRemoveOrphans only those of them, or all when empty, and KindToggle
	// makes them or removes them, as they are switched; all that differ when empty.
	Selected []string
	// WithDependents also takes what needs the selected components (KindDeploy,
	// KindRollback, KindTeardown), or stands on the sandbox (KindDeprovisionSandbox).
	WithDependents bool
	// WithoutComponents leaves the components alone (KindReprovisionSandbox).
	WithoutComponents bool
	// Because is why components are in that are in for no reason of their own; empty
	// for the usual one.
	Because string
	// SandboxMoved: the sandbox stands on something else than what is gone back to
	// (KindRollback).
	SandboxMoved bool
	// SandboxRefers names the changed inputs that the sandbox refers to, and where
	// (KindInputUpdate).
	SandboxRefers []string
	// Made lists the resources of the install that are not absent: "sandbox" and
	// component names, also of components that the release no longer has.
	Made []PlanMade
	// HasSandbox: the release has a sandbox.
	HasSandbox bool
	// Secrets: the release has secrets that need a value.
	Secrets bool
	// Copies: the release copies secrets into the install's cluster. CopiesMade: an
	// earlier sync left some there.
	Copies, CopiesMade bool
	// Hooks are the actions with life-cycle triggers.
	Hooks []PlanHook
	// Checks are the names of the actions that are health checks.
	Checks []string
	// Hold is how long the install has to be healthy before what deploys it is done; zero
	// when nobody but the app asks for that.
	Hold time.Duration
	// Action is the one to run, for KindActionRun, or what the script is called, for
	// KindRunScript.
	Action string
	// Component is the one that the script is about, empty for the whole install
	// (KindRunScript).
	Component string
	// Roles are those that actions need the customer to have switched on, by action.
	Roles map[string]string
	// Switch is the trigger that the switch of a role fires, and Switched the role's name
	// (KindRoleSwitch).
	Switch, Switched string
}

// PlanComponent is a component and what must be there before it.
type PlanComponent struct {
	Name       string
	Needs      []string // names of other components
	Off        bool     // the install has switched it off
	SwitchedOn bool     // the install has switched it on, by its own word
	Misfit     string   // why what the install overrides of it does not fit; empty when it does
	MaxRetries int
	// Plugin: already its plan runs code of the vendor's, which has to be accepted
	// before.
	Plugin bool
	// Refers names the changed inputs that it refers to, and where; Overridden says that
	// what the install overrides of it changed (KindInputUpdate).
	Refers     []string
	Overridden bool
	// Gate: its deploy is done when it is healthy, and was so for Hold; GateChecks have to
	// be good too. Probed: its objects have a verdict of their own. Looks are the checks that
	// its probes are.
	Gate       bool
	Hold       time.Duration
	GateChecks []string
	Probed     bool
	Looks      []string
}

// PlanMade is a resource that exists, and what it stood on when it was made.
type PlanMade struct {
	Name    string // "sandbox" for the sandbox
	Sandbox bool
	Needs   []string
	// Orphan: the component was taken out of the app.
	Orphan bool
	// MaxRetries is how often its removal is planned again after a failure.
	MaxRetries int
}

// PlanHook ties an action to a point of the life cycle.
type PlanHook struct {
	Action    string
	Trigger   string // "pre-provision", "post-deploy-component", …
	Component string // for the triggers of one component; "" for every component
	Index     int
}

// PlannedStep is a node of the graph that Plan makes.
type PlannedStep struct {
	Name       string // unique in the workflow: "sandbox", "component/api", "check/greeting"
	Kind       StepKind
	Resource   string // name of the resource, for deploy and teardown; for a script, what it holds while it runs
	Sandbox    bool   // the resource is the sandbox
	Copies     bool   // the resource is the copies of secrets
	Action     string
	Needs      []string // names of steps
	Reason     string
	MaxRetries int
	// Toggle is the component that decides, when the step starts, whether it is
	// still wanted; empty for none. SwitchedOff: it is wanted while that is off.
	Toggle      string
	SwitchedOff bool
	// Role is the role that has to be on when the action runs, as the app writes it; empty
	// for none.
	Role string
	// Gate is what a gate looks at; nil for every other kind.
	Gate *GateSpec
}

// Plan makes the steps of a workflow, in an order in which each comes after all
// that it needs. The same input gives the same steps. It fails (ErrInvalid) on a
// selected component that the release does not have or that is off, and
// (ErrConflict) on one that needs what is off, that overrides do not fit, or that
// is to be removed while something stands on it.
func Plan(in PlanInput) ([]PlannedStep, error) {
	p := &planner{in: in}
	steps, known := kinds[in.Kind]
	if !known {
		return nil, fmt.Errorf("workflow kind %q is not known", in.Kind)
	}
	err := steps(p)
	if err != nil {
		return nil, err
	}
	return p.steps, nil
}

// planner collects steps. last holds the steps that whatever is added next
// comes after.
type planner struct {
	in    PlanInput
	steps []PlannedStep
	last  []string
	// removingOff: what is added now is removed because it is switched off.
	removingOff bool
}

// add appends s behind everything so far.
func (p *planner) add(s PlannedStep) {
	s.Needs = slices.Clone(p.last)
	p.steps = append(p.steps, s)
	p.last = []string{s.Name}
}

// accept appends the step that accepts the release. What follows is planned next
// to it: Next holds back what would mutate or run a script until it is accepted,
// so that one decision covers both.
func (p *planner) accept() {
	p.steps = append(p.steps, PlannedStep{
		Name: acceptStep, Kind: StepAccept, Needs: slices.Clone(p.last), Reason: "a runner runs only scripts of a release that was accepted",
	})
}

// secrets appends the step that waits for the customer's secrets. It is next to the
// acceptance, in whose plan the runner makes those that it is to make.
func (p *planner) secrets() {
	if p.in.Secrets {
		p.add(PlannedStep{Name: "secrets", Kind: StepSecrets, Reason: "the release needs secrets that the customer keeps"})
	}
}

// sandboxName is what the sandbox is called, where components have names.
const sandboxName = "sandbox"

// sandbox appends the step that deploys the sandbox.
func (p *planner) sandbox(reason string) {
	p.add(PlannedStep{Name: sandboxName, Kind: StepDeploy, Resource: sandboxName, Sandbox: true, Reason: reason})
}

// deploySelected appends what a deploy names: the sandbox first, which no deploy
// moves that does not name it, then components.
func (p *planner) deploySelected() error {
	isSandbox := func(name string) bool {
		return name == sandboxName && p.in.HasSandbox && !slices.ContainsFunc(p.in.Components, func(c PlanComponent) bool { return c.Name == name })
	}
	components := slices.DeleteFunc(slices.Clone(p.in.Selected), isSandbox)
	sandbox := len(components) < len(p.in.Selected)
	if sandbox {
		p.sandbox(cmp.Or(p.in.Because, "asked for"))
	}
	p.syncSecretsIfAny()
	if sandbox && len(components) == 0 {
		return nil
	}
	if len(components) == 0 {
		return p.deploy(nil)
	}
	why := map[string]string{}
	for _, name := range components {
		why[name] = cmp.Or(p.in.Because, "asked for")
	}
	if p.in.WithDependents {
		p.addDependents(why)
	}
	return p.deploy(why)
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
		if h.Trigger != trigger || h.Component != component && h.Component != "" {
			continue // of another component; one that names none is of every component
		}
		if !slices.ContainsFunc(hooks, func(x PlanHook) bool { return x.Action == h.Action }) {
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
			Needs: slices.Clone(after), Reason: "trigger " + trigger, Toggle: component, SwitchedOff: p.removingOff, Role: p.in.Roles[h.Action],
		})
		after = []string{name}
	}
	return after
}

// deploy appends the components that why has a reason for, side by side where
// nothing orders them. When why is nil these are all that are on, and what is off
// and was made is removed.
func (p *planner) deploy(why map[string]string) error {
	chosen, err := p.choose(why)
	if err != nil {
		return err
	}
	all := why == nil
	if all {
		p.hooks("pre-deploy-all-components")
	}
	base := slices.Clone(p.last)
	var off removal
	if all {
		off = p.switchedOff(chosen)
	}
	leaves := p.remove(&off, false, func(string) []string { return base })
	ends := map[string][]string{} // component → what its dependents come after
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
		after = append(after, off.dependents(c.Name)...) // gone before it moves
		if c.Plugin {
			after = append(after, acceptStep)
		}
		if p.enables(c) {
			after = p.hooksAfter(after, "pre-enable-component", c.Name)
		}
		after = p.hooksAfter(after, "pre-deploy-component", c.Name)
		step := PlannedStep{
			Name: "component/" + c.Name, Kind: StepDeploy, Resource: c.Name,
			Needs: after, Reason: cmp.Or(why[c.Name], p.in.Because, "every component of the release is deployed"), MaxRetries: c.MaxRetries, Toggle: c.Name,
		}
		p.steps = append(p.steps, step)
		ends[c.Name] = p.hooksAfter([]string{step.Name}, "post-deploy-component", c.Name)
		if p.enables(c) {
			ends[c.Name] = p.hooksAfter(ends[c.Name], "post-enable-component", c.Name)
		}
		leaves = append(leaves, ends[c.Name]...)
	}
	leaves = append(leaves, p.remove(&off, true, func(name string) []string {
		after := slices.Clone(base)
		for _, m := range p.in.Made {
			if slices.Contains(m.Needs, name) {
				after = append(after, ends[m.Name]...)
			}
		}
		return after
	})...)
	if len(leaves) > 0 {
		p.last = leaves
	}
	if all {
		p.hooks("post-deploy-all-components")
	}
	return nil
}

// noComponent names the component that was probably meant.
func noComponent(name string, known []string) error {
	return fault.Newf(fault.ErrInvalid, "the release has no component %q%s", name, place.Meant(name, known))
}

// choose says which components are deployed: those that why has a reason for, or
// all that are on when it is nil.
func (p *planner) choose(why map[string]string) (map[string]bool, error) {
	selected := slices.Sorted(maps.Keys(why))
	chosen, off := map[string]bool{}, map[string]bool{}
	for _, c := range p.in.Components {
		off[c.Name] = c.Off
		chosen[c.Name] = !c.Off && (why == nil || why[c.Name] != "")
	}
	for _, name := range selected {
		switch isOff, there := off[name]; {
		case !there:
			return nil, noComponent(name, slices.Sorted(maps.Keys(off)))
		case isOff:
			return nil, fault.With(fault.Newf(fault.ErrInvalid, "component %q is switched off in install %s", name, p.in.Install),
				fault.Code("component_off"), fault.Remedy("switch it on first: `berth installs toggle %s %s on`", p.in.Install, name))
		}
	}
	for _, c := range inOrder(p.in.Components) {
		if chosen[c.Name] && c.Misfit != "" {
			return nil, fault.With(fault.Newf(fault.ErrConflict, "what install %s overrides of component %q does not fit: %s", p.in.Install, c.Name, c.Misfit),
				fault.Code("override_misfit"), fault.Remedy("correct the file of the install, and run `berth installs sync`"))
		}
		for _, need := range c.Needs {
			if chosen[c.Name] && off[need] {
				return nil, fault.With(fault.Newf(fault.ErrConflict, "component %q needs %q, which is switched off in install %s", c.Name, need, p.in.Install),
					fault.Code("component_off"), fault.Remedy("switch %q on (`berth installs toggle %s %s on`), or %q off", need, p.in.Install, need, c.Name))
			}
		}
	}
	return chosen, nil
}

// checks appends every health check, side by side, behind everything, and then the gate.
func (p *planner) checks() {
	base := append(slices.Clone(p.last), acceptStep) // they are scripts
	var names []string
	for _, c := range slices.Sorted(slices.Values(p.in.Checks)) {
		name := "check/" + c
		p.steps = append(p.steps, PlannedStep{Name: name, Kind: StepCheck, Action: c, Needs: slices.Clone(base), Reason: "shows that the install is healthy"})
		names = append(names, name)
	}
	if len(names) > 0 {
		p.last = names
	}
	p.gate()
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
