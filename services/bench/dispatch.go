package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/order"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// sampleTimeout is far beyond any budget: a job that takes it is lost.
	sampleTimeout = 30 * time.Second
)

// queue commits a job for a runner and wakes it, as ctl-api does, and says when
// the commit had returned. Waiters get a check, which they report as done; a real
// agent runs only scripts that it accepted, so it gets a plan.
func queue(ctx context.Context, st *store.Store, r runner, operation jobspec.Operation) (jobID string, committed time.Time, err error) {
	spec := jobspec.Spec{
		Version: jobspec.Version, JobID: id.New(id.Job), OrgID: r.orgID, InstallID: r.installID,
		Kind: jobspec.KindAction, Operation: operation, TimeoutSeconds: 60,
		Action: &jobspec.Action{Name: "script", ReadOnly: true, Steps: []jobspec.ActionStep{{Name: "look", Command: "true"}}},
	}
	if operation == jobspec.OperationPlan {
		spec.ChangeID = id.New(id.Change)
	}
	if err := spec.Validate(); err != nil {
		return "", committed, err
	}
	err = st.Tx(ctx, r.orgID, func(ctx context.Context, tx *store.Tx) error {
		row, err := ctldb.New(tx.DB()).InstallRunner(ctx, r.installID)
		if err != nil {
			return err
		}
		signed, err := order.Sign(r.orders, spec, order.Draft{RunnerID: r.id, MachineKey: row.PublicKey, OriginID: spec.ChangeID, Actor: "bench"}, time.Now())
		if err != nil {
			return err
		}
		err = ctldb.New(tx.DB()).InsertRunnerJob(ctx, ctldb.InsertRunnerJobParams{
			ID: spec.JobID, RunnerID: r.id, InstallID: &r.installID, Kind: string(spec.Kind), Operation: string(spec.Operation),
			Spec: signed.Spec, SignedOrder: signed.Envelope, TimeoutSeconds: int32(spec.TimeoutSeconds), Trace: none,
		})
		if err != nil {
			return err
		}
		tx.NotifyAfterCommit(model.ChannelJobs, r.id)
		tx.AfterCommit(func() { committed = time.Now() })
		return nil
	})
	if err != nil {
		return "", committed, fmt.Errorf("queue job: %w", err)
	}
	return spec.JobID, committed, nil
}

// toWaiter measures one job from its commit into the hands of a waiter.
func toWaiter(ctx context.Context, st *store.Store, w *waiter) (time.Duration, error) {
	if err := w.untilHeld(ctx); err != nil {
		return 0, err
	}
	jobID, committed, err := queue(ctx, st, w.runner, jobspec.OperationRun)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	select {
	case got := <-w.arrived:
		if got.jobID != jobID {
			return 0, fmt.Errorf("waiter got job %s, want %s", got.jobID, jobID)
		}
		return got.at.Sub(committed), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("job %s did not arrive: %w", jobID, context.Cause(ctx))
	}
}

// toEngine measures one job of the real agent from its commit to the first
// instruction of the engine, by the one clock of this machine.
func toEngine(ctx context.Context, st *store.Store, r runner) (time.Duration, error) {
	jobID, committed, err := queue(ctx, st, r, jobspec.OperationPlan)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	for {
		job, err := readJob(ctx, st, r.orgID, jobID)
		if err != nil {
			return 0, err
		}
		switch job.State {
		case model.JobQueued, model.JobLeased:
			if err := pause(ctx, lookEvery); err != nil {
				return 0, fmt.Errorf("job %s did not end: %w", jobID, err)
			}
			continue
		case model.JobSucceeded:
		default:
			return 0, fmt.Errorf("job %s is %s: %s", jobID, job.State, job.Result)
		}
		var result jobspec.Result
		if err := json.Unmarshal(job.Result, &result); err != nil {
			return 0, fmt.Errorf("result of job %s: %w", jobID, err)
		}
		return result.FirstInstructionAt.Sub(committed.UTC()), nil
	}
}

func readJob(ctx context.Context, st *store.Store, orgID, jobID string) (row ctldb.JobResultRow, err error) {
	err = st.Tx(ctx, orgID, func(ctx context.Context, tx *store.Tx) error {
		row, err = ctldb.New(tx.DB()).JobResult(ctx, jobID)
		return err
	})
	return row, err
}
