package streams

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// meter counts what is appended.
type meter struct {
	lines, bytes metric.Int64Counter
	seconds      metric.Float64Histogram
}

func newMeter() (m meter, err error) {
	source := otel.Meter("github.com/berth-dev/berth/services/log-ingest")
	if m.lines, err = source.Int64Counter("log_append_lines", metric.WithDescription("lines stored for the first time")); err != nil {
		return m, err
	}
	if m.bytes, err = source.Int64Counter("log_append_bytes", metric.WithDescription("bytes of frames received, repeats included"), metric.WithUnit("By")); err != nil {
		return m, err
	}
	m.seconds, err = source.Float64Histogram("log_append_duration_seconds", metric.WithDescription("time to store one batch"), metric.WithUnit("s"))
	return m, err
}

func (m meter) appended(ctx context.Context, lines, bytes int64, seconds float64) {
	m.lines.Add(ctx, lines)
	m.bytes.Add(ctx, bytes)
	m.seconds.Record(ctx, seconds)
}
