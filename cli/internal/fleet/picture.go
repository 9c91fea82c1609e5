package fleet

import (
	"errors"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/drawing"
)

// picture draws the graph of an install as the API places it, with how each resource is.
// What the server says is text in it.
func picture(install string, g ctlapi.Graph) (string, error) {
	if len(g.Layout.Boxes) != len(g.Nodes) || len(g.Layout.Lines) != len(g.Edges) {
		return "", errors.New("the control plane answers no place in a picture for each resource: update it")
	}
	l := drawing.Layout{Width: g.Layout.Width, Height: g.Layout.Height}
	var nodes []drawing.Node
	for i, n := range g.Nodes {
		word, tone := standing(n)
		nodes = append(nodes, drawing.Node{Name: n.Name, Title: n.Name, Text: n.Type, State: word, Tone: tone})
		box := g.Layout.Boxes[i]
		l.Nodes = append(l.Nodes, drawing.Box{Point: drawing.Point{X: box.X, Y: box.Y}, Width: box.Width, Height: box.Height})
	}
	var arrows []drawing.Arrow
	for i, e := range g.Edges {
		arrow := drawing.Arrow{Edge: drawing.Edge{From: e.From, To: e.To}, Implied: true}
		for _, r := range e.Reasons {
			arrow.Implied = arrow.Implied && r.Kind != ctlapi.GraphReasonKindDependencies && r.Kind != ctlapi.GraphReasonKindOrder
			if why := r.Reference + r.KubernetesContext; why != "" {
				arrow.Why = append(arrow.Why, "because of "+why)
			}
		}
		arrows = append(arrows, arrow)
		var points []drawing.Point
		for _, p := range g.Layout.Lines[i] {
			points = append(points, drawing.Point(p))
		}
		l.Lines = append(l.Lines, points)
	}
	return drawing.Draw("Resources of "+install, l, nodes, arrows), nil
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
