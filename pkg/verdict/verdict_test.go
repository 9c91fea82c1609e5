package verdict_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/verdict"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	rules := verdict.Rules{UnhealthyAfter: 3, HealthyAfter: 2, SilentAfter: 3 * time.Minute}
	tests := []struct {
		name    string
		present verdict.Verdict
		recent  string // newest first: + good, - bad
		age     time.Duration
		want    verdict.Verdict
	}{
		{name: "no outcome is unknown", present: verdict.Healthy, want: verdict.Unknown},
		{name: "the first good outcome is healthy", present: verdict.Unknown, recent: "+", want: verdict.Healthy},
		{name: "two failures stay healthy", present: verdict.Healthy, recent: "--+", want: verdict.Healthy},
		{name: "three failures are unhealthy", present: verdict.Healthy, recent: "---+", want: verdict.Unhealthy},
		{name: "one success after failures stays unhealthy", present: verdict.Unhealthy, recent: "+---", want: verdict.Unhealthy},
		{name: "two successes are healthy again", present: verdict.Unhealthy, recent: "++---", want: verdict.Healthy},
		{name: "unknown with mixed outcomes waits for two", present: verdict.Unknown, recent: "+-", want: verdict.Unknown},
		{name: "unknown with failures only waits for three", present: verdict.Unknown, recent: "--", want: verdict.Unknown},
		{name: "silence is unknown", present: verdict.Healthy, recent: "+++", age: 4 * time.Minute, want: verdict.Unknown},
		{name: "a short pause is no silence", present: verdict.Healthy, recent: "+++", age: 2 * time.Minute, want: verdict.Healthy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var recent []verdict.Outcome
			for i, c := range tt.recent {
				recent = append(recent, verdict.Outcome{Good: c == '+', At: now.Add(-tt.age - time.Duration(i)*time.Minute)})
			}
			if got := verdict.Evaluate(tt.present, recent, rules, now); got != tt.want {
				t.Errorf("Evaluate(%s, %q) = %s, want %s", tt.present, tt.recent, got, tt.want)
			}
		})
	}
}

func TestWorst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		all  []verdict.Verdict
		want verdict.Verdict
	}{
		{name: "nothing is unknown", want: verdict.Unknown},
		{name: "all healthy", all: []verdict.Verdict{verdict.Healthy, verdict.Healthy}, want: verdict.Healthy},
		{name: "one unknown", all: []verdict.Verdict{verdict.Healthy, verdict.Unknown}, want: verdict.Unknown},
		{name: "one unhealthy wins", all: []verdict.Verdict{verdict.Unknown, verdict.Unhealthy, verdict.Healthy}, want: verdict.Unhealthy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := verdict.Worst(tt.all); got != tt.want {
				t.Errorf("Worst(%v) = %s, want %s", tt.all, got, tt.want)
			}
		})
	}
}
