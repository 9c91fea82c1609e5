// Package graph says which components need which, in what order that makes them
// deploy, and draws it.
package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/template"
)

// Graph says which components need which. It is what deploys and teardowns are
// ordered by.
type Graph struct {
	Nodes []string `json:"nodes"` // component names, sorted
	Edges []Edge   `json:"edges,omitempty"`

	types map[string]appconfig.ComponentType
	rank  map[string]int
	index map[[2]string]int // of Edges by From and To, while building
}

// Edge says that From needs To deployed first, and why.
type Edge struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Reasons []Reason `json:"reasons"`
}

// Reason is one thing in the folder that makes an edge.
type Reason struct {
	// Explicit is set for an entry of `dependencies`.
	Explicit bool `json:"explicit,omitempty"`
	// Reference is the path that a template reads, such as
	// ".nuon.components.api.outputs.url", when that makes the edge.
	Reference string `json:"reference,omitempty"`
	// Context is the kubernetes_context that makes the edge, to the component that
	// makes its cluster.
	Context string `json:"kubernetes_context,omitempty"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column,omitempty"` // from 1, in bytes
}

func (r Reason) String() string {
	what := "dependencies"
	switch {
	case r.Reference != "":
		what = "reads " + r.Reference
	case r.Context != "":
		what = "kubernetes_context " + r.Context
	}
	return fmt.Sprintf("%s at %s:%d", what, r.File, r.Line)
}

// New finds the edges of an app: written ones, and those implied by what
// templates read, in loaded files too. A template that reads an action's
// outputs needs that action's components. The diagnostics tell of components
// that wait for each other; the members of such a cycle are in no layer.
// References to things that do not exist make no edge; check.Validate reports them.
func New(app *appconfig.App) (*Graph, []place.Diagnostic) {
	g := &Graph{types: map[string]appconfig.ComponentType{}, rank: map[string]int{}, index: map[[2]string]int{}}
	for i := range app.Components {
		c := &app.Components[i]
		if _, twice := g.rank[c.Name]; c.Name == "" || twice {
			continue
		}
		g.Nodes = append(g.Nodes, c.Name)
		g.types[c.Name], g.rank[c.Name] = c.Type, c.Type.Rank()
		for _, need := range needsOf(app, c) {
			if need.to != c.Name {
				g.add(c.Name, need.to, need.reason)
			}
		}
	}
	slices.Sort(g.Nodes)
	slices.SortStableFunc(g.Edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return g, g.cycles(app)
}

// need is one component that another names, and where.
type need struct {
	to     string
	reason Reason
}

// needsOf lists the existing components that a component names, itself too.
func needsOf(a *appconfig.App, c *appconfig.Component) []need {
	var needs []need
	for i, dep := range c.Dependencies {
		if a.Component(dep) != nil {
			file, pos := a.Origin.Find(c.At.Below("dependencies").Item(i))
			needs = append(needs, need{dep, Reason{Explicit: true, File: file, Line: pos.Line, Column: pos.Column}})
		}
	}
	if made := a.ClusterMaker(c.KubernetesContext); made != "" {
		file, pos := a.Origin.Find(c.At.Below("kubernetes_context"))
		needs = append(needs, need{made, Reason{Context: c.KubernetesContext, File: file, Line: pos.Line, Column: pos.Column}})
	}
	for _, t := range template.In(c.At, c) {
		refs, err := t.References()
		if err != nil {
			continue // check.Validate reports it
		}
		for _, ref := range refs {
			file, pos := t.PositionOf(&a.Origin, ref)
			for _, name := range a.ComponentsRead(ref.Path) {
				needs = append(needs, need{name, Reason{Reference: ref.String(), File: file, Line: pos.Line, Column: pos.Column}})
			}
		}
	}
	return needs
}

func (g *Graph) add(from, to string, reason Reason) {
	i, known := g.index[[2]string{from, to}]
	if !known {
		i = len(g.Edges)
		g.index[[2]string{from, to}] = i
		g.Edges = append(g.Edges, Edge{From: from, To: to})
	}
	if !slices.Contains(g.Edges[i].Reasons, reason) {
		g.Edges[i].Reasons = append(g.Edges[i].Reasons, reason)
	}
}

// Needs returns what a component needs directly, sorted.
func (g *Graph) Needs(name string) []string {
	var out []string
	for _, e := range g.Edges {
		if e.From == name {
			out = append(out, e.To)
		}
	}
	return out
}

// Layers groups the components so that each needs only components of earlier
// layers; those of one layer can be deployed side by side.
func (g *Graph) Layers() [][]string {
	var layers [][]string
	w := g.waiting()
	for layer := w.ready(); len(layer) > 0; {
		slices.SortFunc(layer, g.compare)
		layers = append(layers, layer)
		var next []string
		for _, name := range layer {
			next = append(next, w.finish(name)...)
		}
		layer = next
	}
	return layers
}

// Order is one sequence in which every component comes after what it needs.
// Where two could come next, images go first, then Terraform, then charts, then
// the rest; then by name. Teardown is the reverse.
func (g *Graph) Order() []string {
	var order []string
	w := g.waiting()
	ready := w.ready()
	slices.SortFunc(ready, g.compare)
	for len(ready) > 0 {
		first := ready[0]
		ready = ready[1:]
		order = append(order, first)
		for _, name := range w.finish(first) {
			at, _ := slices.BinarySearchFunc(ready, name, g.compare)
			ready = slices.Insert(ready, at, name)
		}
	}
	return order
}

// waiting counts for each component how many of its needs are not done.
type waiting struct {
	nodes      []string
	count      map[string]int
	dependents map[string][]string
}

func (g *Graph) waiting() waiting {
	w := waiting{nodes: g.Nodes, count: map[string]int{}, dependents: map[string][]string{}}
	for _, e := range g.Edges {
		w.count[e.From]++
		w.dependents[e.To] = append(w.dependents[e.To], e.From)
	}
	return w
}

// ready lists the components that need nothing.
func (w waiting) ready() []string {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(name string) bool { return w.count[name] > 0 })
}

