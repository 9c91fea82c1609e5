package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/drawing"
)

// Tree draws the graph for a terminal: below each component what it needs, with
// the reasons, starting from those that nothing needs; then what is deployed
// side by side, and what waits for itself. A component's own needs are drawn
// once.
func (g *Graph) Tree() string {
	t := treeDrawing{g: g, drawn: map[string]bool{}}
	for _, root := range g.roots() {
		t.root(root)
	}
	for _, name := range g.Nodes {
		if !t.drawn[name] { // only cycles lead here
			t.root(name)
		}
	}
	for i, layer := range g.Layers() {
		if i == 0 {
			t.b.WriteString("\ndeployed side by side, one layer after the other:\n")
		}
		fmt.Fprintf(&t.b, "%3d  %s\n", i+1, strings.Join(layer, ", "))
	}
	for _, cycle := range g.Cycles() {
		fmt.Fprintf(&t.b, "\nwait for each other: %s\n", wayAround(cycle))
		for _, e := range cycle {
			for _, reason := range e.Reasons {
				fmt.Fprintf(&t.b, "  %s needs %s: %s\n", e.From, e.To, reason)
			}
		}
	}
	return t.b.String()
}

// roots are the components that nothing needs.
func (g *Graph) roots() []string {
	needed := map[string]bool{}
	for _, e := range g.Edges {
		needed[e.To] = true
	}
	return slices.DeleteFunc(slices.Clone(g.Nodes), func(name string) bool { return needed[name] })
}

type treeDrawing struct {
	g     *Graph
	b     strings.Builder
	drawn map[string]bool
	above []string // from the root to here
}

func (t *treeDrawing) root(name string) {
	fmt.Fprintf(&t.b, "%s (%s)\n", name, t.g.types[name])
	t.below(name, "")
}

// below draws what a component needs.
func (t *treeDrawing) below(name, indent string) {
	t.drawn[name] = true
	t.above = append(t.above, name)
	defer func() { t.above = t.above[:len(t.above)-1] }()
	edges := slices.DeleteFunc(slices.Clone(t.g.Edges), func(e Edge) bool { return e.From != name })
	for i, e := range edges {
		branch, rail := "├─ ", "│  "
		if i == len(edges)-1 {
			branch, rail = "└─ ", "   "
		}
		note := ""
		again := t.drawn[e.To]
		if hasNeeds := len(t.g.Needs(e.To)) > 0; again && slices.Contains(t.above, e.To) {
			note = " (waits for itself)"
		} else if again && hasNeeds {
			note = " (see above)"
		}
		fmt.Fprintf(&t.b, "%s%s%s (%s)%s\n", indent, branch, e.To, t.g.types[e.To], note)
		stem := indent + rail + "     "
		if !again && len(t.g.Needs(e.To)) > 0 {
			stem = indent + rail + "│    "
		}
		for _, reason := range e.Reasons {
			fmt.Fprintf(&t.b, "%s%s\n", stem, reason)
		}
		if !again {
			t.below(e.To, indent+rail)
		}
	}
}

// DOT writes the graph in the language of Graphviz, an arrow from each
// component to what it needs. What is only implied is dashed, and the edges of
// cycles are red.
func (g *Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph components {\n  rankdir = BT\n  node [shape = box]\n")
	for _, name := range g.Nodes {
		fmt.Fprintf(&b, "  %s [label = %s]\n", dotQuote(name), dotQuote(name+"\n"+string(g.types[name])))
	}
	cyclic := g.cyclic()
	for _, e := range g.Edges {
		var lines []string
		for _, reason := range e.Reasons {
			lines = append(lines, reason.String())
		}
		attributes := "tooltip = " + dotQuote(strings.Join(lines, "\n"))
		if !e.explicit() {
			attributes += ", style = dashed"
		}
		if cyclic[[2]string{e.From, e.To}] {
			attributes += ", color = red"
		}
		fmt.Fprintf(&b, "  %s -> %s [%s]\n", dotQuote(e.From), dotQuote(e.To), attributes)
	}
	return b.String() + "}\n"
}

// Mermaid writes the graph as a Mermaid flowchart, as Markdown pages show it.
// Arrows go from each component to what it needs and say where that is
// written first; what is only implied is dotted.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart BT\n")
	ids := map[string]string{} // names may be words of the language
	for i, name := range g.Nodes {
		ids[name] = "c" + strconv.Itoa(i)
		fmt.Fprintf(&b, "  %s[\"%s<br>%s\"]\n", ids[name], mermaidText(name), mermaidText(string(g.types[name])))
	}
	cyclic, red := g.cyclic(), []string{}
	for i, e := range g.Edges {
		arrow := "-->"
		if !e.explicit() {
			arrow = "-.->"
		}
		first := e.Reasons[0]
		fmt.Fprintf(&b, "  %s %s|\"%s\"| %s\n", ids[e.From], arrow, mermaidText(first.File+":"+strconv.Itoa(first.Line)), ids[e.To])
		if cyclic[[2]string{e.From, e.To}] {
			red = append(red, strconv.Itoa(i))
		}
	}
	if len(red) > 0 {
		fmt.Fprintf(&b, "  linkStyle %s stroke:red\n", strings.Join(red, ","))
	}
	return b.String()
}

// SVG draws the graph as a picture: what is needed at the left of what needs it. What is
// only implied is dashed, and the reasons are shown when the pointer rests on a line.
func (g *Graph) SVG(title string) string {
	var nodes []drawing.Node
	for _, name := range g.Nodes {
		nodes = append(nodes, drawing.Node{Name: name, Title: name, Text: string(g.types[name])})
	}
	var arrows []drawing.Arrow
	for _, e := range g.Edges {
		arrow := drawing.Arrow{Edge: drawing.Edge{From: e.From, To: e.To}, Implied: !e.explicit()}
		for _, reason := range e.Reasons {
			arrow.Why = append(arrow.Why, reason.String())
		}
		arrows = append(arrows, arrow)
	}
	return drawing.SVG(title, nodes, arrows)
}

// explicit tells whether the edge is written in `dependencies`.
func (e Edge) explicit() bool {
	return slices.ContainsFunc(e.Reasons, func(r Reason) bool { return r.Explicit })
}

// cyclic has the edges that are part of a cycle.
func (g *Graph) cyclic() map[[2]string]bool {
	found := map[[2]string]bool{}
	for _, cycle := range g.Cycles() {
		for _, e := range cycle {
			found[[2]string{e.From, e.To}] = true
		}
	}
	return found
}

// dotQuote writes a string of DOT, which knows no other escapes than these.
func dotQuote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

var mermaidEscapes = strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "\n", " ")

func mermaidText(text string) string { return mermaidEscapes.Replace(text) }
