package httpserver

import (
	"strconv"
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		requests int           // at once
		after    time.Duration // then one more
		want     standing
	}{
		"the first":                    {0, 0, standing{Left: 119, Full: 500 * time.Millisecond}},
		"the last of a burst":          {119, 0, standing{Left: 0, Full: time.Minute}},
		"one too many":                 {120, 0, standing{Left: 0, Full: time.Minute, Retry: 500 * time.Millisecond}},
		"as soon as it was told":       {120, 500 * time.Millisecond, standing{Left: 0, Full: time.Minute}},
		"before that":                  {120, 400 * time.Millisecond, standing{Left: 0, Full: 59600 * time.Millisecond, Retry: 100 * time.Millisecond}},
		"what comes too early is free": {500, 500 * time.Millisecond, standing{Left: 0, Full: time.Minute}},
		"a minute later":               {500, time.Minute, standing{Left: 119, Full: 500 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPacer(Rates{RequestsPerMinute: 120})
			for range tt.requests {
				p.take("acc_1", start)
			}
			got := p.take("acc_1", start.Add(tt.after))
			got.Full, got.Retry = got.Full.Round(time.Millisecond), got.Retry.Round(time.Millisecond)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if other := p.take("acc_2", start); other.Left != 119 {
				t.Errorf("somebody else has %d left", other.Left)
			}
		})
	}
}

func TestPacerForgetsThoseWhoAreQuiet(t *testing.T) {
	t.Parallel()
	p, start := newPacer(Rates{}), time.Now()
	for n := range maxHolders {
		p.take(strconv.Itoa(n), start)
	}
	p.take("busy", start)
	p.take("later", start.Add(time.Hour))
	if len(p.holders) != 1 {
		t.Errorf("%d callers are remembered, want the last one", len(p.holders))
	}
}

// The reference page and docs/reference/doors.md say so: a caller has its rate once
// for each process of a service.
func TestEachProcessCountsForItself(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	one, other := newPacer(Rates{RequestsPerMinute: 60}), newPacer(Rates{RequestsPerMinute: 60})
	for range 60 {
		one.take("acc_1", now)
	}
	if over := one.take("acc_1", now); over.Retry == 0 {
		t.Errorf("the 61st request of a minute is served: %+v", over)
	}
	if first := other.take("acc_1", now); first.Retry != 0 || first.Left != 59 {
		t.Errorf("another process has counted: %+v", first)
	}
}