// finish marks a component as done and returns those that waited only for it.
func (w waiting) finish(name string) []string {
	var freed []string
	for _, dependent := range w.dependents[name] {
		if w.count[dependent]--; w.count[dependent] == 0 {
			freed = append(freed, dependent)
		}
	}
	return freed
}

func (g *Graph) compare(a, b string) int {
	return cmp.Or(cmp.Compare(g.rank[a], g.rank[b]), cmp.Compare(a, b))
}

// Cycles finds one cycle per group of components that wait for each other, as
// the edges of the way around.
func (g *Graph) Cycles() [][]Edge {
	var cycles [][]Edge
	told := map[string]bool{}
	needs := map[string][]string{}
	for _, e := range g.Edges {
		needs[e.From] = append(needs[e.From], e.To)
	}
	for _, name := range g.Order() {
		delete(needs, name) // it has its place, so it is in no cycle
	}
	for _, start := range slices.Sorted(maps.Keys(needs)) {
		if told[start] {
			continue
		}
		path := wayBack(needs, start)
		if path == nil || slices.ContainsFunc(path, func(name string) bool { return told[name] }) {
			continue
		}
		var cycle []Edge
		for i, from := range path[:len(path)-1] {
			told[from] = true
			cycle = append(cycle, g.edge(from, path[i+1]))
		}
		cycles = append(cycles, cycle)
	}
	return cycles
}

// cycles reports each cycle with the way around and the reason of each step.
func (g *Graph) cycles(app *appconfig.App) []place.Diagnostic {
	var diags []place.Diagnostic
	for _, cycle := range g.Cycles() {
		var why []string
		for _, e := range cycle {
			why = append(why, fmt.Sprintf("%s: %s", e.From, e.Reasons[0]))
		}
		at := app.Component(cycle[0].From).At
		diags = append(diags, app.Origin.Diagnose(place.Error, place.CodeCycle, at.Below("name"), "components wait for each other: %s",
			wayAround(cycle)).WithRemedy("remove one of: %s", strings.Join(why, "; ")))
	}
	return diags
}

// wayAround names the components of a cycle, the first one twice.
func wayAround(cycle []Edge) string {
	var b strings.Builder
	for _, e := range cycle {
		b.WriteString(e.From + " → ")
	}
	return b.String() + cycle[0].From
}

func (g *Graph) edge(from, to string) Edge {
	i := slices.IndexFunc(g.Edges, func(e Edge) bool { return e.From == from && e.To == to })
	return g.Edges[i]
}

// wayBack finds the shortest path from a component over its needs back to
// itself, or nil.
func wayBack(needs map[string][]string, start string) []string {
	cameFrom := map[string]string{}
	queue := []string{start}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range needs[at] {
			if to == start {
				path := []string{start}
				for ; at != start; at = cameFrom[at] {
					path = append(path, at)
				}
				path = append(path, start)
				slices.Reverse(path)
				return path
			}
			if _, seen := cameFrom[to]; !seen {
				cameFrom[to] = at
				queue = append(queue, to)
			}
		}
	}
	return nil
}
