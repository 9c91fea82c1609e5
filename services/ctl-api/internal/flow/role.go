package flow

// roleSwitch appends the actions that the switch of a role starts, by index. Those of a
// role that was switched off run without it, so they do not wait for it.
func (p *planner) roleSwitch() error {
	p.runner()
	p.accept()
	p.last = append(p.last, acceptStep)
	if p.in.Switch == "role-disabled" {
		p.in.Roles = nil
	}
	before := len(p.steps)
	p.hooks(p.in.Switch)
	for i := range p.steps[before:] {
		p.steps[before+i].Reason += " of role " + p.in.Switched
	}
	return nil
}

// holdOf is why an approved change is not carried out now: for a reason of the install, or
// because the role of its action is off; nil for no reason.
func (s State) holdOf(step Step) *Hold {
	if s.Hold != nil {
		return s.Hold
	}
	if step.Hold != nil {
		return step.Hold
	}
	return step.Change.ConsentHold()
}
