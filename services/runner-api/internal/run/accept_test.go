package run_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/runner-api/internal/run"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		stored run.Stored
		report jobspec.Run
		want   run.Verdict
	}{
		{"the first report of a run that has begun", run.Stored{State: "queued"}, jobspec.Run{State: "running"}, run.Recorded},
		{"a run that waits", run.Stored{State: "queued"}, jobspec.Run{State: "queued", Error: "waiting for apply api"}, run.Recorded},
		{"the wait after the begin", run.Stored{State: "running"}, jobspec.Run{State: "queued"}, run.Replayed},
		{"the wait after the end", run.Stored{State: "missed"}, jobspec.Run{State: "queued"}, run.Replayed},
		{"the only report of a run, after an outage", run.Stored{State: "queued"}, jobspec.Run{State: "failed", ExitCode: 1}, run.Recorded},
		{"the end", run.Stored{State: "running"}, jobspec.Run{State: "succeeded"}, run.Recorded},
		{"the begin again", run.Stored{State: "running"}, jobspec.Run{State: "running"}, run.Replayed},
		{"the end again", run.Stored{State: "failed", ExitCode: 2, Error: "x"}, jobspec.Run{State: "failed", ExitCode: 2, Error: "x"}, run.Replayed},
		{"the begin after the end", run.Stored{State: "succeeded"}, jobspec.Run{State: "running"}, run.Replayed},
		{"another end", run.Stored{State: "failed"}, jobspec.Run{State: "succeeded"}, run.Finished},
		{"missed, and yet it ran", run.Stored{State: "missed"}, jobspec.Run{State: "succeeded"}, run.Finished},
		{"the same end for another reason", run.Stored{State: "failed", Error: "x"}, jobspec.Run{State: "failed", Error: "y"}, run.Finished},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := run.Accept(tt.stored, tt.report); got != tt.want {
				t.Errorf("Accept(%+v, %+v) = %s, want %s", tt.stored, tt.report, got, tt.want)
			}
		})
	}
}

func TestHasLog(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		run  jobspec.Run
		open bool
		want bool
	}{
		{jobspec.Run{State: "running"}, false, true},
		{jobspec.Run{State: "succeeded"}, false, true}, // the first that is heard of it, after an outage
		{jobspec.Run{State: "failed"}, true, true},
		{jobspec.Run{State: "missed"}, false, false},
		{jobspec.Run{State: "missed"}, true, true},
		{jobspec.Run{Action: "component/web", State: "running"}, false, true},
		{jobspec.Run{Action: "component/web", State: "succeeded"}, true, true},
		{jobspec.Run{Action: "component/web", State: "failed"}, false, false}, // one of several looks
	} {
		if got := run.HasLog(tc.run, tc.open); got != tc.want {
			t.Errorf("HasLog(%+v, open %t) = %t, want %t", tc.run, tc.open, got, tc.want)
		}
	}
}
