package why_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// A scheduled run that waits says what for, in the runner's words.
func TestScheduledRunThatWaits(t *testing.T) {
	t.Parallel()
	const wait = "waiting for apply api, which changes the install"
	for _, tc := range []struct {
		run  ctldb.ActionRun
		want string // "" for no reason
	}{
		{ctldb.ActionRun{Action: "backup", State: model.RunQueued, Error: ptr(wait)}, "its tick has come, and it is waiting for apply api"},
		{ctldb.ActionRun{Action: "backup", State: model.RunRunning}, "the runner is at it"},
		{ctldb.ActionRun{Action: "backup", State: model.RunMissed, Error: ptr(wait)}, ""},
	} {
		reasons := why.Scheduled(why.Input{Now: now, Runner: &ctldb.Runner{LastSeenAt: &now}}, tc.run)
		if tc.want == "" {
			if len(reasons) != 0 {
				t.Errorf("%s: %+v", tc.run.State, reasons)
			}
			continue
		}
		if len(reasons) != 1 || !strings.HasPrefix(reasons[0].Reason, tc.want) {
			t.Errorf("%s: %+v, want %q", tc.run.State, reasons, tc.want)
		}
	}
}
