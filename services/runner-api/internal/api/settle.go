package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// succession is a runner whose process is another one from now on.
type succession struct {
	runnerID string
	running  []session.Attempt // go on in the new process
	why      string            // what showed the others dead: session.ClosedByNext or ClosedByReplacement
}

// settle decides on all leased attempts of the process before, and writes what
// was decided. It returns those that go on: their leases are still to be handed
// over.
func (a *API) settle(ctx context.Context, tx *database.Tx, s succession) (resumed []runnerdb.RunnerOpenAttemptsRow, _ error) {
	rows, err := tx.RunnerOpenAttempts(ctx, s.runnerID)
	if err != nil {
		return nil, err
	}
	leased := make([]session.Leased, len(rows))
	for i, row := range rows {
		leased[i] = session.Leased{
			JobID: row.ID, Attempt: int(row.Attempt), Mutates: row.Mutates, CancelRequested: row.CancelRequested,
			Superseded: row.Fence != nil && row.ResourceFence > *row.Fence,
		}
	}
	var streams []string
	for i, fate := range session.Resume(leased, s.running) {
		if fate == session.Resumed {
			resumed = append(resumed, rows[i])
		} else {
			if err := s.endAttempt(ctx, tx, rows[i], fate); err != nil {
				return nil, fmt.Errorf("end attempt of job %s: %w", rows[i].ID, err)
			}
			streams = append(streams, rows[i].StreamID)
		}
		tx.AfterCommit(func() {
			a.metrics.settledByFate.Add(ctx, 1, metric.WithAttributes(attribute.String("fate", string(fate))))
			if fate != session.Resumed {
				a.metrics.ended.Add(ctx, 1)
				a.log.WarnContext(ctx, "attempt ended with its process", "job_id", rows[i].ID, "runner_id", s.runnerID, "attempt", rows[i].Attempt, "fate", fate, "why", s.why)
			}
		})
	}
	if len(streams) > 0 {
		if err := tx.CloseLogStreams(ctx, streams); err != nil {
			return nil, err
		}
		if err := tx.RevokeLogTokensOfStreams(ctx, streams); err != nil {
			return nil, err
		}
	}
	return resumed, nil
}

// endAttempt writes the fate of an attempt that was shown dead.
func (s succession) endAttempt(ctx context.Context, tx *database.Tx, row runnerdb.RunnerOpenAttemptsRow, fate session.Fate) error {
	if err := tx.RunnerEndLease(ctx, runnerdb.RunnerEndLeaseParams{ID: row.LeaseID, Reason: s.why}); err != nil {
		return err
	}
	if fate == session.Requeued {
		tx.NotifyAfterCommit(model.ChannelJobs, s.runnerID)
		return tx.RunnerRequeueJob(ctx, runnerdb.RunnerRequeueJobParams{ID: row.ID, Result: json.RawMessage(`{}`)})
	}
	state, result := obituary(row, fate)
	body, err := json.Marshal(model.JobResult{Result: result})
	if err != nil {
		return err
	}
	err = tx.RunnerFinishJob(ctx, runnerdb.RunnerFinishJobParams{ID: row.ID, State: state, Result: body, Error: optional(result.Error)})
	if err != nil {
		return err
	}
	return owner{row.WorkflowID, row.BuildID, row.InstallID}.wake(ctx, tx)
}

// endQueued ends what waits for a machine that was replaced: the orders name it,
// and values are sealed for it. ctl-api makes each again for the machine of now.
func endQueued(ctx context.Context, tx *database.Tx, runnerID string) error {
	rows, err := tx.RunnerQueuedJobs(ctx, runnerID)
	if err != nil {
		return err
	}
	for _, row := range rows {
		result := jobspec.Result{
			JobID: row.ID, Attempt: int(row.Attempt), Outcome: jobspec.OutcomeStale, Reason: jobspec.ReasonMachineReplaced,
			Error: "the runner's machine was replaced before this began", Remedy: "retry the step", FinishedAt: time.Now().UTC(),
		}
		body, err := json.Marshal(model.JobResult{Result: result})
		if err != nil {
			return err
		}
		err = tx.RunnerFinishJob(ctx, runnerdb.RunnerFinishJobParams{ID: row.ID, State: model.JobFailed, Result: body, Error: &result.Error})
		if err != nil {
			return err
		}
		if err := (owner{workflowID: row.WorkflowID, installID: row.InstallID}).wake(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// obituary is the result of an attempt that cannot report one itself.
func obituary(row runnerdb.RunnerOpenAttemptsRow, fate session.Fate) (state model.JobState, _ jobspec.Result) {
	result := jobspec.Result{JobID: row.ID, Attempt: int(row.Attempt), FinishedAt: time.Now().UTC()}
	switch fate {
	case session.Cancelled:
		result.Outcome, state = jobspec.OutcomeCancelled, model.JobCancelled
	case session.Exhausted:
		result.Outcome, result.Reason, state = jobspec.OutcomeFailed, jobspec.ReasonHostEnded, model.JobFailed
		result.Error = fmt.Sprintf("the runner died %d times while working on this", row.Attempt)
		result.Remedy = "check the runner's own log, and whether its machine has enough memory and disk"
	default:
		result.Outcome, result.Reason, state = jobspec.OutcomeUncertain, jobspec.ReasonHostEnded, model.JobFailed
		result.Error = "the runner died while working on this; it may have changed something"
		result.Remedy = "make a new plan to see what is there"
	}
	return state, result
}
