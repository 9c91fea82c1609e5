package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/dated"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/result"
	"github.com/berth-dev/berth/services/runner-api/internal/series"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// lateReports is how many reports that came too late are kept with a job.
const lateReports = 8

// PutResult accepts the end of an attempt, once.
func (a *API) PutResult(ctx context.Context, req apigen.PutResultRequestObject) (apigen.PutResultResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if req.Body.Result.JobID != req.Job || req.Body.Result.Attempt != req.Body.Attempt {
		return nil, fault.Newf(fault.ErrInvalid, "the result is for a different job or attempt than the report")
	}
	reported := req.Body.Result
	err = dated.Check(time.Now(), dated.Time{Pointer: "/result/started_at", At: reported.StartedAt},
		dated.Time{Pointer: "/result/finished_at", At: reported.FinishedAt},
		dated.Time{Pointer: "/result/first_instruction_at", At: reported.FirstInstructionAt})
	if err != nil {
		return nil, err
	}
	digest, err := digestOf(req.Body)
	if err != nil {
		return nil, err
	}
	report := result.Report{Attempt: req.Body.Attempt, Fence: req.Body.Fence, Outcome: req.Body.Result.Outcome, Digest: digest}
	var verdict result.Verdict
	var state model.JobState
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		at, err := attemptOf(ctx, tx, s, session.Attempt{JobID: req.Job, Attempt: req.Body.Attempt})
		if err != nil {
			return err
		}
		before, err := at.stored()
		if err != nil {
			return err
		}
		verdict, state = result.Accept(result.Job{
			State: at.State, Attempt: int(at.Attempt), Mutates: at.Mutates, Fence: at.Fence, CancelRequested: at.CancelRequested,
			LeaseOpen: at.leaseOpen, Superseded: at.superseded(), Reported: before.Reported,
		}, report)
		switch verdict {
		case result.Accepted:
			if needsPlan(at, report.Outcome) && (before.Plan == nil || before.Plan.Attempt != report.Attempt) {
				return fault.With(fault.Newf(fault.ErrConflict, "hand in the plan before reporting that it succeeded"), fault.Code("plan_missing"))
			}
			return a.accept(ctx, tx, at, ending{
				state: state, JobResult: model.JobResult{Result: exhausted(state, req.Body.Result), Reported: model.Reported{Attempt: report.Attempt, Digest: digest}},
			})
		case result.Superseded:
			late := model.LateReport{Attempt: report.Attempt, Fence: report.Fence, Digest: digest, At: time.Now().UTC(), Session: s.ID, Result: req.Body.Result}
			return a.keepLate(ctx, tx, at, late)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("put result: %w", err)
	}
	if verdict == result.Superseded {
		return nil, errSuperseded("attempt %d of the job is over; the report is kept as evidence", report.Attempt)
	}
	return apigen.PutResult200JSONResponse{State: apigen.JobState(state)}, nil
}

// exhausted is a report that leaves its job failed because it did not get to its
// end on any attempt: its last error alone would sound as if it were tried again.
func exhausted(state model.JobState, r jobspec.Result) jobspec.Result {
	if state == model.JobFailed && r.Outcome == jobspec.OutcomeNotStarted {
		r.Error = fmt.Sprintf("was given out %d times and never came to its end; most recently: %s", r.Attempt, r.Error)
		if r.Remedy == "" && r.Reason == jobspec.ReasonHostEnded {
			r.Remedy = "find out what ends the runner's process, pod or machine (its log, its memory, drains), then retry the step"
		}
	}
	return r
}

func needsPlan(at attempt, outcome jobspec.Outcome) bool {
	return at.Operation == string(jobspec.OperationPlan) && outcome == jobspec.OutcomeSucceeded
}

// ending is how a report ends an attempt.
type ending struct {
	model.JobResult
	state model.JobState // of the job from now on
}

