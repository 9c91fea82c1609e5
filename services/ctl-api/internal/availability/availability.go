// Package availability says how the health of an install was over time: as spans, as a strip
// of equal parts, and as the share of time in which it was healthy. It does no I/O.
package availability

import (
	"slices"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// Point is what a resource was from a time on. Verdict is "" for one that is not there.
type Point struct {
	At      time.Time
	Verdict model.Verdict
}

// Span is a time with one verdict.
type Span struct {
	From, To time.Time
	Verdict  model.Verdict
}

// Window is the time that is looked at.
type Window struct {
	From, To time.Time
}

// Spans are those of one resource within a window, oldest first. points are in order of time;
// the one before the window says how it begins. Time in which the resource is not there has
// no span.
func (w Window) Spans(points []Point) []Span {
	var spans []Span
	for i, p := range points {
		from, to := later(p.At, w.From), w.To
		if i+1 < len(points) {
			to = earlier(points[i+1].At, w.To)
		}
		if p.Verdict == "" || !from.Before(to) {
			continue
		}
		if last := len(spans) - 1; last >= 0 && spans[last].Verdict == p.Verdict && spans[last].To.Equal(from) {
			spans[last].To = to
			continue
		}
		spans = append(spans, Span{from, to, p.Verdict})
	}
	return spans
}

// Worst are the spans of several resources put together: at each time the worst verdict of
// those that are there, as package health judges them.
func Worst(all [][]Span) []Span {
	type edge struct {
		at      time.Time
		verdict model.Verdict
		by      int // +1 where a span begins, -1 where it ends
	}
	var edges []edge
	for _, spans := range all {
		for _, s := range spans {
			edges = append(edges, edge{s.From, s.Verdict, 1}, edge{s.To, s.Verdict, -1})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	count := map[model.Verdict]int{}
	var out []Span
	for i, e := range edges {
		count[e.verdict] += e.by
		if i+1 < len(edges) && edges[i+1].at.Equal(e.at) {
			continue
		}
		now := worst(count)
		last := len(out) - 1
		if last >= 0 && out[last].To.IsZero() {
			if out[last].Verdict == now {
				continue
			}
			out[last].To = e.at
		}
		if now != "" {
			out = append(out, Span{From: e.at, Verdict: now})
		}
	}
	return out
}

func worst(count map[model.Verdict]int) model.Verdict {
	for _, v := range []model.Verdict{model.Unhealthy, model.Unknown, model.Healthy} {
		if count[v] > 0 {
			return v
		}
	}
	return ""
}

// Sum is how long each verdict lasted.
type Sum struct {
	Healthy, Unhealthy, Unknown time.Duration
}

// Sum adds up the spans within a window.
func (w Window) Sum(spans []Span) Sum {
	var s Sum
	for _, span := range spans {
		d := earlier(span.To, w.To).Sub(later(span.From, w.From))
		if d <= 0 {
			continue
		}
		switch span.Verdict {
		case model.Healthy:
			s.Healthy += d
		case model.Unhealthy:
			s.Unhealthy += d
		default:
			s.Unknown += d
		}
	}
	return s
}

// Known is the time of which something is known.
func (s Sum) Known() time.Duration { return s.Healthy + s.Unhealthy }

// Availability is the share of the known time that was healthy, 0 to 1; false without any
// known time.
func (s Sum) Availability() (float64, bool) {
	if s.Known() <= 0 {
		return 0, false
	}
	return float64(s.Healthy) / float64(s.Known()), true
}

// Shown is what a part of a strip shows: trouble, however short it was, else whether most of
// it was known; "" of time in which nothing was there.
func (s Sum) Shown() model.Verdict {
	switch {
	case s.Unhealthy > 0:
		return model.Unhealthy
	case s.Unknown > s.Healthy:
		return model.Unknown
	case s.Healthy > 0:
		return model.Healthy
	}
	return ""
}

// Strip cuts the window into n parts of the same length.
func (w Window) Strip(spans []Span, n int) []Sum {
	length := w.To.Sub(w.From)
	strip := make([]Sum, n)
	for i := range strip {
		part := Window{w.From.Add(length * time.Duration(i) / time.Duration(n)), w.From.Add(length * time.Duration(i+1) / time.Duration(n))}
		strip[i] = part.Sum(spans)
	}
	return strip
}

// Budget is how much unhealthy time an objective leaves.
type Budget struct {
	// Allowed is the objective's part of the known time, Used what was unhealthy.
	Allowed, Used time.Duration
}

// Budget holds a time against an objective in percent, such as 99.9.
func (s Sum) Budget(objective float64) Budget {
	return Budget{Allowed: time.Duration((100 - objective) / 100 * float64(s.Known())), Used: s.Unhealthy}
}

// Left is what remains, below zero when the objective is missed.
func (b Budget) Left() time.Duration { return b.Allowed - b.Used }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
