package metricsapi

import (
	"errors"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestWindowOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	hours := func(n int) *time.Time { return new(now.Add(time.Duration(n) * time.Hour)) }
	ask := func(since, until *time.Time, step int, after string) apigen.ListMetricPointsParams {
		p := apigen.ListMetricPointsParams{Since: since, Until: until}
		if step > 0 {
			p.Step = &step
		}
		if after != "" {
			p.After = &after
		}
		return p
	}
	for _, tt := range []struct {
		name string
		give apigen.ListMetricPointsParams
		want window // the zero window for one that is refused
	}{
		{"the last day", ask(nil, nil, 0, ""), window{since: *hours(-24), until: now}},
		{"the day before a time", ask(nil, hours(-48), 0, ""), window{since: *hours(-72), until: *hours(-48)}},
		{"since a time, in steps", ask(hours(-2), nil, 60, ""), window{since: *hours(-2), until: now, step: time.Minute}},
		{"the next page of points", ask(hours(-2), nil, 0, "2026-11-27T11:00:00.5Z/arn_1"), window{since: *hours(-2), until: now, after: place{hours(-1).Add(500 * time.Millisecond), "arn_1"}}},
		{"the next page of steps", ask(hours(-2), nil, 60, "2026-11-27T11:00:00Z/"), window{since: *hours(-2), until: now, step: time.Minute, after: place{at: *hours(-1)}}},
		{"nothing between them", ask(hours(-2), hours(-2), 0, ""), window{}},
		{"the wrong way round", ask(hours(-1), hours(-2), 0, ""), window{}},
		{"since the future", ask(hours(1), nil, 0, ""), window{}},
		{"a page of points as steps", ask(nil, nil, 60, "2026-11-27T11:00:00Z/arn_1"), window{}},
		{"the next page of the runner's own points", ask(hours(-2), nil, 0, "2026-11-27T11:00:00Z/"), window{since: *hours(-2), until: now, after: place{at: *hours(-1)}}},
		{"a page that is none", ask(nil, nil, 0, "arn_1"), window{}},
	} {
		got, err := windowOf(now, tt.give)
		if tt.want == (window{}) {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%s: %+v, %v; want it refused", tt.name, got, err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
}
