package job

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Stop is why an attempt was stopped from outside. The zero value: it was not.
type Stop string

// The reasons.
const (
	StopCancel   Stop = "cancel"   // the control plane asked for it
	StopLost     Stop = "lost"     // the lease is gone: report nothing
	StopSwitch   Stop = "switch"   // the customer's switch
	StopShutdown Stop = "shutdown" // the agent ends
	StopTimeout  Stop = "timeout"  // the engine took too long
)

// Ending is how an engine's run ended, as far as it is known.
type Ending struct {
	Mutates bool
	// Result is the engine's own, nil when it left none.
	Result *jobspec.Result
	// BadResult says why the engine's result could not be read.
	BadResult string
	// ExitCode is -1 when it is not known.
	ExitCode int
	Stop     Stop
	Timeout  time.Duration
}

// engineOutcomes are those that an engine may claim of itself.
var engineOutcomes = []jobspec.Outcome{
	jobspec.OutcomeSucceeded, jobspec.OutcomeFailed, jobspec.OutcomeRefused,
	jobspec.OutcomeCancelled, jobspec.OutcomeNotStarted, jobspec.OutcomeStale,
}

// Conclude says what came of an engine that did run. An engine that left no
// word may have done everything or nothing; for a job that mutates that is
// uncertain, whatever its exit code.
func Conclude(e Ending) jobspec.Result {
	if e.Result == nil {
		r := jobspec.Result{Outcome: jobspec.OutcomeFailed, ExitCode: e.ExitCode, Error: e.silent()}
		switch {
		case e.Mutates:
			r.Outcome = jobspec.OutcomeUncertain
			r.Remedy = "the change may have happened in part; a new plan shows what is there"
		case e.ExitCode < 0 && e.Stop == "" && e.BadResult == "":
			// It was ended, with its agent or by somebody: not by what it had to do.
			// It changed nothing, so it may begin again; runner-api counts attempts.
			r.Outcome = jobspec.OutcomeNotStarted
		}
		return r
	}
	r := *e.Result
	switch {
	case !slices.Contains(engineOutcomes, r.Outcome):
		r.Error = fmt.Sprintf("the engine claims the outcome %q, which the job contract does not know", r.Outcome)
		r.Outcome = jobspec.OutcomeFailed
		if e.Mutates {
			r.Outcome = jobspec.OutcomeUncertain
		}
	case r.Outcome == jobspec.OutcomeCancelled && !e.Mutates && e.Stop != StopCancel && e.Stop != StopTimeout:
		// Nobody wanted this job to end, only its engine: the agent, the machine
		// or the switch did. It changed nothing, so it may begin again.
		r.Outcome, r.Error = jobspec.OutcomeNotStarted, "was stopped before it was done, and changed nothing"
	case r.Outcome == jobspec.OutcomeCancelled && e.Stop == StopTimeout:
		r.Outcome, r.Error = jobspec.OutcomeFailed, fmt.Sprintf("timed out after %s and stopped at a safe point", e.Timeout)
	}
	return r
}

// silent says why there is no result.
func (e Ending) silent() string {
	switch {
	case e.BadResult != "":
		return e.BadResult
	case e.Stop == StopTimeout:
		return fmt.Sprintf("timed out after %s, and did not stop when asked to", e.Timeout)
	case e.Stop != "":
		return fmt.Sprintf("was ended (%s) before it left a result", e.Stop)
	case e.ExitCode < 0:
		return "the engine ended without a result"
	}
	return fmt.Sprintf("the engine ended with exit code %d without a result", e.ExitCode)
}
