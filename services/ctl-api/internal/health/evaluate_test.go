package health_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/health"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	rules := health.Rules{UnhealthyAfter: 3, HealthyAfter: 2, SilentAfter: 3 * time.Minute}
	tests := []struct {
		name    string
		present health.Verdict
		recent  string // newest first: + good, - bad
		age     time.Duration
		want    health.Verdict
	}{
		{name: "no outcome is unknown", present: health.Healthy, want: health.Unknown},
		{name: "the first good outcome is healthy", present: health.Unknown, recent: "+", want: health.Healthy},
		{name: "two failures stay healthy", present: health.Healthy, recent: "--+", want: health.Healthy},
		{name: "three failures are unhealthy", present: health.Healthy, recent: "---+", want: health.Unhealthy},
		{name: "one success after failures stays unhealthy", present: health.Unhealthy, recent: "+---", want: health.Unhealthy},
		{name: "two successes are healthy again", present: health.Unhealthy, recent: "++---", want: health.Healthy},
		{name: "unknown with mixed outcomes waits for two", present: health.Unknown, recent: "+-", want: health.Unknown},
		{name: "unknown with failures only waits for three", present: health.Unknown, recent: "--", want: health.Unknown},
		{name: "silence is unknown", present: health.Healthy, recent: "+++", age: 4 * time.Minute, want: health.Unknown},
		{name: "a short pause is no silence", present: health.Healthy, recent: "+++", age: 2 * time.Minute, want: health.Healthy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var recent []health.Outcome
			for i, c := range tt.recent {
				recent = append(recent, health.Outcome{Good: c == '+', At: now.Add(-tt.age - time.Duration(i)*time.Minute)})
			}
			if got := health.Evaluate(tt.present, recent, rules, now); got != tt.want {
				t.Errorf("Evaluate(%s, %q) = %s, want %s", tt.present, tt.recent, got, tt.want)
			}
		})
	}
}

func TestWorst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		all  []health.Verdict
		want health.Verdict
	}{
		{name: "nothing is unknown", want: health.Unknown},
		{name: "all healthy", all: []health.Verdict{health.Healthy, health.Healthy}, want: health.Healthy},
		{name: "one unknown", all: []health.Verdict{health.Healthy, health.Unknown}, want: health.Unknown},
		{name: "one unhealthy wins", all: []health.Verdict{health.Unknown, health.Unhealthy, health.Healthy}, want: health.Unhealthy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := health.Worst(tt.all); got != tt.want {
				t.Errorf("Worst(%v) = %s, want %s", tt.all, got, tt.want)
			}
		})
	}
}
