package drawing

// heights gives each slot the height at which its lines are as straight as the order and
// the gaps allow.
func (p *plan) heights() {
	for _, row := range p.rows {
		y := 0.0
		for i, s := range row {
			if i > 0 {
				y += gap(row[i-1], s)
			}
			s.y = y
		}
	}
	for i := range sweeps {
		for j := range p.rows {
			if i%2 == 0 {
				straighten(p.rows[j], func(s *slot) []*slot { return s.before })
			} else {
				straighten(p.rows[len(p.rows)-1-j], func(s *slot) []*slot { return s.after })
			}
		}
	}
}

// gap is between the middles of two neighbours.
func gap(a, b *slot) float64 {
	half := func(s *slot) float64 {
		if s.node < 0 {
			return 0
		}
		return nodeHeight / 2
	}
	between := float64(rowGap)
	if a.node < 0 || b.node < 0 {
		between = laneGap
	}
	return half(a) + between + half(b)
}

// straighten moves the slots of a row as near to their neighbours' mean as the gaps
// allow, by pooling those that would overlap: the least squares of all moves.
func straighten(row []*slot, neighbours func(*slot) []*slot) {
	type pool struct {
		sum   float64 // of what its slots want, less their offsets
		count int
	}
	var pools []pool
	offsets := make([]float64, len(row))
	for i, s := range row {
		if i > 0 {
			offsets[i] = offsets[i-1] + gap(row[i-1], s)
		}
		want := s.y
		if near := neighbours(s); len(near) > 0 {
			want = 0
			for _, n := range near {
				want += n.y
			}
			want /= float64(len(near))
		}
		pools = append(pools, pool{want - offsets[i], 1})
		for n := len(pools); n > 1 && pools[n-2].sum/float64(pools[n-2].count) > pools[n-1].sum/float64(pools[n-1].count); n = len(pools) {
			pools[n-2] = pool{pools[n-2].sum + pools[n-1].sum, pools[n-2].count + pools[n-1].count}
			pools = pools[:n-1]
		}
	}
	i := 0
	for _, q := range pools {
		for range q.count {
			row[i].y = q.sum/float64(q.count) + offsets[i]
			i++
		}
	}
}

// layout turns slots into pixels.
func (p *plan) layout(nodes, edges int) Layout {
	top, bottom := 0.0, 0.0
	first := true
	for _, row := range p.rows {
		for _, s := range row {
			if first || s.y < top {
				top = s.y
			}
			if first || s.y > bottom {
				bottom = s.y
			}
			first = false
		}
	}
	left := func(s *slot) float64 { return margin + float64(s.layer)*(nodeWidth+layerGap) }
	middle := func(s *slot) float64 { return margin + nodeHeight/2 + s.y - top }
	out := Layout{Width: 2 * margin, Height: 2 * margin, Nodes: make([]Box, nodes), Lines: make([][]Point, edges)}
	if len(p.rows) > 0 {
		out.Width += float64(len(p.rows))*(nodeWidth+layerGap) - layerGap
		out.Height += bottom - top + nodeHeight
	}
	for i, s := range p.nodes {
		out.Nodes[i] = Box{Point{left(s), middle(s) - nodeHeight/2}, nodeWidth, nodeHeight}
	}
	for _, l := range p.lines {
		var points []Point
		for i, s := range l.way {
			switch {
			case i == 0:
				points = append(points, Point{left(s) + nodeWidth, middle(s)})
			case i == len(l.way)-1:
				points = append(points, Point{left(s), middle(s)})
			default: // straight through the layer
				points = append(points, Point{left(s), middle(s)}, Point{left(s) + nodeWidth, middle(s)})
			}
		}
		if l.turns {
			for i, j := 0, len(points)-1; i < j; i, j = i+1, j-1 {
				points[i], points[j] = points[j], points[i]
			}
		}
		out.Lines[l.edge] = points
	}
	return out
}
