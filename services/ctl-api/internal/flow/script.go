package flow

import (
	"maps"
	"slices"

	"github.com/berth-dev/berth/services/internal/model"
)

// scriptStep is the name of the step that runs a script which is part of no release.
const scriptStep = "script"

// runScript appends the script. It is accepted with no release: what people decide on is
// the script itself. While it runs it holds the component that it is about, else the
// sandbox, which keeps everything else of the install from changing. An install without a
// sandbox has nothing to hold.
func (p *planner) runScript() error {
	p.runner()
	s := PlannedStep{Name: scriptStep, Kind: StepScript, Action: p.in.Action, Reason: "asked for"}
	switch {
	case p.in.Component != "":
		known := map[string]bool{}
		for _, c := range p.in.Components {
			known[c.Name] = true
		}
		if !known[p.in.Component] {
			return noComponent(p.in.Component, slices.Sorted(maps.Keys(known)))
		}
		s.Resource = p.in.Component
	case p.in.HasSandbox:
		s.Resource, s.Sandbox = sandboxName, true
	}
	p.add(s)
	return nil
}

// maybeRan tells whether a step's script may have run, which nobody knows: no plan can
// look. What it does twice is not known either, so only a person starts it again.
func maybeRan(step Step) bool {
	return (step.Kind == StepScript || step.Kind == StepAction) && step.Change.State == model.ChangeUncertain
}

// looksFirst fails the step of such a script.
func looksFirst(c *Change) Decision {
	return Decision{
		Do: DoFailStep, Error: orElse(c.Error, "it is not known whether the script ran"),
		Remedy: "read its log and look at what it changes; retry the step only if it may run once more",
	}
}
