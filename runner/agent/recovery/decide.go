// Package recovery decides what a starting agent does with an attempt that an
// earlier agent left behind. It looks at facts only; who collects them and acts
// on the decision is package job.
package recovery

// Phase is how far the earlier agent is known to have come. It is written to
// disk before what it names is done.
type Phase string

// The phases, in their order.
const (
	// Claimed: the job directory exists.
	Claimed Phase = "claimed"
	// Ordered: the order is being used up (nonce, intent); no engine runs yet.
	Ordered Phase = "ordered"
	// Starting: the engine is being started; from here on it may have run.
	Starting Phase = "starting"
	// Started: the engine's process is on record.
	Started Phase = "started"
	// Ended: the engine is over and the report is on disk.
	Ended Phase = "ended"
	// Delivered: the control plane has the report.
	Delivered Phase = "delivered"
)

// Happened reports whether what the phase names is the case also when it could
// not be written down. The phases before announce something that must then not
// be done.
func (p Phase) Happened() bool { return p == Started || p == Ended || p == Delivered }

// Facts are what is found on the machine.
type Facts struct {
	Phase Phase
	// Alive: the engine's process still runs.
	Alive bool
	// HasResult: the engine has written its result.
	HasResult bool
	Mutates   bool
}

// Decision is what to do.
type Decision string

// The decisions.
const (
	// Adopt: wait for the engine as if nothing had happened.
	Adopt Decision = "adopt"
	// Report: the engine is over and said how; report that.
	Report Decision = "report"
	// Uncertain: the engine may have changed something and cannot be asked.
	Uncertain Decision = "uncertain"
	// NotStarted: no engine began; nothing happened.
	NotStarted Decision = "not_started"
	// Forget: all was said already; only the directory is left.
	Forget Decision = "forget"
)

// Decide says what to do with an attempt.
func Decide(f Facts) Decision {
	switch {
	case f.Phase == Delivered:
		return Forget
	case f.Phase == Ended:
		return Report
	case f.Alive:
		return Adopt
	case f.Phase != Starting && f.Phase != Started:
		return NotStarted
	case f.HasResult:
		return Report
	case f.Mutates, f.Phase == Started:
		return Uncertain
	default: // it changes nothing, and maybe did not even begin
		return NotStarted
	}
}
