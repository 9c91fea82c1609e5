package workflow

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

var workflowDuration = telemetry.InstrumentsOf("services/ctl-api").Duration("workflow.duration",
	"from the request for a workflow to its end, waiting for people included", telemetry.Days)

// countEnded counts a workflow that has just ended. One that failed, was retried
// and ended again counts twice.
func countEnded(ctx context.Context, w ctldb.Workflow, ended model.WorkflowState) {
	workflowDuration.Record(ctx, time.Since(w.CreatedAt).Seconds(), metric.WithAttributes(
		attribute.String("kind", w.Kind), attribute.String("outcome", string(ended)), attribute.Bool("plan_only", w.PlanOnly)))
}
