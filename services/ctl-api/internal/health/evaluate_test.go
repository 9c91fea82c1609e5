package health_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/health"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	rules := health.Rules{UnhealthyAfter: 3, HealthyAfter: 2, SilentAfter: 3 * time.Minute}
	tests := []struct {
		name    string
		present model.Verdict
		recent  string // newest first: + good, - bad
		age     time.Duration
		want    model.Verdict
	}{
		{name: "no outcome is unknown", present: model.Healthy, want: model.Unknown},
		{name: "the first good outcome is healthy", present: model.Unknown, recent: "+", want: model.Healthy},
		{name: "two failures stay healthy", present: model.Healthy, recent: "--+", want: model.Healthy},
		{name: "three failures are unhealthy", present: model.Healthy, recent: "---+", want: model.Unhealthy},
		{name: "one success after failures stays unhealthy", present: model.Unhealthy, recent: "+---", want: model.Unhealthy},
		{name: "two successes are healthy again", present: model.Unhealthy, recent: "++---", want: model.Healthy},
		{name: "unknown with mixed outcomes waits for two", present: model.Unknown, recent: "+-", want: model.Unknown},
		{name: "unknown with failures only waits for three", present: model.Unknown, recent: "--", want: model.Unknown},
		{name: "silence is unknown", present: model.Healthy, recent: "+++", age: 4 * time.Minute, want: model.Unknown},
		{name: "a short pause is no silence", present: model.Healthy, recent: "+++", age: 2 * time.Minute, want: model.Healthy},
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
		all  []model.Verdict
		want model.Verdict
	}{
		{name: "nothing is unknown", want: model.Unknown},
		{name: "all healthy", all: []model.Verdict{model.Healthy, model.Healthy}, want: model.Healthy},
		{name: "one unknown", all: []model.Verdict{model.Healthy, model.Unknown}, want: model.Unknown},
		{name: "one unhealthy wins", all: []model.Verdict{model.Unknown, model.Unhealthy, model.Healthy}, want: model.Unhealthy},
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
