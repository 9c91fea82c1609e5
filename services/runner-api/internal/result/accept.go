// Package result decides what a report of an attempt does to its job.
package result

import (
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// Job is everything that the decision needs.
type Job struct {
	// State and Attempt are the job's present ones.
	State   string
	Attempt int
	Mutates bool
	// Fence is nil for a job that mutates nothing.
	Fence           *int64
	CancelRequested bool
	// LeaseOpen: the reported attempt has a lease of the session that reports,
	// which was not ended (an expired one is open).
	LeaseOpen bool
	// Superseded: the resource was granted to somebody else since.
	Superseded bool
	// Reported is the last report that was accepted; zero before the first.
	Reported Reported
}

// Reported names a report that was accepted. It is kept with the job.
type Reported struct {
	Attempt int    `json:"attempt"`
	Digest  string `json:"digest"`
}

// Report is how a runner says that an attempt ended.
type Report struct {
	Attempt int
	Fence   *int64
	Outcome jobspec.Outcome
	Digest  string
}

// Verdict is what becomes of a report.
type Verdict string

// The verdicts.
const (
	Accepted   Verdict = "accepted"
	Replayed   Verdict = "replayed"   // accepted before, the same bytes
	Superseded Verdict = "superseded" // too late: evidence, nothing else
)

// Accept decides on a report. state is the job's next one when it is accepted.
func Accept(j Job, r Report) (verdict Verdict, state string) {
	if j.Reported == (Reported{Attempt: r.Attempt, Digest: r.Digest}) {
		return Replayed, j.State
	}
	if j.State != "leased" || r.Attempt != j.Attempt || !j.LeaseOpen || !sameFence(j.Fence, r.Fence) || j.Superseded {
		return Superseded, j.State
	}
	return Accepted, next(j, r.Outcome)
}

// next is the state of a job whose present attempt ended with outcome. A job
// that mutates is never queued again unless nothing of it was started.
func next(j Job, outcome jobspec.Outcome) string {
	switch outcome {
	case jobspec.OutcomeSucceeded:
		return "succeeded"
	case jobspec.OutcomeRefused:
		return "refused"
	case jobspec.OutcomeCancelled:
		return "cancelled"
	case jobspec.OutcomeNotStarted:
		return again(j)
	case jobspec.OutcomeUncertain:
		if !j.Mutates {
			return again(j)
		}
	}
	return "failed"
}

func again(j Job) string {
	switch {
	case j.CancelRequested:
		return "cancelled"
	case j.Attempt >= session.MaxAttempts:
		return "failed"
	default:
		return "queued"
	}
}

func sameFence(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
