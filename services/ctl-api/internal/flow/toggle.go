package flow

import (
	"slices"

	"github.com/berth-dev/berth/services/internal/fault"
)

// toggle appends what it takes that the install is as its toggles say: of the named
// components, or of all, what is off and there is removed, then what is on and not
// there is deployed, with what that needs and is not there either. A component that is
// named and on is deployed in any case: its last deploy may have failed.
func (p *planner) toggle() error {
	p.runner()
	p.accept()
	p.secrets()
	going, err := p.disabled()
	if err != nil {
		return err
	}
	coming, err := p.enabled()
	if err != nil {
		return err
	}
	off := newRemoval(slices.DeleteFunc(p.madeComponents(), func(m PlanMade) bool { return !going[m.Name] }), "it was switched off in this install")
	off.off = true
	p.removeNow(&off)
	if len(coming) > 0 {
		p.syncSecretsIfAny()
		if err := p.deploy(coming); err != nil {
			return err
		}
	}
	p.checks()
	return nil
}

// disabled are the components to remove.
//
// Errors: ErrConflict with code has_dependents when something that stays stands on one.
func (p *planner) disabled() (map[string]bool, error) {
	going, why := map[string]bool{}, map[string]string{}
	for _, c := range p.in.Components {
		if c.Off && p.toggles(c.Name) && p.isMade(c.Name) {
			going[c.Name], why[c.Name] = true, "off"
		}
	}
	if standing := dependentsOf(p.madeComponents(), why); len(standing) > 0 {
		return nil, fault.With(fault.Newf(fault.ErrConflict, "%s", stillNeeded(standing)), fault.Code("has_dependents"),
			fault.Remedy("deploy a release in which they do not need it: `berth deploy %s` does so, and removes what is off", p.in.Install))
	}
	return going, nil
}

// enabled says why components are deployed.
//
// Errors: ErrInvalid for a named one that the release does not have.
func (p *planner) enabled() (map[string]string, error) {
	why, byName := map[string]string{}, map[string]PlanComponent{}
	var names []string
	for _, c := range p.in.Components {
		byName[c.Name], names = c, append(names, c.Name)
		if !c.Off && p.toggles(c.Name) && (len(p.in.Selected) > 0 || c.SwitchedOn && !p.isMade(c.Name)) {
			why[c.Name] = "it was switched on in this install"
		}
	}
	for _, name := range p.in.Selected {
		if _, there := byName[name]; !there {
			return nil, noComponent(name, names)
		}
	}
	ordered := inOrder(p.in.Components)
	slices.Reverse(ordered)
	for _, c := range ordered {
		for _, need := range c.Needs {
			if n, there := byName[need]; there && why[c.Name] != "" && why[need] == "" && !n.Off && !p.isMade(need) {
				why[need] = "needed by " + c.Name
			}
		}
	}
	return why, nil
}

// toggles tells whether a toggle of a component is to take effect.
func (p *planner) toggles(name string) bool {
	return len(p.in.Selected) == 0 || slices.Contains(p.in.Selected, name)
}

func (p *planner) isMade(name string) bool {
	return slices.ContainsFunc(p.in.Made, func(m PlanMade) bool { return !m.Sandbox && m.Name == name })
}

// enables tells whether the deploy of a component is because it was switched on: then
// the points for that are around it.
func (p *planner) enables(c PlanComponent) bool {
	switch p.in.Kind {
	case KindToggle:
		return slices.Contains(p.in.Selected, c.Name) || c.SwitchedOn && !p.isMade(c.Name)
	case KindDeploy:
		return c.SwitchedOn && !p.isMade(c.Name)
	}
	return false
}
