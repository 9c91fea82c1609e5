package availability_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/availability"
	"github.com/berth-dev/berth/services/internal/model"
)

const (
	good = model.Healthy
	bad  = model.Unhealthy
	dark = model.Unknown
)

var start = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

func span(from, to int, v model.Verdict) availability.Span {
	return availability.Span{From: at(from), To: at(to), Verdict: v}
}

func point(minute int, v model.Verdict) availability.Point {
	return availability.Point{At: at(minute), Verdict: v}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	w := availability.Window{From: at(0), To: at(100)}
	for _, tc := range []struct {
		name   string
		points []availability.Point
		want   []availability.Span
	}{
		{"nothing is known", nil, nil},
		{"it was so before", []availability.Point{point(-50, good)}, []availability.Span{span(0, 100, good)}},
		{"a change", []availability.Point{point(-50, good), point(40, bad), point(60, good)}, []availability.Span{span(0, 40, good), span(40, 60, bad), span(60, 100, good)}},
		{"changes of something else", []availability.Point{point(-50, good), point(40, good), point(60, good)}, []availability.Span{span(0, 100, good)}},
		{"it came within the window", []availability.Point{point(30, dark), point(35, good)}, []availability.Span{span(30, 35, dark), span(35, 100, good)}},
		{"it was away", []availability.Point{point(0, good), point(20, ""), point(50, good)}, []availability.Span{span(0, 20, good), span(50, 100, good)}},
		{"changes at the same time", []availability.Point{point(0, good), point(20, bad), point(20, dark)}, []availability.Span{span(0, 20, good), span(20, 100, dark)}},
		{"it is gone", []availability.Point{point(-50, good), point(-20, "")}, nil},
	} {
		if diff := cmp.Diff(tc.want, w.Spans(tc.points)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestWorst(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		all  [][]availability.Span
		want []availability.Span
	}{
		{"none", nil, nil},
		{"one", [][]availability.Span{{span(0, 10, good), span(10, 20, bad)}}, []availability.Span{span(0, 10, good), span(10, 20, bad)}},
		{"one unhealthy makes all so", [][]availability.Span{{span(0, 100, good)}, {span(0, 40, good), span(40, 60, bad), span(60, 100, good)}},
			[]availability.Span{span(0, 40, good), span(40, 60, bad), span(60, 100, good)}},
		{"unknown is worse than healthy", [][]availability.Span{{span(0, 100, good)}, {span(0, 50, dark), span(50, 100, good)}}, []availability.Span{span(0, 50, dark), span(50, 100, good)}},
		{"unhealthy goes on from one to the other", [][]availability.Span{{span(0, 50, bad), span(50, 100, good)}, {span(0, 50, good), span(50, 100, bad)}}, []availability.Span{span(0, 100, bad)}},
		{"a time without any", [][]availability.Span{{span(0, 10, good)}, {span(30, 40, bad)}}, []availability.Span{span(0, 10, good), span(30, 40, bad)}},
	} {
		if diff := cmp.Diff(tc.want, availability.Worst(tc.all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// Whatever the histories are: minute by minute the worst is what package health would say of
// the verdicts then, and the strip has all of the time once.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	const minutes = 120
	w := availability.Window{From: at(0), To: at(minutes)}
	verdicts := []model.Verdict{good, bad, dark, ""}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all [][]availability.Span
		var lines [][]model.Verdict
		for range 1 + r.IntN(5) {
			var points []availability.Point
			line := make([]model.Verdict, minutes)
			for minute := -r.IntN(20); minute < minutes; minute += 1 + r.IntN(30) {
				v := verdicts[r.IntN(len(verdicts))]
				points = append(points, point(minute, v))
				for m := max(minute, 0); m < minutes; m++ {
					line[m] = v
				}
			}
			all, lines = append(all, w.Spans(points)), append(lines, line)
		}
		spans := availability.Worst(all)
		var want availability.Sum
		for m := range minutes {
			var here availability.Sum
			for _, line := range lines {
				here = add(here, line[m])
			}
			want = add(want, worst(here))
		}
		if diff := cmp.Diff(want, w.Sum(spans)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		var strip availability.Sum
		for _, part := range w.Strip(spans, 1+r.IntN(70)) {
			strip.Healthy += part.Healthy
			strip.Unhealthy += part.Unhealthy
			strip.Unknown += part.Unknown
		}
		if diff := cmp.Diff(want, strip); diff != "" {
			t.Fatalf("seed %d: the strip (-want +got):\n%s", seed, diff)
		}
		for i := 1; i < len(spans); i++ {
			if spans[i].From.Before(spans[i-1].To) || spans[i].From.Equal(spans[i-1].To) && spans[i].Verdict == spans[i-1].Verdict {
				t.Fatalf("seed %d: spans %v", seed, spans)
			}
		}
	}
}

// worst is the verdict of several resources at a time.
func worst(s availability.Sum) model.Verdict {
	switch {
	case s.Unhealthy > 0:
		return bad
	case s.Unknown > 0:
		return dark
	case s.Healthy > 0:
		return good
	}
	return ""
}

func TestShown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		sum  availability.Sum
		want model.Verdict
	}{
		{availability.Sum{}, ""},
		{availability.Sum{Healthy: 24 * time.Hour, Unhealthy: time.Second}, bad},
		{availability.Sum{Unknown: 24 * time.Hour, Unhealthy: time.Second}, bad},
		{availability.Sum{Healthy: 23 * time.Hour, Unknown: time.Hour}, good},
		{availability.Sum{Healthy: time.Hour, Unknown: 23 * time.Hour}, dark},
		{availability.Sum{Unknown: time.Second}, dark},
		{availability.Sum{Healthy: time.Second}, good},
	} {
		if got := tc.sum.Shown(); got != tc.want {
			t.Errorf("%+v is shown as %q, want %q", tc.sum, got, tc.want)
		}
	}
}

// add counts a minute.
func add(s availability.Sum, v model.Verdict) availability.Sum {
	switch v {
	case good:
		s.Healthy += time.Minute
	case bad:
		s.Unhealthy += time.Minute
	case dark:
		s.Unknown += time.Minute
	}
	return s
}

func TestBudget(t *testing.T) {
	t.Parallel()
	s := availability.Sum{Healthy: 999 * time.Minute, Unhealthy: time.Minute, Unknown: 5 * time.Hour}
	share, known := s.Availability()
	b := s.Budget(99.8)
	if got := fmt.Sprint(share, known, b.Allowed.Round(time.Second), b.Used, b.Left().Round(time.Second)); got != "0.999 true 2m0s 1m0s 1m0s" {
		t.Errorf("got %s", got)
	}
	if left := s.Budget(99.95).Left(); left >= 0 {
		t.Errorf("an objective that is missed leaves %s", left)
	}
	if _, known := (availability.Sum{Unknown: time.Hour}).Availability(); known {
		t.Error("of time of which nothing is known, a share is known")
	}
}
