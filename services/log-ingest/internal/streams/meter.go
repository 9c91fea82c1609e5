package streams

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/internal/fault"
)

// meter counts what is appended.
type meter struct {
	lines, bytes, refused metric.Int64Counter
	took                  metric.Float64Histogram
}

func newMeter() meter {
	instruments := telemetry.InstrumentsOf("services/log-ingest")
	return meter{
		lines:   instruments.Counter("log.append.lines", "{line}", "lines stored for the first time"),
		bytes:   instruments.Counter("log.append.bytes", "By", "bytes of frames received, repeats included"),
		refused: instruments.Counter("log.append.refused", "{batch}", "batches that were not stored, by reason"),
		took:    instruments.Duration("log.append.duration", "time to store one batch", telemetry.Requests),
	}
}

func (m meter) appended(ctx context.Context, lines, bytes int64, seconds float64) {
	m.lines.Add(ctx, lines)
	m.bytes.Add(ctx, bytes)
	m.took.Record(ctx, seconds)
}

func (m meter) refuse(ctx context.Context, err error) {
	m.refused.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", refusal(err))))
}

// refusal is why a batch was not stored, as one of few words.
func refusal(err error) string {
	if head := (*HeadError)(nil); errors.As(err, &head) {
		return head.Code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, fault.ErrForbidden):
		return logship.CodeClosed
	case errors.Is(err, fault.ErrTooLarge):
		return "too_large"
	case errors.Is(err, fault.ErrInvalid):
		return "invalid"
	case errors.Is(err, fault.ErrNotFound), errors.Is(err, fault.ErrUnauthenticated):
		return "token"
	case errors.Is(err, fault.ErrUnavailable):
		return "unavailable"
	}
	return "internal"
}
