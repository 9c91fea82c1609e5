package workflow

import (
	"context"
	"encoding/json"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

var tracer = otel.Tracer("berth/workflow")

// traced is the span of one Advance. The caller that woke us may be a runner
// that enrolled or another workflow that ended; what is done belongs to the
// call that asked for this workflow, and the first look reads which that was.
// An Advance that finds nothing to do has no span.
type traced struct{ span trace.Span }

// within is ctx inside the span, once it has begun.
func (t *traced) within(ctx context.Context) context.Context {
	if t.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, t.span)
}

// enter begins the span, unless it has begun, and brings the transaction into it.
func (t *traced) enter(ctx context.Context, tx *database.Tx, w ctldb.Workflow) (context.Context, error) {
	if t.span == nil {
		carried := map[string]string{}
		if err := json.Unmarshal(w.Trace, &carried); err != nil {
			return ctx, fmt.Errorf("read trace of workflow %s: %w", w.ID, err)
		}
		_, t.span = tracer.Start(telemetry.Extract(ctx, carried), "workflow.advance",
			trace.WithLinks(trace.LinkFromContext(ctx)), trace.WithAttributes(attribute.String("workflow_id", w.ID)))
	}
	if trace.SpanContextFromContext(ctx).Equal(t.span.SpanContext()) {
		return ctx, nil
	}
	ctx = t.within(ctx)
	return ctx, tx.Follow(ctx)
}

func (t *traced) end() {
	if t.span != nil {
		t.span.End()
	}
}
