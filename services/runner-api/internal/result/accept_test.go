package result_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/runner-api/internal/result"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	five, four := int64(5), int64(4)
	plan := result.Job{State: "leased", Attempt: 1, LeaseOpen: true}
	apply := result.Job{State: "leased", Attempt: 1, LeaseOpen: true, Mutates: true, Fence: &five}
	with := func(j result.Job, change func(*result.Job)) result.Job {
		change(&j)
		return j
	}
	report := func(outcome jobspec.Outcome) result.Report {
		return result.Report{Attempt: 1, Outcome: outcome, Digest: "d"}
	}
	fenced := func(outcome jobspec.Outcome, fence *int64) result.Report {
		return result.Report{Attempt: 1, Outcome: outcome, Digest: "d", Fence: fence}
	}
	tests := []struct {
		name   string
		job    result.Job
		report result.Report
		want   result.Verdict
		state  model.JobState
	}{
		{"a plan succeeds", plan, report(jobspec.OutcomeSucceeded), result.Accepted, "succeeded"},
		{"an apply succeeds under its fence", apply, fenced(jobspec.OutcomeSucceeded, &five), result.Accepted, "succeeded"},
		{"failed", plan, report(jobspec.OutcomeFailed), result.Accepted, "failed"},
		{"stale is a failure that its outcome explains", apply, fenced(jobspec.OutcomeStale, &five), result.Accepted, "failed"},
		{"refused", apply, fenced(jobspec.OutcomeRefused, &five), result.Accepted, "refused"},
		{"cancelled", plan, report(jobspec.OutcomeCancelled), result.Accepted, "cancelled"},
		{"an apply that did not start waits again", apply, fenced(jobspec.OutcomeNotStarted, &five), result.Accepted, "queued"},
		{"an apply that is uncertain never runs again", apply, fenced(jobspec.OutcomeUncertain, &five), result.Accepted, "failed"},
		{"a plan that is uncertain runs again", plan, report(jobspec.OutcomeUncertain), result.Accepted, "queued"},
		{"not a fourth time", with(plan, func(j *result.Job) { j.Attempt = 3 }), result.Report{Attempt: 3, Outcome: jobspec.OutcomeNotStarted}, result.Accepted, "failed"},
		{"what was to be cancelled does not wait again", with(plan, func(j *result.Job) { j.CancelRequested = true }), report(jobspec.OutcomeNotStarted), result.Accepted, "cancelled"},
		{"a cancel that came too late changes nothing", with(plan, func(j *result.Job) { j.CancelRequested = true }), report(jobspec.OutcomeSucceeded), result.Accepted, "succeeded"},

		{"the same report again", with(plan, func(j *result.Job) {
			j.State, j.LeaseOpen, j.Reported = "succeeded", false, model.Reported{Attempt: 1, Digest: "d"}
		}), report(jobspec.OutcomeSucceeded), result.Replayed, "succeeded"},
		{"the same report again after the job went on", with(plan, func(j *result.Job) {
			j.State, j.Attempt, j.Reported = "leased", 2, model.Reported{Attempt: 1, Digest: "d"}
		}), report(jobspec.OutcomeNotStarted), result.Replayed, "leased"},
		{"another report of the same attempt", with(plan, func(j *result.Job) {
			j.State, j.LeaseOpen, j.Reported = "succeeded", false, model.Reported{Attempt: 1, Digest: "other"}
		}), report(jobspec.OutcomeFailed), result.Superseded, "succeeded"},
		{"an older attempt", with(plan, func(j *result.Job) { j.Attempt = 2 }), report(jobspec.OutcomeSucceeded), result.Superseded, "leased"},
		{"an attempt that never was", plan, result.Report{Attempt: 2, Outcome: jobspec.OutcomeSucceeded}, result.Superseded, "leased"},
		{"an attempt whose lease was ended", with(plan, func(j *result.Job) { j.LeaseOpen = false }), report(jobspec.OutcomeSucceeded), result.Superseded, "leased"},
		{"a job that was cancelled meanwhile", with(plan, func(j *result.Job) { j.State = "cancelled" }), report(jobspec.OutcomeSucceeded), result.Superseded, "cancelled"},
		{"an older fence", apply, fenced(jobspec.OutcomeSucceeded, &four), result.Superseded, "leased"},
		{"no fence where one is needed", apply, report(jobspec.OutcomeSucceeded), result.Superseded, "leased"},
		{"a resource that was granted again", with(apply, func(j *result.Job) { j.Superseded = true }), fenced(jobspec.OutcomeSucceeded, &five), result.Superseded, "leased"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, state := result.Accept(tt.job, tt.report)
			if got != tt.want || state != tt.state {
				t.Errorf("Accept(%+v, %+v) = %s, %s; want %s, %s", tt.job, tt.report, got, state, tt.want, tt.state)
			}
		})
	}
}
