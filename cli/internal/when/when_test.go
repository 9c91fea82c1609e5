package when_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/when"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.FixedZone("CET", 3600))

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, past, point string }{
		{"", "", ""},
		{"2h", "2026-11-26T09:00:00Z", "error"},
		{"90m", "2026-11-26T09:30:00Z", "error"},
		{"3d", "2026-11-23T11:00:00Z", "error"},
		{"2026-11-26T10:00:00Z", "2026-11-26T10:00:00Z", "2026-11-26T10:00:00Z"},
		{"2026-11-26T10:00:00+01:00", "2026-11-26T09:00:00Z", "2026-11-26T09:00:00Z"},
		{"2026-11-26 10:00", "2026-11-26T09:00:00Z", "2026-11-26T09:00:00Z"},
		{" 2026-11-27 ", "2026-11-26T23:00:00Z", "2026-11-26T23:00:00Z"},
		{"-2h", "error", "error"},
		{"yesterday", "error", "error"},
		{"d", "error", "error"},
		{"99999999999d", "error", "error"},
	} {
		for name, read := range map[string]func(flag, text string, now time.Time) (*time.Time, error){"past": when.Past, "point": when.Point} {
			at, err := read("--at", tc.text, noon)
			got := ""
			switch {
			case err != nil:
				got = "error"
				if !strings.Contains(err.Error(), "--at") {
					t.Errorf("%q: %v does not name the flag", tc.text, err)
				}
			case at != nil:
				got = at.UTC().Format(time.RFC3339)
			}
			if want := map[string]string{"past": tc.past, "point": tc.point}[name]; got != want {
				t.Errorf("%q as a %s time is %s, want %s", tc.text, name, got, want)
			}
		}
	}
}
