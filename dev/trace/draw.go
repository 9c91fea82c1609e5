package main

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
)

// database is the library whose spans are statements, and waits for a connection:
// counted, not drawn.
const database = "github.com/exaring/otelpgx"

// services are the parts in the order in which a deploy meets them, each with its
// colour.
var services = []struct{ name, colour string }{
	{"berth", "#5b6770"}, {"berth-ctl-api", "#2563a8"}, {"berth-builder", "#8a5a00"}, {"berth-runner-api", "#6b4fa0"},
	{"berth-log-ingest", "#287a6f"}, {"berth-runner", "#b0472a"}, {"berth-engine", "#2f7d32"},
}

// A picture is one trace, as lanes from top to bottom.
type picture struct {
	Trace    string  `json:"trace"`
	Spans    int     `json:"spans"`    // all of the trace
	Database int     `json:"database"` // of these, those of the database
	Seconds  float64 `json:"seconds"`
	Lanes    []lane  `json:"lanes"`
}

// A lane is one row: spans of one service with one name that do not overlap.
type lane struct {
	Service string   `json:"service"`
	Name    string   `json:"name"`
	Bars    [][2]int `json:"bars"` // from and to, in milliseconds since the trace began
}

// pick takes the trace in which most services took part, and of these the one
// with most spans.
func pick(spans []span) (picture, error) {
	traces := map[string][]span{}
	for _, s := range spans {
		traces[s.Trace] = append(traces[s.Trace], s)
	}
	var best []span
	for _, of := range traces {
		if c := cmp.Or(cmp.Compare(parts(of), parts(best)), cmp.Compare(len(of), len(best)), cmp.Compare(of[0].Trace, traceOf(best))); c > 0 {
			best = of
		}
	}
	if len(best) == 0 {
		return picture{}, errors.New("there are no spans")
	}
	return lanesOf(best), nil
}

func traceOf(spans []span) string {
	if len(spans) == 0 {
		return ""
	}
	return spans[0].Trace
}

func parts(spans []span) int {
	names := map[string]bool{}
	for _, s := range spans {
		names[s.Service] = true
	}
	return len(names)
}

// lanesOf puts the spans of one trace into lanes: by service, then by when the
// first of a name began.
func lanesOf(spans []span) picture {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.Name, b.Name))
	})
	began, ended := spans[0].Start, spans[0].End
	p := picture{Trace: spans[0].Trace, Spans: len(spans)}
	for _, s := range spans {
		ended = max(ended, s.End)
		if s.Scope == database {
			p.Database++
			continue
		}
		p.put(s.Service, s.Name, [2]int{millis(s.Start - began), millis(s.End - began)})
	}
	p.Seconds = time.Duration(ended - began).Seconds()
	slices.SortStableFunc(p.Lanes, func(a, b lane) int { return cmp.Compare(rank(a.Service), rank(b.Service)) })
	return p
}

func millis(nanoseconds uint64) int { return int(nanoseconds / 1e6) }

// put adds a bar to the first lane of its name that is free by then.
func (p *picture) put(service, name string, bar [2]int) {
	last := -1
	for i, l := range p.Lanes {
		if l.Service != service || l.Name != name {
			continue
		}
		if l.Bars[len(l.Bars)-1][1] <= bar[0] {
			p.Lanes[i].Bars = append(p.Lanes[i].Bars, bar)
			return
		}
		last = i
	}
	fresh := lane{Service: service, Name: name, Bars: [][2]int{bar}}
	if last < 0 {
		p.Lanes = append(p.Lanes, fresh)
		return
	}
	p.Lanes = slices.Insert(p.Lanes, last+1, fresh)
}

func rank(service string) int {
	for i, s := range services {
		if s.name == service {
			return i
		}
	}
	return len(services)
}

// Sizes, in pixels.
const (
	left, plot, right = 330, 760, 20
	top, row, bar     = 54, 17, 11
	least             = 1.5 // so that a span of a millisecond is seen
)

// draw is the picture as SVG.
func draw(p picture) string {
	var b strings.Builder
	height := top + len(p.Lanes)*row + 30
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="11">`+"\n", left+plot+right, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	fmt.Fprintf(&b, `<text x="10" y="20" font-size="14" fill="#222222">One trace: %.1f s, %d spans</text>`+"\n", p.Seconds, p.Spans)
	fmt.Fprintf(&b, `<text x="10" y="36" fill="#666666">%d of them are of the database and are not drawn</text>`+"\n", p.Database)
	scale := plot / max(p.Seconds*1000, 1)
	for s := 0.0; s <= p.Seconds; s += tick(p.Seconds) {
		x := left + s*1000*scale
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e4e4e4"/><text x="%.1f" y="%d" fill="#666666" text-anchor="middle">%g s</text>`+"\n", x, top-6, x, height-24, x, height-10, s)
	}
	before := lane{}
	for i, l := range p.Lanes {
		y := top + i*row
		colour := "#999999"
		if n := rank(l.Service); n < len(services) {
			colour = services[n].colour
		}
		if l.Service != before.Service {
			fmt.Fprintf(&b, `<text x="10" y="%d" font-weight="bold" fill="%s">%s</text>`+"\n", y+bar-1, colour, html.EscapeString(strings.TrimPrefix(l.Service, "berth-")))
		}
		if l.Service != before.Service || l.Name != before.Name {
			fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#333333" text-anchor="end">%s</text>`+"\n", left-8, y+bar-1, html.EscapeString(short(l.Name)))
		}
		for _, bars := range l.Bars {
			from, to := bars[0], bars[1]
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="1" fill="%s"><title>%s: %d ms to %d ms</title></rect>`+"\n",
				left+float64(from)*scale, y, max(float64(to-from)*scale, least), bar, colour, html.EscapeString(l.Name), from, to)
		}
		before = l
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// tick is how many seconds lie between two lines: at most twelve of them.
func tick(seconds float64) float64 {
	for _, step := range []float64{.1, .2, .5, 1, 2, 5, 10, 30, 60} {
		if seconds/step <= 12 {
			return step
		}
	}
	return 300
}

// short is a name that fits on the left.
func short(name string) string {
	const longest = 44
	if runes := []rune(name); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return name
}
