package api

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
)

func TestBuildWaitNamesWhoCanEndIt(t *testing.T) {
	t.Parallel()
	finished := time.Unix(1_800_000_000, 0)
	job := func(state apigen.JobState) *apigen.Job { return &apigen.Job{State: state} }
	tests := []struct {
		name    string
		build   apigen.Build
		silence time.Duration
		want    *apigen.BuildWait
	}{
		{
			name: "not taken up", build: apigen.Build{State: apigen.BuildStateQueued},
			want: &apigen.BuildWait{Reason: "builder has not taken it up yet", On: "builder"},
		},
		{
			name: "queued behind others", build: apigen.Build{State: apigen.BuildStateRunning, Job: job(apigen.JobStateQueued)}, silence: 119 * time.Second,
			want: &apigen.BuildWait{Reason: "it is queued for the Build Runner", On: "the Build Runner"},
		},
		{
			name: "no Build Runner comes for it", build: apigen.Build{State: apigen.BuildStateRunning, Job: job(apigen.JobStateQueued)}, silence: 150 * time.Second,
			want: &apigen.BuildWait{
				Reason: "the Build Runner has been silent for 2m30s; builder keeps it running: check that builder is up, and read its log", On: "builder",
			},
		},
		{name: "at work", build: apigen.Build{State: apigen.BuildStateRunning, Job: job(apigen.JobStateLeased)}, silence: time.Hour},
		{name: "finished", build: apigen.Build{State: apigen.BuildStateSucceeded, FinishedAt: &finished}, silence: time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, buildWait(tt.build, tt.silence)); diff != "" {
				t.Errorf("wait (-want +got):\n%s", diff)
			}
		})
	}
}
