package ending_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/ending"
)

func TestConclude(t *testing.T) {
	t.Parallel()
	said := func(o jobspec.Outcome) *jobspec.Result { return &jobspec.Result{Outcome: o} }
	stopped := func(at string) *jobspec.Result {
		return &jobspec.Result{Outcome: jobspec.OutcomeCancelled, Error: jobspec.StoppedOnRequest + at}
	}
	unbegun := func(at string) *jobspec.Result {
		return &jobspec.Result{Outcome: jobspec.OutcomeNotStarted, Error: jobspec.StoppedOnRequest + at}
	}
	for _, tc := range []struct {
		name  string
		facts ending.Facts
		want  string // the outcome, and the reason if there is one
		error string
	}{
		{"a result is believed", ending.Facts{Result: said("succeeded")}, "succeeded", ""},
		{"also of an apply that was told to stop too late", ending.Facts{Mutates: true, Result: said("succeeded"), Stop: ending.Cancel}, "succeeded", ""},
		{"stopped at a safe point", ending.Facts{Result: said("cancelled"), Stop: ending.Cancel}, "cancelled", ""},
		{"stopped by the clock", ending.Facts{Result: said("cancelled"), Stop: ending.Timeout, Timeout: time.Minute}, "failed", "timed out after 1m0s and stopped at a safe point"},
		{"a plan whose agent ended may begin again", ending.Facts{Result: said("cancelled"), Stop: ending.Shutdown}, "not_started host_ended", "was stopped before it was done, and changed nothing"},
		{"a plan whose engine was stopped with the last agent", ending.Facts{Result: said("cancelled"), ExitCode: -1}, "not_started host_ended", "was stopped before it was done, and changed nothing"},
		{"an apply whose agent was told to end is planned again", ending.Facts{Mutates: true, Result: stopped("component web"), Stop: ending.Shutdown},
			"uncertain host_ended", "the runner's process, pod or machine ended and stopped the engine: component web"},
		{"and one that was stopped by the kernel with its agent, or by Kubernetes", ending.Facts{Mutates: true, Result: stopped("component web"), ExitCode: -1},
			"uncertain host_ended", "the runner's process, pod or machine ended and stopped the engine: component web"},
		{"before its first effect nothing was done", ending.Facts{Mutates: true, Result: unbegun("component web"), Stop: ending.Shutdown},
			"stale host_ended", "the runner's process, pod or machine ended before the engine changed anything: component web"},
		{"a person's cancel of an apply stays a cancel", ending.Facts{Mutates: true, Result: stopped("component web"), Stop: ending.Cancel},
			"cancelled", "stopped on request: component web"},
		{"also before its first effect", ending.Facts{Mutates: true, Result: unbegun("component web"), Stop: ending.Cancel}, "cancelled", "stopped on request: component web"},
		{"so does the customer's switch", ending.Facts{Mutates: true, Result: stopped("component web"), Stop: ending.Switch}, "cancelled", "stopped on request: component web"},
		{"and before its first effect", ending.Facts{Mutates: true, Result: unbegun("component web"), Stop: ending.Switch}, "cancelled", "stopped on request: component web"},
		{"an apply that the clock stopped before its first effect", ending.Facts{Mutates: true, Result: unbegun(""), Stop: ending.Timeout, Timeout: time.Minute},
			"failed", "timed out after 1m0s and stopped at a safe point"},
		{"an engine cannot say that its host ended", ending.Facts{Mutates: true, Result: &jobspec.Result{Outcome: "failed", Reason: jobspec.ReasonHostEnded}}, "failed", ""},
		{"but that something has to be changed first", ending.Facts{Result: &jobspec.Result{Outcome: "failed", Reason: jobspec.ReasonNeedsChange}}, "failed needs_change", ""},
		{"of a failure only", ending.Facts{Mutates: true, Result: &jobspec.Result{Outcome: "cancelled", Reason: jobspec.ReasonNeedsChange}, Stop: ending.Cancel}, "cancelled", ""},
		{"stale is the engine's to say", ending.Facts{Mutates: true, Result: said("stale")}, "stale", ""},
		{"uncertain is not", ending.Facts{Result: said("uncertain")}, "failed", `the engine claims the outcome "uncertain", which the job contract does not know`},
		{"an unknown outcome of an apply", ending.Facts{Mutates: true, Result: said("fine")}, "uncertain", `the engine claims the outcome "fine", which the job contract does not know`},

		{"a plan without a word", ending.Facts{ExitCode: 2}, "failed", "the engine ended with exit code 2 without a result"},
		{"an apply without a word", ending.Facts{Mutates: true, ExitCode: 2}, "uncertain", "the engine ended with exit code 2 without a result"},
		{"an apply that says fine by its exit code alone", ending.Facts{Mutates: true}, "uncertain", "the engine ended with exit code 0 without a result"},
		{"an apply that was killed while its agent watched", ending.Facts{Mutates: true, ExitCode: -1}, "uncertain", "the engine ended without a result"},
		{"one that was killed with its agent", ending.Facts{Mutates: true, ExitCode: -1, Inherited: true}, "uncertain host_ended", "the runner's process, pod or machine ended before the engine left a result"},
		{"a plan that was killed with its agent", ending.Facts{ExitCode: -1, Inherited: true}, "not_started host_ended", "the runner's process, pod or machine ended before the engine left a result"},
		{"a plan that was stopped with its agent before it listened for that", ending.Facts{ExitCode: -1, Stop: ending.Shutdown}, "not_started host_ended",
			"the runner's process, pod or machine ended before the engine left a result"},
		{"a plan that the switch ended so", ending.Facts{ExitCode: -1, Stop: ending.Switch}, "not_started", "was ended (switch) before it left a result"},
		{"a plan that a person ended so", ending.Facts{ExitCode: -1, Stop: ending.Cancel}, "failed", "was ended (cancel) before it left a result"},
		{"whatever its exit code", ending.Facts{ExitCode: 143, Stop: ending.Shutdown}, "not_started host_ended", "the runner's process, pod or machine ended before the engine left a result"},
		{"an apply that did not stop in time for its agent's end", ending.Facts{Mutates: true, ExitCode: -1, Stop: ending.Shutdown}, "uncertain host_ended",
			"the runner's process, pod or machine ended before the engine left a result"},
		{"an apply that was ended", ending.Facts{Mutates: true, ExitCode: -1, Stop: ending.Switch}, "uncertain", "was ended (switch) before it left a result"},
		{"a plan that hung", ending.Facts{ExitCode: -1, Stop: ending.Timeout, Timeout: time.Minute}, "failed", "timed out after 1m0s, and did not stop when asked to"},
		{"a result that is no JSON", ending.Facts{Mutates: true, BadResult: "out/result.json of the engine is not what the job contract says"}, "uncertain", "out/result.json of the engine is not what the job contract says"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := ending.Conclude(tc.facts)
			if diff := cmp.Diff([]string{tc.want, tc.error}, []string{strings.TrimSpace(string(got.Outcome) + " " + string(got.Reason)), got.Error}); diff != "" {
				t.Errorf("Conclude(%+v) (-want +got):\n%s", tc.facts, diff)
			}
		})
	}
}
