package build

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
)

var buildDuration = telemetry.InstrumentsOf("services/builder").Duration("build.duration",
	"from the request for a build to its end", telemetry.Work)

// countEnded counts a build that has just ended as its status says.
func countEnded(ctx context.Context, b Build) {
	buildDuration.Record(ctx, time.Since(b.Asked).Seconds(), metric.WithAttributes(
		attribute.String("type", b.Type), attribute.String("outcome", string(b.Status))))
}
