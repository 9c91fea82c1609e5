package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store"
)

// maxMoves bounds one run of Advance. A provision of hundreds of components
// makes a few moves for each; more than this is a decision that does not
// change the rows it was made from.
const maxMoves = 10_000

// Waker makes Advance run again for a workflow at a later time.
type Waker interface {
	WakeWorkflowAt(ctx context.Context, tx *store.Tx, workflowID string, at time.Time) error
}

// Engine moves workflows. It keeps no state of its own: any number of them may
// run side by side on one database.
type Engine struct {
	Store *store.Store
	Waker Waker
	// Keys opens what is sealed per org at rest: sensitive inputs and the private
	// half of the dispatch key.
	Keys *keys.Ring
	// MinRunnerVersion goes into every capsule; empty lets all runners pass.
	MinRunnerVersion string
	Log              *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

var tracer = otel.Tracer("berth/workflow")

func (e *Engine) now() time.Time {
	if e.Now != nil {
		return e.Now().UTC()
	}
	return time.Now().UTC()
}

// Advance brings a workflow as far as it can go now. It is safe to run twice,
// side by side and after a crash at any point. A workflow that does not exist
// is no error: its wake-up outlived it.
func (e *Engine) Advance(ctx context.Context, workflowID string) error {
	org, err := e.orgOf(ctx, workflowID)
	if err != nil || org == "" {
		return err
	}
	// Whoever woke us may be a runner that enrolled or another workflow that
	// ended; what is done belongs to the call that asked for this workflow.
	woken := trace.LinkFromContext(ctx)
	ctx = telemetry.Extract(ctx, e.traceOf(ctx, org, workflowID))
	ctx, span := tracer.Start(ctx, "workflow.advance", trace.WithLinks(woken), trace.WithAttributes(attribute.String("workflow_id", workflowID)))
	defer span.End()
	for range maxMoves {
		done, err := e.move(ctx, org, workflowID)
		if err != nil {
			return fmt.Errorf("advance workflow %s: %w", workflowID, err)
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("advance workflow %s: still moving after %d moves", workflowID, maxMoves)
}

// move does the one next thing, in one transaction.
func (e *Engine) move(ctx context.Context, org, workflowID string) (done bool, err error) {
	err = e.Store.Tx(ctx, org, func(ctx context.Context, tx *store.Tx) error {
		done = false
		r, err := load(ctx, tx, workflowID, e.now())
		if errors.Is(err, fault.ErrNotFound) {
			done = true
			return nil
		}
		if err != nil {
			return err
		}
		d := flow.Next(r.state)
		s := r.subject(d.StepID)
		if d.Do == flow.DoNothing {
			done = true
			return rest(ctx, tx, s, d)
		}
		e.Log.DebugContext(ctx, "workflow moves", "workflow_id", workflowID, "do", string(d.Do), "step_id", d.StepID, "change_id", d.ChangeID)
		return e.act(ctx, tx, s, d)
	})
	return done, err
}

// traceOf is the trace that a workflow was asked for in; none when it cannot be
// read, which is no reason not to go on.
func (e *Engine) traceOf(ctx context.Context, org, workflowID string) map[string]string {
	carried := map[string]string{}
	err := e.Store.Tx(ctx, org, func(ctx context.Context, tx *store.Tx) error {
		raw, err := tx.TraceOfWorkflow(ctx, workflowID)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &carried)
	})
	if err != nil {
		e.Log.DebugContext(ctx, "workflow has no trace", "workflow_id", workflowID, "err", err)
	}
	return carried
}

func (e *Engine) orgOf(ctx context.Context, id string) (org string, err error) {
	err = e.Store.SystemTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		org, err = tx.OrgOfObject(ctx, id)
		return err
	})
	return org, err
}
