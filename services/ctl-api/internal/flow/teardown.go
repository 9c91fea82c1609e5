package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Removes lists what the steps of a workflow remove, in their order: "component
// web", "sandbox".
func Removes(steps []PlannedStep) []string {
	var goes []string
	for _, s := range steps {
		switch {
		case s.Kind == StepTeardown && s.Sandbox:
			goes = append(goes, "the sandbox")
		case s.Kind == StepTeardown && s.Copies:
			goes = append(goes, "the copies of secrets")
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
	reason  string              // of each that why has none for
	why     map[string]string
	off     bool // it is removed because it is switched off
}

// newRemoval takes the components of a list.
func newRemoval(list []PlanMade, reason string) removal {
	r := removal{late: map[string]bool{}, ends: map[string][]string{}, reason: reason}
	var components []PlanComponent
	for _, m := range list {
		components = append(components, PlanComponent{Name: m.Name, Needs: m.Needs, MaxRetries: m.MaxRetries})
	}
	for _, c := range inOrder(components) {
		r.ordered = append(r.ordered, PlanMade{Name: c.Name, Needs: c.Needs, MaxRetries: c.MaxRetries})
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
	p.removingOff = r.off
	defer func() { p.removingOff = false }()
	var leaves []string
	for _, m := range r.ordered {
		if r.late[m.Name] != late {
			continue
		}
		needs := append(slices.Clone(after(m.Name)), r.dependents(m.Name)...)
		if r.off {
			needs = p.hooksAfter(needs, "pre-disable-component", m.Name)
		}
		needs = p.hooksAfter(needs, "pre-teardown-component", m.Name)
		name := "component/" + m.Name
		step := PlannedStep{
			Name: name, Kind: StepTeardown, Resource: m.Name, Needs: needs, Reason: cmp.Or(r.why[m.Name], r.reason), MaxRetries: m.MaxRetries, SwitchedOff: r.off,
		}
		if r.off {
			step.Toggle = m.Name
		}
		p.steps = append(p.steps, step)
		r.ends[m.Name] = p.hooksAfter([]string{name}, "post-teardown-component", m.Name)
		if r.off {
			r.ends[m.Name] = p.hooksAfter(r.ends[m.Name], "post-disable-component", m.Name)
		}
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
	r.off = true
	for _, m := range r.ordered {
		for _, other := range p.in.Made {
			if (deployed[other.Name] || r.late[other.Name]) && slices.Contains(other.Needs, m.Name) {
				r.late[m.Name] = true
			}
		}
	}
	return r
}

// deprovision appends the removal of all that was made: what stands on something
// goes first, the sandbox last.
func (p *planner) deprovision() {
	p.hooks("pre-deprovision")
	p.teardownAll("it was made")
	p.removeSandbox("it was made; nothing stands on it any more")
	p.hooks("post-deprovision")
	p.forget()
}

// forget appends the step that accepts no script any more; none where nothing was
// made, since nobody may be there to forget anything.
func (p *planner) forget() {
	if len(p.in.Made) > 0 || p.in.CopiesMade {
		p.add(PlannedStep{Name: "scripts", Kind: StepForget, Reason: "nothing is left that a script could look after"})
	}
}

// removeSandbox appends the removal of the sandbox, if it was made.
// The copies of secrets in its cluster go before.
func (p *planner) removeSandbox(reason string) {
	p.removeCopies()
	if slices.ContainsFunc(p.in.Made, func(m PlanMade) bool { return m.Sandbox }) {
		p.add(PlannedStep{Name: sandboxName, Kind: StepTeardown, Resource: sandboxName, Sandbox: true, Reason: reason})
	}
}

// teardownAll appends the removal of every component that was made.
func (p *planner) teardownAll(reason string) {
	p.hooks("pre-teardown-all-components")
	all := newRemoval(p.madeComponents(), reason)
	p.removeNow(&all)
	p.hooks("post-teardown-all-components")
}

// removeNow appends a whole removal behind everything so far.
func (p *planner) removeNow(r *removal) {
	base := slices.Clone(p.last)
	if leaves := p.remove(r, false, func(string) []string { return base }); len(leaves) > 0 {
		p.last = leaves
	}
}

// madeComponents is what was made without the sandbox.
func (p *planner) madeComponents() []PlanMade {
	return slices.DeleteFunc(slices.Clone(p.in.Made), func(m PlanMade) bool { return m.Sandbox })
}

// teardownSelected appends the removal of the selected components, with what stands
// on them when that is wanted.
func (p *planner) teardownSelected() error {
	made := p.madeComponents()
	names := make([]string, 0, len(made))
	for _, m := range made {
		names = append(names, m.Name)
	}
	if len(p.in.Selected) == 0 {
		return fault.Newf(fault.ErrInvalid, "a teardown names its components; teardown_all removes every one of install %s", p.in.Install)
	}
	why := map[string]string{}
	for _, name := range p.in.Selected {
		if !slices.Contains(names, name) {
			return p.nothingThere(name, names)
		}
		why[name] = "asked for"
	}
	standing := dependentsOf(made, why)
	if len(standing) > 0 && !p.in.WithDependents {
		return fault.With(fault.Newf(fault.ErrConflict, "%s", stillNeeded(standing)), fault.Code("has_dependents"),
			fault.Remedy("remove them together: `berth installs teardown %s %s --with-dependents`", p.in.Install, strings.Join(p.in.Selected, " ")))
	}
	for _, d := range standing {
		why[d.name] = "needs " + d.needs
	}
	p.removeThese(why)
	return nil
}

// nothingThere refuses to remove what is not there.
func (p *planner) nothingThere(name string, made []string) error {
	for _, c := range p.in.Components {
		if c.Name == name {
			return fault.With(fault.Newf(fault.ErrInvalid, "nothing of component %q is there in install %s", name, p.in.Install), fault.Code("nothing_there"))
		}
	}
	return fault.With(fault.Newf(fault.ErrInvalid, "install %s has no component %q%s", p.in.Install, name, place.Meant(name, made)), fault.Code("nothing_there"))
}

// removeOrphans appends the removal of what is no longer part of the app, the
// selected ones of it when some are. What stands on an orphan has to be deployed
// with a release that does not have that before.
func (p *planner) removeOrphans() error {
	why, names := map[string]string{}, []string{}
	for _, m := range p.madeComponents() {
		if m.Orphan {
			names = append(names, m.Name)
			if len(p.in.Selected) == 0 || slices.Contains(p.in.Selected, m.Name) {
				why[m.Name] = "it is no longer part of the app"
			}
		}
	}
	for _, name := range p.in.Selected {
		if why[name] == "" {
			return fault.With(fault.Newf(fault.ErrInvalid, "component %q of install %s is not orphaned%s", name, p.in.Install, place.Meant(name, names)), fault.Code("not_orphaned"),
				fault.Remedy("`berth installs resources %s` shows what is; `berth installs teardown` removes a component that the app has", p.in.Install))
		}
	}
	if standing := dependentsOf(p.madeComponents(), why); len(standing) > 0 {
		return fault.With(fault.Newf(fault.ErrConflict, "%s", stillNeeded(standing)), fault.Code("has_dependents"),
			fault.Remedy("deploy a release in which they do not need it first: `berth deploy %s`", p.in.Install))
	}
	p.removeThese(why)
	return nil
}

// removeThese appends the removal of the components that why has a reason for.
func (p *planner) removeThese(why map[string]string) {
	list := slices.DeleteFunc(p.madeComponents(), func(m PlanMade) bool { return why[m.Name] == "" })
	r := newRemoval(list, "")
	r.why = why
	p.removeNow(&r)
}

// deprovisionSandbox appends the removal of the sandbox: with what stands on it when
// that is wanted, else only once nothing does.
func (p *planner) deprovisionSandbox() error {
	var names []string
	for _, m := range p.madeComponents() {
		names = append(names, m.Name)
	}
	if len(names) > 0 && !p.in.WithDependents {
		slices.Sort(names)
		return fault.With(fault.Newf(fault.ErrConflict, "components stand on the sandbox of install %s: %s", p.in.Install, strings.Join(names, ", ")), fault.Code("has_dependents"),
			fault.Remedy("remove them first (`berth installs teardown %s --all`), or together with it: --with-dependents", p.in.Install))
	}
	if len(names) > 0 {
		p.teardownAll("needs the sandbox")
	}
	p.hooks("pre-deprovision-sandbox")
	p.removeSandbox("asked for")
	p.hooks("post-deprovision-sandbox")
	p.forget()
	return nil
}

// dependent is a component that stands on another one.
type dependent struct{ name, needs string }

// dependentsOf lists, by name, what stands on components that why has a reason for,
// also over others, and has none itself.
func dependentsOf(made []PlanMade, why map[string]string) []dependent {
	going := maps.Clone(why)
	var all []dependent
	for more := true; more; {
		more = false
		for _, m := range made {
			i := slices.IndexFunc(m.Needs, func(n string) bool { return going[n] != "" })
			if going[m.Name] != "" || i < 0 {
				continue
			}
			going[m.Name], more = m.Needs[i], true
			all = append(all, dependent{m.Name, m.Needs[i]})
		}
	}
	slices.SortFunc(all, func(a, b dependent) int { return strings.Compare(a.name, b.name) })
	return all
}

// stillNeeded names what stands on what is to be removed.
func stillNeeded(standing []dependent) string {
	var parts []string
	for _, d := range standing {
		parts = append(parts, fmt.Sprintf("component %q needs %q", d.name, d.needs))
	}
	return strings.Join(parts, ", ")
}
