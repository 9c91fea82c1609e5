package flow

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/services/internal/fault"
)

// kinds has the steps of each kind of workflow.
var kinds = map[Kind]func(*planner) error{
	KindProvision: func(p *planner) error {
		p.stackAndRunner()
		p.accept()
		p.secrets()
		p.hooks("pre-provision")
		if p.in.HasSandbox {
			p.sandbox("components stand on the sandbox")
			p.hooks("post-provision-sandbox")
		}
		p.syncSecrets()
		return p.deployAll("post-provision")
	},
	KindReprovision: func(p *planner) error {
		p.stackAndRunner()
		p.accept()
		p.secrets()
		p.hooks("pre-reprovision")
		if p.in.HasSandbox {
			p.sandbox("components stand on the sandbox")
		}
		p.syncSecrets()
		return p.deployAll("post-reprovision")
	},
	KindReprovisionSandbox: (*planner).reprovisionSandbox,
	KindDeploy: func(p *planner) error {
		p.runner()
		p.accept()
		p.secrets()
		if err := p.deploySelected(); err != nil {
			return err
		}
		p.checks()
		return nil
	},
	KindToggle:      (*planner).toggle,
	KindRollback:    (*planner).rollback,
	KindInputUpdate: (*planner).inputUpdate,
	KindSyncSecrets: (*planner).syncSecretsAlone,
	KindActionRun:   (*planner).actionRun,
	KindRunScript:   (*planner).runScript,
	KindRoleSwitch:  (*planner).roleSwitch,
	KindRunnerUpdate: func(p *planner) error {
		p.runner()
		p.add(PlannedStep{Name: "runner_update", Kind: StepRunner, Reason: "asked for"})
		return nil
	},
	KindTeardown: func(p *planner) error {
		p.runner()
		return p.teardownSelected()
	},
	KindTeardownAll: func(p *planner) error {
		p.runner()
		p.teardownAll("every component is removed")
		return nil
	},
	KindRemoveOrphans: func(p *planner) error {
		p.runner()
		return p.removeOrphans()
	},
	KindDeprovisionSandbox: func(p *planner) error {
		p.runner()
		return p.deprovisionSandbox()
	},
	KindDeprovision: func(p *planner) error {
		p.runner()
		p.deprovision()
		return nil
	},
}

// stackAndRunner appends the steps that wait for the customer.
func (p *planner) stackAndRunner() {
	p.add(PlannedStep{Name: "stack", Kind: StepAwaitStack, Reason: "a runner gets into the account by the stack"})
	p.runner()
}

// runner appends the step that waits for the runner.
func (p *planner) runner() {
	reason := "everything after it is done by the install's runner"
	switch p.in.Kind {
	case KindActionRun, KindRoleSwitch:
		reason = "actions are run by the install's runner"
	case KindRunScript:
		reason = "scripts are run by the install's runner"
	}
	p.add(PlannedStep{Name: "runner", Kind: StepAwaitRunner, Reason: reason})
}

// deployAll appends every component, the actions of the point that follows them,
// and the checks.
func (p *planner) deployAll(after string) error {
	if err := p.deploy(nil); err != nil {
		return err
	}
	p.hooks(after)
	p.checks()
	return nil
}

// reprovisionSandbox appends the sandbox, and the components unless these are left
// alone.
func (p *planner) reprovisionSandbox() error {
	p.runner()
	p.accept()
	if !p.in.HasSandbox {
		return fault.Newf(fault.ErrInvalid, "the app of install %s has no sandbox", p.in.Install)
	}
	p.secrets()
	p.hooks("pre-reprovision-sandbox")
	p.sandbox("asked for")
	p.syncSecrets()
	if !p.in.WithoutComponents {
		return p.deployAll("post-reprovision-sandbox")
	}
	p.hooks("post-reprovision-sandbox")
	p.checks()
	return nil
}

// rollback appends what goes back: all of the release, and the sandbox first when it
// moved since; else what is named.
func (p *planner) rollback() error {
	p.runner()
	p.accept()
	p.secrets()
	if len(p.in.Selected) == 0 && p.in.HasSandbox && p.in.SandboxMoved {
		p.sandbox(p.in.Because)
	}
	if err := p.deploySelected(); err != nil {
		return err
	}
	p.checks()
	return nil
}

func (p *planner) actionRun() error {
	p.runner()
	kind, role := StepAction, p.in.Roles[p.in.Action]
	if slices.Contains(p.in.Checks, p.in.Action) {
		kind = StepCheck
	}
	if kind == StepCheck || role != "" { // the runner runs either only as it was accepted
		p.accept()
		p.last = append(p.last, acceptStep)
	}
	p.add(PlannedStep{Name: "action/" + p.in.Action, Kind: kind, Action: p.in.Action, Reason: cmp.Or(p.in.Because, "asked for"), Role: role})
	return nil
}

// inputUpdate appends what refers to changed inputs: the sandbox with everything
// after it, else the components that refer to them, with what needs those.
func (p *planner) inputUpdate() error {
	p.runner()
	p.accept()
	p.secrets()
	p.hooks("pre-update-inputs")
	if p.in.HasSandbox && len(p.in.SandboxRefers) > 0 {
		p.sandbox(refersTo(p.in.SandboxRefers))
		p.syncSecrets()
		return p.deployAll("post-update-inputs")
	}
	p.syncSecretsIfAny()
	why := map[string]string{}
	for _, c := range p.in.Components {
		switch {
		case c.Off:
		case len(c.Refers) > 0:
			why[c.Name] = refersTo(c.Refers)
		case c.Overridden:
			why[c.Name] = "what the install overrides of it changed"
		}
	}
	p.addDependents(why)
	if err := p.deploy(why); err != nil {
		return err
	}
	p.hooks("post-update-inputs")
	p.checks()
	return nil
}

// refersTo says which changed inputs something refers to.
func refersTo(inputs []string) string {
	if len(inputs) == 1 {
		return "refers to input " + inputs[0]
	}
	return "refers to inputs " + strings.Join(inputs, ", ")
}

// addDependents adds to why the components that are on and need one that it has,
// also over others: "needs api".
func (p *planner) addDependents(why map[string]string) {
	var on []PlanMade
	for _, c := range p.in.Components {
		if !c.Off {
			on = append(on, PlanMade{Name: c.Name, Needs: c.Needs})
		}
	}
	for _, d := range dependentsOf(on, why) {
		why[d.name] = "needs " + d.needs
	}
}

// Moved is what of an install's inputs changed: names of inputs, and components
// whose override did. All says that every input counts as changed.
type Moved struct {
	Inputs, Overrides []string
	All               bool
}
