// Package ending says what came of an engine: of one that ran, that was stopped, or
// that never began. It decides on facts alone; package job collects them.
package ending

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Stop is why an attempt was stopped from outside. The zero value: it was not.
type Stop string

// The reasons.
const (
	Cancel   Stop = "cancel"   // the control plane asked for it
	Lost     Stop = "lost"     // the lease is gone: report nothing
	Switch   Stop = "switch"   // the customer's switch
	Shutdown Stop = "shutdown" // the agent ends
	Timeout  Stop = "timeout"  // the engine took too long
)

// Facts are how an engine's run ended, as far as it is known.
type Facts struct {
	Mutates bool
	// Result is the engine's own, nil when it left none.
	Result *jobspec.Result
	// BadResult says why the engine's result could not be read.
	BadResult string
	// ExitCode is -1 when it is not known.
	ExitCode int
	Stop     Stop
	// Inherited: an earlier agent started the engine.
	Inherited bool
	Timeout   time.Duration
}

// hostEnded says whether an engine that was asked to stop, or was killed, was so
// because its host ends: its agent, its pod or its machine. A person's cancel,
// the customer's switch and the job's own timeout are no such reasons.
func (e Facts) hostEnded() bool {
	switch e.Stop {
	case Shutdown:
		return true
	case "":
		// Who stops an engine without the agent: the kernel when the agent dies, or
		// Kubernetes when it deletes the pod. One that was killed while its agent
		// watched may have been killed for what it did itself.
		return e.Result != nil || e.Inherited && e.ExitCode < 0 && e.BadResult == ""
	}
	return false
}

// engineOutcomes are those that an engine may claim of itself.
var engineOutcomes = []jobspec.Outcome{
	jobspec.OutcomeSucceeded, jobspec.OutcomeFailed, jobspec.OutcomeRefused,
	jobspec.OutcomeCancelled, jobspec.OutcomeNotStarted, jobspec.OutcomeStale,
}

// Conclude says what came of an engine that did run. An engine that left no
// word may have done everything or nothing; for a job that mutates that is
// uncertain, whatever its exit code.
func Conclude(e Facts) jobspec.Result {
	if e.Result == nil {
		return e.withoutWord()
	}
	r := *e.Result
	r.Reason = reasonOfEngine(r)
	switch {
	case !slices.Contains(engineOutcomes, r.Outcome):
		r.Error = fmt.Sprintf("the engine claims the outcome %q, which the job contract does not know", r.Outcome)
		r.Outcome = jobspec.OutcomeFailed
		if e.Mutates {
			r.Outcome = jobspec.OutcomeUncertain
		}
	case r.Outcome == jobspec.OutcomeCancelled && !e.Mutates && e.Stop != Cancel && e.Stop != Timeout:
		// Nobody wanted this job to end, only its engine: the agent, the machine
		// or the switch did. It changed nothing, so it may begin again.
		r.Outcome, r.Error = jobspec.OutcomeNotStarted, "was stopped before it was done, and changed nothing"
		if e.hostEnded() {
			r.Reason = jobspec.ReasonHostEnded
		}
	case e.Mutates && e.hostEnded() && (r.Outcome == jobspec.OutcomeCancelled || r.Outcome == jobspec.OutcomeNotStarted):
		r = ofEndedHost(r)
	case r.Outcome == jobspec.OutcomeNotStarted && e.Mutates && e.Stop != Timeout:
		r.Outcome = jobspec.OutcomeCancelled // its order is used up
	case e.Stop == Timeout && (r.Outcome == jobspec.OutcomeCancelled || r.Outcome == jobspec.OutcomeNotStarted && e.Mutates):
		r.Outcome, r.Error = jobspec.OutcomeFailed, fmt.Sprintf("timed out after %s and stopped at a safe point", e.Timeout)
	}
	return r
}

// reasonOfEngine is the one reason that an engine may give for itself.
func reasonOfEngine(r jobspec.Result) jobspec.Reason {
	if r.Outcome == jobspec.OutcomeFailed && r.Reason == jobspec.ReasonNeedsChange {
		return r.Reason
	}
	return ""
}

// withoutWord is the result of an engine that left none.
func (e Facts) withoutWord() jobspec.Result {
	r := jobspec.Result{Outcome: jobspec.OutcomeFailed, ExitCode: e.ExitCode, Error: e.silent()}
	switch {
	case e.Mutates:
		r.Outcome = jobspec.OutcomeUncertain
		r.Remedy = "the change may have happened in part; a new plan shows what is there"
		if e.hostEnded() {
			r.Reason = jobspec.ReasonHostEnded
		}
	case e.killed():
		// It was ended, with its agent, by the switch or by somebody: not by what it
		// had to do. It changed nothing, so it may begin again; runner-api counts
		// attempts.
		r.Outcome = jobspec.OutcomeNotStarted
		if e.hostEnded() {
			r.Reason = jobspec.ReasonHostEnded
		}
	}
	return r
}

// killed says whether an engine that left no word was ended from outside, although
// neither a person nor the job's timeout wanted the job to end. An engine that is asked
// to stop before it listens for that dies so, too.
func (e Facts) killed() bool {
	switch {
	case e.BadResult != "":
		return false
	case e.Stop == "":
		return e.ExitCode < 0
	}
	return e.Stop == Shutdown || e.Stop == Switch
}

// ofEndedHost is the result of an apply whose engine stopped at a safe point
// because its host ended: its change is planned again.
func ofEndedHost(r jobspec.Result) jobspec.Result {
	said := strings.TrimPrefix(r.Error, jobspec.StoppedOnRequest)
	r.Reason = jobspec.ReasonHostEnded
	if r.Outcome == jobspec.OutcomeNotStarted {
		// Its order is used up: a new plan brings a new one.
		r.Outcome, r.Remedy = jobspec.OutcomeStale, PlannedAgain
		r.Error = hostEnded + " before the engine changed anything: " + said
		return r
	}
	r.Outcome, r.Remedy = jobspec.OutcomeUncertain, "the change may have happened in part; a new plan shows what is there"
	r.Error = hostEnded + " and stopped the engine: " + said
	return r
}

// hostEnded begins the errors of attempts that nobody wanted to end.
const hostEnded = "the runner's process, pod or machine ended"

// silent says why there is no result.
func (e Facts) silent() string {
	switch {
	case e.BadResult != "":
		return e.BadResult
	case e.hostEnded():
		return hostEnded + " before the engine left a result"
	case e.Stop == Timeout:
		return fmt.Sprintf("timed out after %s, and did not stop when asked to", e.Timeout)
	case e.Stop != "":
		return fmt.Sprintf("was ended (%s) before it left a result", e.Stop)
	case e.ExitCode < 0:
		return "the engine ended without a result"
	}
	return fmt.Sprintf("the engine ended with exit code %d without a result", e.ExitCode)
}

// PlannedAgain is the remedy of a stale result.
const PlannedAgain = "nothing was done; the control plane plans it again"

// BeforeEngine is the result of an attempt whose engine did not begin,
// because the agent or the engine's pod ended. used: its order cannot be given
// again.
func BeforeEngine(used bool) jobspec.Result {
	r := jobspec.Result{Outcome: jobspec.OutcomeNotStarted, Reason: jobspec.ReasonHostEnded, Error: hostEnded + " before the engine began"}
	if used {
		r.Outcome, r.Remedy = jobspec.OutcomeStale, PlannedAgain
	}
	return r
}
