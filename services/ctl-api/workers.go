package main

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/remedyask"
	"github.com/berth-dev/berth/services/ctl-api/internal/roleswitch"
	"github.com/berth-dev/berth/services/ctl-api/internal/tend"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/store"
)

// workflowAdvance wakes the engine for one workflow. runner-api inserts the
// same by berth.wake_workflow.
type workflowAdvance struct {
	WorkflowID string `json:"workflow_id"`
}

// Kind is fixed by the SQL function berth.wake_workflow.
func (workflowAdvance) Kind() string { return "workflow_advance" }

// installAdvance has an install looked after. The SQL function
// berth.wake_install inserts the same.
type installAdvance struct {
	InstallID string `json:"install_id"`
}

// Kind is fixed by the SQL function berth.wake_install.
func (installAdvance) Kind() string { return "install_advance" }

// installDue is installAdvance at a later time. A worker that looks after an
// install says when the next look is due, also when that was said before: then
// there is one look, not one more for each.
type installDue struct {
	InstallID string    `json:"install_id"`
	Due       time.Time `json:"due"`
}

// Kind is stored with every job; it must not change.
func (installDue) Kind() string { return "install_due" }

// InsertOpts makes one job of those for the same time. A wake-up for now could
// be lost so, while an earlier one is being worked; this one lies ahead.
func (installDue) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

type workflowWorker struct {
	river.WorkerDefaults[workflowAdvance]
	engine *workflow.Engine
}

func (w *workflowWorker) Work(ctx context.Context, job *river.Job[workflowAdvance]) error {
	return w.engine.Advance(ctx, job.Args.WorkflowID)
}

// care is all that looks after an install: what a switch of a role starts, verdicts, settings
// and alerts, and then what people are asked about these verdicts.
type care struct {
	switches *roleswitch.Starter
	tender   *tend.Tender
	asks     *remedyask.Starter
}

func (c care) advance(ctx context.Context, installID string) error {
	return errors.Join(c.switches.Advance(ctx, installID), c.tender.Advance(ctx, installID), c.asks.Advance(ctx, installID))
}

type installWorker struct {
	river.WorkerDefaults[installAdvance]
	care care
}

func (w *installWorker) Work(ctx context.Context, job *river.Job[installAdvance]) error {
	return w.care.advance(ctx, job.Args.InstallID)
}

type dueWorker struct {
	river.WorkerDefaults[installDue]
	care care
}

func (w *dueWorker) Work(ctx context.Context, job *river.Job[installDue]) error {
	return w.care.advance(ctx, job.Args.InstallID)
}

// waker schedules wake-ups with River. Its client is set once that exists: the
// engine is one of the client's workers.
type waker struct{ client *jobs.Client }

// InsertAt adds a job to a transaction, for the couriers of webhooks.
func (w *waker) InsertAt(ctx context.Context, tx *store.Tx, args river.JobArgs, due time.Time) error {
	return w.client.InsertAt(ctx, tx, args, due)
}

func (w *waker) WakeWorkflowAt(ctx context.Context, tx *database.Tx, workflowID string, at time.Time) error {
	return w.client.InsertAt(ctx, tx.Tx, workflowAdvance{WorkflowID: workflowID}, at)
}

func (w *waker) WakeInstallAt(ctx context.Context, tx *database.Tx, installID string, at time.Time) error {
	at = at.UTC().Truncate(time.Second).Add(time.Second) // not before, and the same for the same
	return w.client.InsertAt(ctx, tx.Tx, installDue{InstallID: installID, Due: at}, at)
}

// wakeAll has a look at everything that is open, once at start: a wake-up that
// a crash of the database lost is made up for.
func wakeAll(ctx context.Context, st *database.Store) error {
	return st.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		for kind, wake := range map[string]func(context.Context, string) error{"workflow": tx.WakeWorkflow, "install": tx.WakeInstall} {
			ids, err := tx.OpenWork(ctx, kind)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := wake(ctx, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
