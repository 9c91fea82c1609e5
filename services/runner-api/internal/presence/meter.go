package presence

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
)

var (
	instruments = telemetry.InstrumentsOf("services/runner-api/presence")
	online      = instruments.Gauge("runner.online", "{runner}", "active runners that this replica heard from within its last sweep, 10 s")
	backlogged  = instruments.Gauge("runner.backlogged", "{runner}", "of these, the runners for which a job waits")
)

// counts are what a sweep saw.
type counts struct{ online, backlogged int64 }

// look is called when somebody collects.
func (r *Register) look(_ context.Context, o metric.Observer) error {
	r.mu.Lock()
	seen := r.seen
	r.mu.Unlock()
	o.ObserveFloat64(online, float64(seen.online))
	o.ObserveFloat64(backlogged, float64(seen.backlogged))
	return nil
}
