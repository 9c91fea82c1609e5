// Package when owns how people write a time on the command line.
package when

import (
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/usage"
)

// forms are how people write a time. Those without a zone are of the zone that they are
// in.
var forms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly}

// Past reads a time, also as how long ago it was; nil for none. flag is what its error
// names.
func Past(flag, text string, now time.Time) (*time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if ago, ok := agoOf(text); ok {
		at := now.Add(-ago)
		return &at, nil
	}
	if at, ok := pointOf(text, now); ok {
		return &at, nil
	}
	return nil, usage.Errorf("%s: %q is not a time; write it as 2026-11-26T10:00:00Z, as 2026-11-26 10:00, or as how long ago: 2h, 3d", flag, usage.Shortened(text))
}

// Point reads a time that may lie ahead; nil for none.
func Point(flag, text string, now time.Time) (*time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if at, ok := pointOf(text, now); ok {
		return &at, nil
	}
	return nil, usage.Errorf("%s: %q is not a time; write it as 2026-11-26T10:00:00Z or as 2026-11-26 10:00", flag, usage.Shortened(text))
}

func pointOf(text string, now time.Time) (time.Time, bool) {
	for _, form := range forms {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// day is what d stands for; Go's durations end at hours.
const day = 24 * time.Hour

// agoOf reads a duration: 90m, 2h30m, 3d.
func agoOf(text string) (time.Duration, bool) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * day, err == nil && n >= 0 && n < 10_000
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}
