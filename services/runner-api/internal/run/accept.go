// Package run decides on reports of runs that runners start by themselves.
package run

import "github.com/berth-dev/berth/pkg/jobspec"

// Verdict is what becomes of a report.
type Verdict string

// The verdicts.
const (
	Recorded Verdict = "recorded" // the run is in the reported state now
	Replayed Verdict = "replayed" // it was before
	Finished Verdict = "finished" // it has ended otherwise; refused
)

// Stored is what is known of the run. A run that was just made is "queued".
type Stored struct {
	State    string
	ExitCode int
	Error    string
}

// Accept decides on a report. An end is never taken back: a late "running" of a
// run that has ended changes nothing and is no error, since reports may
// overtake each other.
func Accept(stored Stored, r jobspec.Run) Verdict {
	switch stored.State {
	case "queued":
		return Recorded
	case "running":
		if r.State == "running" {
			return Replayed
		}
		return Recorded
	}
	if r.State == "running" || (r.State == stored.State && r.ExitCode == stored.ExitCode && r.Error == stored.Error) {
		return Replayed
	}
	return Finished
}

// HasLog reports whether a log is kept of a run that is reported so. One that
// never began has nothing to say, unless it said something already.
func HasLog(state string, open bool) bool { return state != "missed" || open }

// Ended reports whether a run in this state is over.
func Ended(state string) bool { return state != "queued" && state != "running" }
