// Package sweep moves what should have moved already. Everything in ctl-api waits as a
// row, and a wake-up in the queue makes somebody look at it; a wake-up that was lost (a queue
// restored from a backup, a row changed by hand, a bug) would leave the row where it is for
// ever. The sweep looks at all open workflows, and counts what it had to move: zero in a
// system that works.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
)

var swept = telemetry.InstrumentsOf("services/ctl-api").Counter("sweep.moved", "{workflow}", "workflows that the sweep moved because a wake-up was lost, by what was to do")

// Lost is what the log says about each that was moved; tests look for it.
const Lost = "a wake-up was lost"

// atOnce are the states in which a round keeps another from being queued.
var atOnce = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
}

// longest bounds one round: it looks at every open workflow.
const longest = 10 * time.Minute

// Due is the periodic job.
type Due struct{}

// Kind is stored with every job; it must not change.
func (Due) Kind() string { return "sweep" }

// InsertOpts makes one round at a time; a round that fails is not repeated, the next one
// does the same.
func (Due) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: atOnce}}
}

// kinds are what there can be to do; their series begin at 0, so that the first one that is
// counted is seen as an increase.
var kinds = []flow.Do{
	flow.DoStartWorkflow, flow.DoFinishWorkflow, flow.DoStartStep, flow.DoWaitStep, flow.DoSucceedStep, flow.DoFailStep, flow.DoCancelStep, flow.DoPlan,
	flow.DoRunCheck, flow.DoPropose, flow.DoNoChange, flow.DoPlanned, flow.DoApprove, flow.DoExecute, flow.DoSettleChange, flow.DoCancelJob, flow.DoSkipStep,
	flow.DoPutOff, flow.DoLookAgain,
}

// Every is the periodic job of a queue, and begins to count.
func Every(interval time.Duration) *river.PeriodicJob {
	for _, do := range kinds {
		swept.Add(context.Background(), 0, metric.WithAttributes(attribute.String("kind", string(do))))
	}
	return river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) { return Due{}, nil }, nil)
}

// Engine says what is overdue and does it: workflow.Engine.
type Engine interface {
	// Overdue says what should have been done to a workflow already; "" for nothing.
	Overdue(ctx context.Context, workflowID string) (flow.Do, error)
	Advance(ctx context.Context, workflowID string) error
}

// Worker is the sweep.
type Worker struct {
	river.WorkerDefaults[Due]
	Store  *database.Store
	Engine Engine
	Log    *slog.Logger
}

// Timeout of one round.
func (w *Worker) Timeout(*river.Job[Due]) time.Duration { return longest }

// Work makes one round over all orgs.
func (w *Worker) Work(ctx context.Context, _ *river.Job[Due]) error {
	_, err := w.Round(ctx)
	return err
}

// Round looks at every open workflow and moves those that nobody else would. It returns
// how many there were. One that cannot be looked at does not keep the others from it.
func (w *Worker) Round(ctx context.Context) (moved int, err error) {
	var open []string
	err = w.Store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		open, err = tx.OpenWork(ctx, "workflow")
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("list open workflows: %w", err)
	}
	var failed []error
	for _, id := range open {
		do, err := w.Engine.Overdue(ctx, id)
		if err == nil && do != "" {
			moved++
			w.tell(ctx, id, do)
			err = w.Engine.Advance(ctx, id)
		}
		if err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return moved, errors.Join(failed...)
}

func (w *Worker) tell(ctx context.Context, workflowID string, do flow.Do) {
	swept.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", string(do))))
	w.Log.WarnContext(ctx, Lost, "workflow_id", workflowID, "do", string(do))
}
