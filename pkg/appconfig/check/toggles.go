package check

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
)

// ToggleConflict tells that a component that is on needs one that is off, because
// of what is said of Component.
type ToggleConflict struct {
	Component string
	Message   string
}

// ToggleConflicts lists what toggles say that cannot be: a component is on though
// it needs, by its own word or by what it reads, one that is off. What conflicts
// by the app's defaults alone is not listed.
func ToggleConflicts(app *appconfig.App, toggles map[string]bool) []ToggleConflict {
	g, _ := graph.New(app)
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
