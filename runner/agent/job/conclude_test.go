package job_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/job"
)

func TestConclude(t *testing.T) {
	t.Parallel()
	said := func(o jobspec.Outcome) *jobspec.Result { return &jobspec.Result{Outcome: o} }
	for _, tc := range []struct {
		name   string
		ending job.Ending
		want   jobspec.Outcome
		error  string
	}{
		{"a result is believed", job.Ending{Result: said("succeeded")}, "succeeded", ""},
		{"also of an apply that was told to stop too late", job.Ending{Mutates: true, Result: said("succeeded"), Stop: job.StopCancel}, "succeeded", ""},
		{"stopped at a safe point", job.Ending{Result: said("cancelled"), Stop: job.StopCancel}, "cancelled", ""},
		{"stopped by the clock", job.Ending{Result: said("cancelled"), Stop: job.StopTimeout, Timeout: time.Minute}, "failed", "timed out after 1m0s and stopped at a safe point"},
		{"a plan whose agent ended may begin again", job.Ending{Result: said("cancelled"), Stop: job.StopShutdown}, "not_started", "was stopped before it was done, and changed nothing"},
		{"a plan whose engine was stopped with the last agent", job.Ending{Result: said("cancelled"), ExitCode: -1}, "not_started", "was stopped before it was done, and changed nothing"},
		{"an apply never begins again", job.Ending{Mutates: true, Result: said("cancelled"), Stop: job.StopShutdown}, "cancelled", ""},
		{"stale is the engine's to say", job.Ending{Mutates: true, Result: said("stale")}, "stale", ""},
		{"uncertain is not", job.Ending{Result: said("uncertain")}, "failed", `the engine claims the outcome "uncertain", which the job contract does not know`},
		{"an unknown outcome of an apply", job.Ending{Mutates: true, Result: said("fine")}, "uncertain", `the engine claims the outcome "fine", which the job contract does not know`},

		{"a plan without a word", job.Ending{ExitCode: 2}, "failed", "the engine ended with exit code 2 without a result"},
		{"an apply without a word", job.Ending{Mutates: true, ExitCode: 2}, "uncertain", "the engine ended with exit code 2 without a result"},
		{"an apply that says fine by its exit code alone", job.Ending{Mutates: true}, "uncertain", "the engine ended with exit code 0 without a result"},
		{"an adopted engine has no exit code", job.Ending{Mutates: true, ExitCode: -1}, "uncertain", "the engine ended without a result"},
		{"an apply that was ended", job.Ending{Mutates: true, ExitCode: -1, Stop: job.StopSwitch}, "uncertain", "was ended (switch) before it left a result"},
		{"a plan that hung", job.Ending{ExitCode: -1, Stop: job.StopTimeout, Timeout: time.Minute}, "failed", "timed out after 1m0s, and did not stop when asked to"},
		{"a result that is no JSON", job.Ending{Mutates: true, BadResult: "out/result.json of the engine is not what the job contract says"}, "uncertain", "out/result.json of the engine is not what the job contract says"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := job.Conclude(tc.ending)
			if diff := cmp.Diff([]string{string(tc.want), tc.error}, []string{string(got.Outcome), got.Error}); diff != "" {
				t.Errorf("Conclude(%+v) (-want +got):\n%s", tc.ending, diff)
			}
		})
	}
}
