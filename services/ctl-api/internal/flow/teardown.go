package flow

import (
	"slices"
)

// Removes lists what the steps of a workflow remove, in their order: "component
// web", "sandbox".
func Removes(steps []PlannedStep) []string {
	var goes []string
	for _, s := range steps {
		switch {
		case s.Kind == StepTeardown && s.Sandbox:
			goes = append(goes, "the sandbox")
		case s.Kind == StepTeardown:
			goes = append(goes, "component "+s.Resource)
		}
	}
	return goes
}

// removal is the components that a workflow removes.
type removal struct {
	ordered []PlanMade          // what stands on something comes before it
	late    map[string]bool     // those that are removed after the deploys
	ends    map[string][]string // component → what comes after its removal
	reason  string
}

// newRemoval takes the components of a list.
func newRemoval(list []PlanMade, reason string) removal {
	r := removal{late: map[string]bool{}, ends: map[string][]string{}, reason: reason}
	var components []PlanComponent
	for _, m := range list {
		components = append(components, PlanComponent{Name: m.Name, Needs: m.Needs})
	}
	for _, c := range inOrder(components) {
		r.ordered = append(r.ordered, PlanMade{Name: c.Name, Needs: c.Needs})
	}
	slices.Reverse(r.ordered)
	return r
}

// dependents lists the last steps of the removals so far of what stands on a
// component.
func (r *removal) dependents(name string) []string {
	var steps []string
	for _, m := range r.ordered {
		if slices.Contains(m.Needs, name) {
			steps = append(steps, r.ends[m.Name]...)
		}
	}
	return steps
}

// remove appends the early or the late part of a removal, dependents first, each
// behind what after says, and returns the steps that nothing of it follows.
func (p *planner) remove(r *removal, late bool, after func(component string) []string) []string {
	var leaves []string
	for _, m := range r.ordered {
		if r.late[m.Name] != late {
			continue
		}
		needs := append(slices.Clone(after(m.Name)), r.dependents(m.Name)...)
		needs = p.hooksAfter(needs, "pre-teardown-component", m.Name)
		name := "component/" + m.Name
		p.steps = append(p.steps, PlannedStep{Name: name, Kind: StepTeardown, Resource: m.Name, Needs: needs, Reason: r.reason})
		r.ends[m.Name] = p.hooksAfter([]string{name}, "post-teardown-component", m.Name)
		leaves = append(leaves, r.ends[m.Name]...)
	}
	return leaves
}

// switchedOff is what was made of components that are off. What a component that
// is deployed stood on when it was made goes late: once that one has moved, it
// stands on it no more. So does what the late ones stand on.
func (p *planner) switchedOff(deployed map[string]bool) removal {
	off := map[string]bool{}
	for _, c := range p.in.Components {
		off[c.Name] = c.Off
	}
	var list []PlanMade
	for _, m := range p.in.Made {
		if !m.Sandbox && off[m.Name] {
			list = append(list, m)
		}
	}
	r := newRemoval(list, "it is switched off in this install")
	for _, m := range r.ordered {
		for _, other := range p.in.Made {
			if (deployed[other.Name] || r.late[other.Name]) && slices.Contains(other.Needs, m.Name) {
				r.late[m.Name] = true
			}
		}
	}
	return r
}

// teardown appends the removal of all that was made: what stands on something
// goes first, the sandbox last.
func (p *planner) teardown() {
	p.hooks("pre-deprovision")
	p.hooks("pre-teardown-all-components")
	base := slices.Clone(p.last)
	var list []PlanMade
	sandbox := false
	for _, m := range p.in.Made {
		if m.Sandbox {
			sandbox = true
			continue
		}
		list = append(list, m)
	}
	all := newRemoval(list, "it was made")
	leaves := p.remove(&all, false, func(string) []string { return base })
	if len(leaves) > 0 {
		p.last = leaves
	}
	p.hooks("post-teardown-all-components")
	if sandbox {
		p.add(PlannedStep{Name: "sandbox", Kind: StepTeardown, Resource: "sandbox", Sandbox: true, Reason: "it was made; nothing stands on it any more"})
	}
	p.hooks("post-deprovision")
}
