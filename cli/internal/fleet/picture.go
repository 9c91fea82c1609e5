package fleet

import (
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/drawing"
)

// picture draws the graph of an install, with how each resource is. What the server says is
// text in it.
func picture(install string, g ctlapi.Graph) string {
	var nodes []drawing.Node
	for _, n := range g.Nodes {
		word, tone := standing(n)
		nodes = append(nodes, drawing.Node{Name: n.Name, Title: n.Name, Text: n.Type, State: word, Tone: tone})
	}
	needs := map[string]bool{}
	for _, e := range g.Edges {
		needs[e.From] = needs[e.From] || !ordered(e)
	}
	var arrows []drawing.Arrow
	for _, e := range g.Edges {
		if ordered(e) && needs[e.From] {
			continue // others lead the same way
		}
		arrow := drawing.Arrow{Edge: drawing.Edge{From: e.From, To: e.To}, Implied: true}
		for _, r := range e.Reasons {
			arrow.Implied = arrow.Implied && r.Kind != ctlapi.GraphReasonKindDependencies && r.Kind != ctlapi.GraphReasonKindOrder
			if why := r.Reference + r.KubernetesContext; why != "" {
				arrow.Why = append(arrow.Why, "because of "+why)
			}
		}
		arrows = append(arrows, arrow)
	}
	return drawing.SVG("Resources of "+install, nodes, arrows)
}

// ordered tells whether a need is only that the sandbox comes first.
func ordered(e ctlapi.GraphEdge) bool {
	return len(e.Reasons) > 0 && e.Reasons[0].Kind == ctlapi.GraphReasonKindOrder
}

// standing is how a resource is, in a word: its health once it is live.
func standing(n ctlapi.GraphNode) (word string, tone drawing.Tone) {
	if n.SwitchedOff {
		return "switched off", drawing.Off
	}
	if n.State == nil {
		return "", drawing.Unknown
	}
	switch *n.State {
	case ctlapi.StateOfResourceLive:
		if n.Health == nil || *n.Health == ctlapi.HealthVerdictUnknown {
			return "live", drawing.Good
		}
		if *n.Health == ctlapi.HealthVerdictHealthy {
			return "healthy", drawing.Good
		}
		return string(*n.Health), drawing.Bad
	case ctlapi.StateOfResourceChanging:
		return "changing", drawing.Busy
	case ctlapi.StateOfResourceFailed:
		return "failed", drawing.Bad
	case ctlapi.StateOfResourceUnknown, ctlapi.StateOfResourceOrphaned:
		return string(*n.State), drawing.Warn
	default:
		return string(*n.State), drawing.Unknown
	}
}
