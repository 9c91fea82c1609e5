package workflow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// maxTurns bounds the transactions of one run of Advance. A provision of hundreds of
// components takes a few for each; more than this is a decision that does not
// change the rows it was made from.
const maxTurns = 10_000

// Waker makes Advance run again for a workflow at a later time.
type Waker interface {
	WakeWorkflowAt(ctx context.Context, tx *database.Tx, workflowID string, at time.Time) error
}

// Engine moves workflows. It keeps nothing that matters: any number of them may
// run side by side on one database. It must not be copied.
type Engine struct {
	Store *database.Store
	Waker Waker
	// Keys opens what is sealed per org at rest: sensitive inputs and the private
	// half of the dispatch key.
	Keys *keys.Ring
	// MinRunnerVersion goes into every capsule; empty lets all runners pass.
	MinRunnerVersion string
	// Failed is called in the transaction in which a workflow fails, after its row says
	// so; nil for nothing. It may start another workflow.
	Failed func(ctx context.Context, tx *database.Tx, w ctldb.Workflow) error
	Log    *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	turns turns
}

func (e *Engine) now() time.Time {
	if e.Now != nil {
		return e.Now().UTC()
	}
	return time.Now().UTC()
}

// Advance brings a workflow as far as it can go now. It is safe to run twice,
// side by side and after a crash at any point. A workflow that does not exist
// is no error: its wake-up outlived it. It returns at once when another Advance of
// this process will look at the workflow later anyway.
func (e *Engine) Advance(ctx context.Context, workflowID string) error {
	mine, err := e.turns.take(ctx, workflowID)
	if err != nil || !mine {
		return err
	}
	defer e.turns.give(workflowID)
	var of traced
	defer of.end()
	for range maxTurns {
		done, err := e.moves(of.within(ctx), workflowID, &of, movesPerTx)
		if err != nil {
			// What fails takes nothing with it that could be done without it.
			done, err = e.moves(of.within(ctx), workflowID, &of, 1)
		}
		if err != nil {
			return fmt.Errorf("advance workflow %s: %w", workflowID, err)
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("advance workflow %s: still moving after %d turns", workflowID, maxTurns)
}

// movesPerTx is how many moves share a transaction at most: those between two jobs
// of a step, and of the next, do.
const movesPerTx = 8

// moves does the next things, in one transaction: at most limit of them, and none
// behind one that has to be committed first, because it has the runner do something.
// done says that there is nothing more to do now.
func (e *Engine) moves(ctx context.Context, workflowID string, of *traced, limit int) (done bool, err error) {
	err = e.Store.TxOf(ctx, workflowID, func(ctx context.Context, tx *database.Tx) error {
		r, err := load(ctx, tx, workflowID, e.now)
		if err != nil {
			return err
		}
		return events.Gather(ctx, tx, workflowID, func(ctx context.Context) error {
			done, err = e.movesOf(ctx, tx, r, of, limit)
			return err
		})
	})
	if errors.Is(err, store.ErrNoObject) {
		return true, nil
	}
	return done, err
}

// movesOf is moves in the transaction that has loaded the rows.
func (e *Engine) movesOf(ctx context.Context, tx *database.Tx, r *rows, of *traced, limit int) (done bool, err error) {
	handedOver := false
	for n := 0; ; n++ {
		d := flow.Next(r.state())
		if d.Do == flow.DoNothing {
			return true, rest(ctx, tx, r.subject(d.StepID), d)
		}
		if n == limit || handedOver {
			return false, nil
		}
		if ctx, err = of.enter(ctx, tx, r.workflow); err != nil {
			return false, err
		}
		if n == 0 {
			if err := r.hold(ctx, tx); err != nil {
				return false, err
			}
		}
		e.Log.DebugContext(ctx, "workflow moves", "workflow_id", r.workflow.ID, "do", string(d.Do), "step_id", d.StepID, "change_id", d.ChangeID)
		if err := e.act(ctx, tx, r.subject(d.StepID), d); err != nil {
			return false, err
		}
		if d.StepID == "" {
			return false, nil
		}
		handedOver = d.Do.HandsOver()
		if err := r.again(ctx, tx, d, e.now()); err != nil {
			return false, err
		}
	}
}
