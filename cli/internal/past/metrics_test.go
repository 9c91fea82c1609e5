package past

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestPointsWhich(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) *time.Time { return new(noon.Add(-d)) }
	for _, tt := range []struct {
		name, since, until string
		step               time.Duration
		want               ctlapi.ListMetricPointsParams
		err                string
	}{
		{name: "the last day", since: "24h", want: ctlapi.ListMetricPointsParams{Since: ago(24 * time.Hour)}},
		{name: "a time in steps", since: "7d", until: "1d", step: time.Hour, want: ctlapi.ListMetricPointsParams{Since: ago(7 * 24 * time.Hour), Until: ago(24 * time.Hour), Step: new(3600)}},
		{name: "no time", since: "yesterday", err: "--since"},
		{name: "no time to end", until: "tomorrow", err: "--until"},
		{name: "less than a second", step: 500 * time.Millisecond, err: "--step is 500ms"},
		{name: "part of a second", step: 1500 * time.Millisecond, err: "--step is 1.5s"},
		{name: "backwards", step: -time.Hour, err: "--step is -1h"},
		{name: "a step longer than a month", step: 32 * 24 * time.Hour, err: "--step is 768h"},
	} {
		got, err := pointsWhich(tt.since, tt.until, tt.step, noon)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}
