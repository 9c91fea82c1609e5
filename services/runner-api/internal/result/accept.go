// Package result decides what a report of an attempt does to its job.
package result

import (
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// Job is everything that the decision needs.
type Job struct {
	// State and Attempt are the job's present ones.
	State   model.JobState
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
	Reported model.Reported
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
func Accept(j Job, r Report) (verdict Verdict, state model.JobState) {
	if j.Reported == (model.Reported{Attempt: r.Attempt, Digest: r.Digest}) {
		return Replayed, j.State
	}
	if j.State != model.JobLeased || r.Attempt != j.Attempt || !j.LeaseOpen || !sameFence(j.Fence, r.Fence) || j.Superseded {
		return Superseded, j.State
	}
	return Accepted, next(j, r.Outcome)
}

// next is the state of a job whose present attempt ended with outcome. A job
// that mutates is never queued again unless nothing of it was started.
func next(j Job, outcome jobspec.Outcome) model.JobState {
	switch outcome {
	case jobspec.OutcomeSucceeded:
		return model.JobSucceeded
	case jobspec.OutcomeRefused:
		return model.JobRefused
	case jobspec.OutcomeCancelled:
		return model.JobCancelled
	case jobspec.OutcomeNotStarted:
		return again(j)
	case jobspec.OutcomeUncertain:
		if !j.Mutates {
			return again(j)
		}
	}
	return model.JobFailed
}

func again(j Job) model.JobState {
	switch {
	case j.CancelRequested:
		return model.JobCancelled
	case j.Attempt >= session.MaxAttempts:
		return model.JobFailed
	default:
		return model.JobQueued
	}
}

func sameFence(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
