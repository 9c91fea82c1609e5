package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceKey in a job's metadata; the wake-up functions in SQL write it too.
const traceKey = "traceparent"

// tracing makes what a job does part of the trace that inserted it.
type tracing struct {
	river.MiddlewareDefaults

	schema string
}

// IsMiddleware is repeated for the value receiver.
func (tracing) IsMiddleware() bool { return true }

// IsPlugin as above.
func (tracing) IsPlugin() bool { return true }

// InsertMany writes the present trace into the metadata.
func (tracing) InsertMany(ctx context.Context, many []*rivertype.JobInsertParams, doInner func(context.Context) ([]*rivertype.JobInsertResult, error)) ([]*rivertype.JobInsertResult, error) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if parent := carrier[traceKey]; parent != "" {
		for _, params := range many {
			metadata, err := withTrace(params.Metadata, parent)
			if err != nil {
				return nil, err
			}
			params.Metadata = metadata
		}
	}
	return doInner(ctx)
}

// Work makes one span per worked job.
func (t tracing) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceKey: traceOf(job.Metadata)})
	ctx, span := otel.Tracer("github.com/berth-dev/berth/services/internal/jobs").Start(ctx, "job "+job.Kind,
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			attribute.String("messaging.system", "river"),
			attribute.String("messaging.destination.name", t.schema+"."+job.Queue),
			attribute.Int64("messaging.message.id", job.ID),
			attribute.Int("job.attempt", job.Attempt),
		))
	defer span.End()
	began := time.Now()
	err := doInner(ctx)
	worked(ctx, job.Kind, time.Since(began), err)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "job failed")
	}
	return err
}

func withTrace(metadata []byte, parent string) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &fields); err != nil {
			return nil, fmt.Errorf("job metadata: %w", err)
		}
	}
	fields[traceKey], _ = json.Marshal(parent) // a string is always JSON
	return json.Marshal(fields)
}

// traceOf is "" for a job without one; metadata is not worth failing a job for.
func traceOf(metadata []byte) string {
	fields := map[string]any{}
	_ = json.Unmarshal(metadata, &fields)
	parent, _ := fields[traceKey].(string)
	return parent
}
