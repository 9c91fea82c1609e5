package drawing_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/drawing"
)

func edges(text string) (names []string, out []drawing.Edge) {
	for _, pair := range strings.Fields(text) {
		from, to, _ := strings.Cut(pair, ">")
		for _, name := range []string{from, to} {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if to != "" {
			out = append(out, drawing.Edge{From: from, To: to})
		}
	}
	return names, out
}

// Layers, by the left edges of nodes.
func TestLayers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "",
		"a":                         "a0",
		"a b":                       "a0 b0",
		"api>db":                    "api1 db0",
		"web>api api>db web>db":     "web2 api1 db0",
		"web>api web>db":            "web1 api0 db0",
		"a>a":                       "a0",
		"a>b b>a":                   "a0 b1",
		"x>a a>b b>c c>a c>y":       "x1 a0 b2 c1 y0",
		"top>l top>r l>end r>end q": "top2 l1 r1 end0 q0",
	} {
		names, list := edges(text)
		l := drawing.Lay(names, list)
		var got []string
		for i, name := range names {
			got = append(got, fmt.Sprint(name, int(l.Nodes[i].X-16)/(176+72)))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// No two boxes overlap, all is on the page, lines begin and end at their nodes, arrows go
// to the right, and the same graph gets the same picture.
func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(40)
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("n", i))
		}
		var list []drawing.Edge
		for range r.IntN(2 * n) {
			from, to := r.IntN(n), r.IntN(n)
			if from > to || seed%10 == 0 && from != to { // some with circles
				list = append(list, drawing.Edge{From: names[from], To: names[to]})
			}
		}
		l := drawing.Lay(names, list)
		if diff := cmp.Diff(l, drawing.Lay(names, list)); diff != "" {
			t.Fatalf("seed %d: another picture: %s", seed, diff)
		}
		for i, a := range l.Nodes {
			if a.X < 0 || a.Y < 0 || a.X+a.Width > l.Width || a.Y+a.Height > l.Height {
				t.Fatalf("seed %d: %s is not on the page: %+v of %v × %v", seed, names[i], a, l.Width, l.Height)
			}
			for j, b := range l.Nodes[:i] {
				if a.X < b.X+b.Width && b.X < a.X+a.Width && a.Y < b.Y+b.Height-0.01 && b.Y < a.Y+a.Height-0.01 {
					t.Fatalf("seed %d: %s and %s overlap", seed, names[i], names[j])
				}
			}
		}
		for i, e := range list {
			from, to := l.Nodes[slices.Index(names, e.To)], l.Nodes[slices.Index(names, e.From)]
			first, last := l.Lines[i][0], l.Lines[i][len(l.Lines[i])-1]
			touches := func(p drawing.Point, b drawing.Box) bool {
				return (p.X == b.X || p.X == b.X+b.Width) && p.Y > b.Y && p.Y < b.Y+b.Height
			}
			if !touches(first, from) || !touches(last, to) {
				t.Fatalf("seed %d: the line of %+v goes from %v to %v", seed, e, first, last)
			}
			if seed%10 != 0 && first.X >= last.X {
				t.Fatalf("seed %d: %+v goes backwards", seed, e)
			}
		}
	}
}

// A line that is straight can be drawn so.
func TestStraight(t *testing.T) {
	t.Parallel()
	names, list := edges("c>b b>a z>y y>x")
	for i, points := range drawing.Lay(names, list).Lines {
		if points[0].Y != points[len(points)-1].Y {
			t.Errorf("%+v is not straight: %v", list[i], points)
		}
	}
}

func TestFastEnough(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	var names []string
	var list []drawing.Edge
	for i := range 300 {
		names = append(names, fmt.Sprint("n", i))
		for range min(i, 2) {
			list = append(list, drawing.Edge{From: names[i], To: names[max(0, i-1-r.IntN(40))]})
		}
	}
	began := time.Now()
	drawing.Lay(names, list)
	took := time.Since(began)
	t.Logf("300 nodes, %d edges: %s", len(list), took)
	if took > 3*time.Second { // it is some milliseconds, without the race detector
		t.Errorf("took %s", took)
	}
}

// A picture is well-formed, and what names say in it stays text.
func TestSVG(t *testing.T) {
	t.Parallel()
	hostile := `</text><script>alert("1")</script>&<`
	svg := drawing.SVG(hostile, []drawing.Node{
		{Name: "db", Title: "db", Text: hostile},
		{Name: hostile, Title: hostile, Text: "helm_chart", State: "unhealthy", Tone: drawing.Bad},
	}, []drawing.Arrow{{Edge: drawing.Edge{From: hostile, To: "db"}, Why: []string{hostile}, Implied: true}})
	d := xml.NewDecoder(strings.NewReader(svg))
	elements := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	if diff := cmp.Diff(map[string]int{"svg": 1, "title": 4, "style": 1, "defs": 1, "marker": 1, "path": 2, "g": 2, "rect": 2, "text": 4}, elements); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
	if !strings.Contains(svg, "✕ unhealthy") || !strings.Contains(svg, "stroke-dasharray") {
		t.Errorf("it does not say all:\n%s", svg)
	}
}