// accept moves the job, ends the lease and wakes who waits.
func (a *API) accept(ctx context.Context, tx *database.Tx, at attempt, e ending) error {
	if err := tx.RunnerEndLease(ctx, runnerdb.RunnerEndLeaseParams{ID: at.LeaseID, Reason: string(e.Outcome)}); err != nil {
		return err
	}
	tx.AfterCommit(func() {
		a.metrics.ended.Add(ctx, 1)
		a.log.InfoContext(ctx, "attempt reported", "org_id", tx.OrgID(), "job_id", at.ID, "attempt", at.number, "outcome", e.Outcome, "state", e.state)
	})
	if e.state == model.JobQueued {
		body, err := json.Marshal(model.Requeued{Reported: e.Reported})
		if err != nil {
			return err
		}
		tx.NotifyAfterCommit(model.ChannelJobs, at.RunnerID)
		return tx.RunnerRequeueJob(ctx, runnerdb.RunnerRequeueJobParams{ID: at.ID, Result: body})
	}
	if err := a.keepMetrics(ctx, tx, at, e.Result); err != nil {
		return err
	}
	e.Metrics = nil // they are points now
	body, err := json.Marshal(e.JobResult)
	if err != nil {
		return err
	}
	err = tx.RunnerFinishJob(ctx, runnerdb.RunnerFinishJobParams{ID: at.ID, State: e.state, Result: body, Error: optional(e.Error)})
	if err != nil {
		return err
	}
	return owner{at.WorkflowID, at.BuildID, at.InstallID}.wake(ctx, tx)
}

// keepMetrics stores the numbers that the run of a job wrote. Other jobs write none,
// whatever they say.
func (a *API) keepMetrics(ctx context.Context, tx *database.Tx, at attempt, r jobspec.Result) error {
	if at.ActionRunID == nil || at.InstallID == nil || len(r.Metrics) == 0 && r.MetricsError == "" {
		return nil
	}
	action, err := tx.RunnerActionOfRun(ctx, runnerdb.RunnerActionOfRunParams{ID: *at.ActionRunID, InstallID: *at.InstallID})
	if err != nil {
		return fmt.Errorf("read the run of job %s: %w", at.ID, err)
	}
	return a.series.Store(ctx, tx, series.Run{
		InstallID: *at.InstallID, Action: action, ID: *at.ActionRunID, EndedAt: r.FinishedAt, Metrics: r.Metrics, Problem: r.MetricsError,
	})
}

// keepLate commits the evidence; the refusal follows.
func (a *API) keepLate(ctx context.Context, tx *database.Tx, at attempt, late model.LateReport) error {
	body, err := json.Marshal([]model.LateReport{late})
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		a.metrics.superseded.Add(ctx, 1)
		a.log.WarnContext(ctx, "report came too late", "org_id", tx.OrgID(), "job_id", at.ID, "attempt", at.number, "job_state", at.State, "job_attempt", at.Attempt, "digest", late.Digest)
	})
	kept, err := tx.RunnerKeepLate(ctx, runnerdb.RunnerKeepLateParams{ID: at.ID, Report: body, Most: lateReports, Digest: late.Digest})
	if err != nil || kept == 0 {
		return err
	}
	return raise(ctx, tx, alarm{
		runnerID: at.session.RunnerID, installID: optional(at.session.InstallID),
		kind: alarmLateResult, subject: fmt.Sprintf("%s/%d %s", at.ID, late.Attempt, late.Digest),
		detail: map[string]any{"outcome": late.Result.Outcome, "fence": late.Fence, "job_state": at.State, "job_attempt": at.Attempt},
	})
}

// digestOf recognises a report that is sent again. Encoding is stable: fields
// are in the order of the struct, keys of maps are sorted.
func digestOf(report *apigen.ResultReport) (string, error) {
	body, err := json.Marshal(report)
	if err != nil {
		return "", fmt.Errorf("encode report: %w", err)
	}
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
