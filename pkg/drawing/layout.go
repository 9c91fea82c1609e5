// Package drawing places the nodes of a graph on a page and draws it as SVG. Who needs
// nothing stands at the left; arrows go from what is needed to what needs it, so a deploy
// runs from left to right. The same graph always gets the same picture.
//
// The method is that of Sugiyama: layers by the longest way, an order within each layer
// that makes few crossings, then heights that make straight lines.
package drawing

import (
	"cmp"
	"slices"
)

// Sizes and gaps in pixels.
const (
	nodeWidth  = 176
	nodeHeight = 48
	layerGap   = 72
	rowGap     = 16
	laneGap    = 12 // around a line that passes between nodes
	margin     = 16
)

// sweeps is how often layers are put in order, each way.
const sweeps = 12

// Edge says that From needs To.
type Edge struct{ From, To string }

// Point is in pixels from the left upper corner.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Box is where a node stands.
type Box struct {
	Point
	Width  float64
	Height float64
}

// Layout is a picture without its words. Nodes and Lines are in the order of what was
// given.
type Layout struct {
	Width, Height float64
	Nodes         []Box
	Lines         [][]Point // of each edge, from the needed node to the one that needs it
}

// slot is a node in its layer, or the place where a long line passes through one.
type slot struct {
	node   int // -1: a line passes
	layer  int
	y      float64
	before []*slot // in the layer to the left
	after  []*slot
	at     int // its place in the layer
}

// Lay places nodes. Edges of unknown nodes, and those from a node to itself, get no line;
// an edge that closes a circle goes backwards.
func Lay(names []string, edges []Edge) Layout {
	p := plan{index: map[string]int{}}
	for i, name := range names {
		if _, twice := p.index[name]; !twice {
			p.index[name] = i
		}
	}
	p.layers(len(names), edges)
	p.slots(len(names), edges)
	p.order()
	p.heights()
	return p.layout(len(names), len(edges))
}

type plan struct {
	index map[string]int
	layer []int
	nodes []*slot
	rows  [][]*slot
	lines []line
}

// line is the way of one edge: slots from left to right, backwards when it closes a circle.
type line struct {
	edge  int
	way   []*slot
	turns bool
}

// ends finds the nodes of an edge.
func (p *plan) ends(e Edge) (needed, needs int, ok bool) {
	needed, known := p.index[e.To]
	needs, also := p.index[e.From]
	return needed, needs, known && also && needed != needs
}

// layers puts each node right of all that it needs. Of nodes that wait for
// each other one is taken first, when nothing else is left.
func (p *plan) layers(n int, edges []Edge) {
	p.layer = make([]int, n)
	open, after, before := make([]int, n), make([][]int, n), make([][]int, n)
	for _, e := range edges {
		if needed, needs, ok := p.ends(e); ok {
			open[needs]++
			after[needed] = append(after[needed], needs)
			before[needs] = append(before[needs], needed)
		}
	}
	var ready []int
	for i := range n {
		if open[i] == 0 {
			ready = append(ready, i)
		}
	}
	placed := make([]bool, n)
	for next := 0; ; {
		for len(ready) > 0 {
			i := ready[0]
			ready = ready[1:]
			placed[i] = true
			for _, j := range after[i] {
				if placed[j] {
					continue
				}
				p.layer[j] = max(p.layer[j], p.layer[i]+1)
				if open[j]--; open[j] == 0 {
					ready = append(ready, j)
				}
			}
		}
		for next < n && placed[next] {
			next++
		}
		if next == n {
			return
		}
		first := inCircle(next, before, placed)
		open[first] = 0
		ready = append(ready, first)
	}
}

// inCircle finds a node that waits for itself, among those that a node waits for.
func inCircle(i int, before [][]int, placed []bool) int {
	seen := map[int]bool{}
	for !seen[i] {
		seen[i] = true
		for _, j := range before[i] {
			if !placed[j] {
				i = j
				break
			}
		}
	}
	return i
}

// slots makes the places of all nodes and of the lines between them.
func (p *plan) slots(n int, edges []Edge) {
	put := func(s *slot) *slot {
		for len(p.rows) <= s.layer {
			p.rows = append(p.rows, nil)
		}
		s.at = len(p.rows[s.layer])
		p.rows[s.layer] = append(p.rows[s.layer], s)
		return s
	}
	for i := range n {
		p.nodes = append(p.nodes, put(&slot{node: i, layer: p.layer[i]}))
	}
	for i, e := range edges {
		needed, needs, ok := p.ends(e)
		if !ok {
			continue
		}
		l := line{edge: i, turns: p.layer[needed] >= p.layer[needs]}
		left, right := p.nodes[needed], p.nodes[needs]
		if l.turns {
			left, right = right, left
		}
		l.way = []*slot{left}
		for layer := left.layer + 1; layer < right.layer; layer++ {
			l.way = append(l.way, put(&slot{node: -1, layer: layer}))
		}
		l.way = append(l.way, right)
		for j := 1; j < len(l.way); j++ {
			if l.way[j-1].layer < l.way[j].layer { // two in one layer only in circles
				l.way[j-1].after = append(l.way[j-1].after, l.way[j])
				l.way[j].before = append(l.way[j].before, l.way[j-1])
			}
		}
		p.lines = append(p.lines, l)
	}
}

// order sorts each layer by where its neighbours stand, to and fro, and keeps the best.
func (p *plan) order() {
	best, kept := p.crossings(), p.places()
	for i := range sweeps {
		for j := range p.rows {
			row, neighbours := p.rows[j], func(s *slot) []*slot { return s.before }
			if i%2 == 1 {
				row, neighbours = p.rows[len(p.rows)-1-j], func(s *slot) []*slot { return s.after }
			}
			sortByMean(row, neighbours)
		}
		if n := p.crossings(); n < best {
			best, kept = n, p.places()
		}
	}
	for i, row := range p.rows {
		slices.SortFunc(row, func(a, b *slot) int { return cmp.Compare(kept[i][a], kept[i][b]) })
		renumber(row)
	}
}

func sortByMean(row []*slot, neighbours func(*slot) []*slot) {
	mean := make(map[*slot]float64, len(row))
	for _, s := range row {
		mean[s] = float64(s.at)
		if near := neighbours(s); len(near) > 0 {
			sum := 0
			for _, n := range near {
				sum += n.at
			}
			mean[s] = float64(sum) / float64(len(near))
		}
	}
	slices.SortStableFunc(row, func(a, b *slot) int { return cmp.Compare(mean[a], mean[b]) })
	renumber(row)
}

func renumber(row []*slot) {
	for i, s := range row {
		s.at = i
	}
}

func (p *plan) places() []map[*slot]int {
	out := make([]map[*slot]int, len(p.rows))
	for i, row := range p.rows {
		out[i] = make(map[*slot]int, len(row))
		for _, s := range row {
			out[i][s] = s.at
		}
	}
	return out
}

// crossings counts the pairs of lines that cross between neighbouring layers.
func (p *plan) crossings() int {
	total := 0
	for i := 1; i < len(p.rows); i++ {
		var ends []int // of all lines, by their beginnings
		for _, s := range p.rows[i-1] {
			from := len(ends)
			for _, a := range s.after {
				ends = append(ends, a.at)
			}
			slices.Sort(ends[from:])
		}
		tree := make([]int, len(p.rows[i])+1) // Fenwick: how many ends at most so far down
		for n, end := range ends {
			above := 0
			for j := end + 1; j > 0; j -= j & -j {
				above += tree[j]
			}
			total += n - above
			for j := end + 1; j < len(tree); j += j & -j {
				tree[j]++
			}
		}
	}
	return total
}
