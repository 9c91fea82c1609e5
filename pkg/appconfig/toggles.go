package appconfig

import (
	"fmt"
	"slices"
)

// ToggleConflict tells that a component that is on needs one that is off, because
// of what is said of Component.
type ToggleConflict struct {
	Component string
	Message   string
}

// EnabledIn tells whether an install with these toggles gets the component. What
// they say of one that is not toggleable counts for nothing.
func (c *Component) EnabledIn(toggles map[string]bool) bool {
	if on, said := toggles[c.Name]; said && c.Toggleable {
		return on
	}
	return c.EnabledByDefault()
}

// ToggleConflicts lists what toggles say that cannot be: a component is on though
// it needs, by its own word or by what it reads, one that is off. What conflicts
// by the app's defaults alone is not listed.
func ToggleConflicts(app *App, toggles map[string]bool) []ToggleConflict {
	g, _ := NewGraph(app)
	var all []ToggleConflict
	for _, e := range g.Edges {
		if !app.Component(e.From).EnabledIn(toggles) || app.Component(e.To).EnabledIn(toggles) {
			continue
		}
		_, saidTo := toggles[e.To]
		_, saidFrom := toggles[e.From]
		switch {
		case saidTo:
			all = append(all, ToggleConflict{e.To, fmt.Sprintf("component %q cannot be off while %q, which needs it, is on: %s", e.To, e.From, e.Reasons[0])})
		case saidFrom:
			all = append(all, ToggleConflict{e.From, fmt.Sprintf("component %q cannot be on while %q, which it needs, is off: %s", e.From, e.To, e.Reasons[0])})
		}
	}
	return all
}

// ActionNeedsAny tells whether an action needs, by its own word or by what it
// reads, one of the components that are out.
func (a *App) ActionNeedsAny(action *Action, out func(component string) bool) bool {
	if slices.ContainsFunc(action.Dependencies, out) {
		return true
	}
	for _, t := range templatesOf(action.At, action) {
		refs, err := t.references()
		if err != nil {
			continue // Validate reports it
		}
		for _, ref := range refs {
			if slices.ContainsFunc(a.componentsRead(ref.Path), out) {
				return true
			}
		}
	}
	return false
}
