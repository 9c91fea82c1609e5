// Package census counts what the control plane looks after, of all orgs together,
// for metrics: installs, what they consist of, runners, and what is open.
package census

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// countTimeout is short of what a scrape takes altogether.
	countTimeout = 5 * time.Second
	// countAgain is how long an answer holds, however often somebody collects: it
	// reads all installs and what they consist of.
	countAgain = 15 * time.Second
)

var (
	instruments = telemetry.InstrumentsOf("services/ctl-api/census")
	installs    = instruments.Gauge("install.count", "{install}", "installs that were not forgotten, by state")
	resources   = instruments.Gauge("resource.count", "{resource}", "stacks, sandboxes and components of installs, by state")
	unhealthy   = instruments.Gauge("resource.unhealthy", "{resource}", "of these, the unhealthy ones")
	runners     = instruments.Gauge("runner.count", "{runner}", "runners that were not revoked; offline after 2 minutes of silence")
	jobs        = instruments.Gauge("job.open", "{job}", "jobs that wait for a runner (queued), or that one works on (leased)")
	oldestJob   = instruments.Gauge("job.oldest", "s", "how long the oldest queued job has waited")
	workflows   = instruments.Gauge("workflow.open", "{workflow}", "workflows that have not ended; waiting ones may wait for a person")
	alerts      = instruments.Gauge("alert.open", "{alert}", "open alerts of installs, by kind")
	proposed    = instruments.Gauge("change.proposed", "{change}", "changes that wait for an approval")
)

// gauges by the name that the database gives to their rows.
var gauges = map[string]metric.Float64ObservableGauge{
	"install.count": installs, "resource.count": resources, "resource.unhealthy": unhealthy, "runner.count": runners,
	"job.open": jobs, "job.oldest": oldestJob, "workflow.open": workflows, "change.proposed": proposed, "alert.open": alerts,
}

// Observe counts at each collection, until stop.
func Observe(st *database.Store) (stop func()) {
	c := &counter{store: st}
	all := make([]metric.Float64ObservableGauge, 0, len(gauges))
	for _, gauge := range gauges {
		all = append(all, gauge)
	}
	return instruments.Observe(c.observe, all...)
}

// counter holds the last count.
type counter struct {
	store *database.Store

	mu      sync.Mutex
	counted time.Time
	rows    []ctldb.FleetCountsRow
}

func (c *counter) observe(ctx context.Context, o metric.Observer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.counted) > countAgain {
		rows, err := c.count(ctx)
		if err != nil {
			return fmt.Errorf("count the fleet: %w", err)
		}
		c.rows, c.counted = rows, time.Now()
	}
	for _, row := range c.rows {
		gauge, ok := gauges[row.Name]
		if !ok {
			continue // of a newer schema, which this release does not know
		}
		o.ObserveFloat64(gauge, row.Value, metric.WithAttributes(attributes(row)...))
	}
	return nil
}

func (c *counter) count(ctx context.Context) (rows []ctldb.FleetCountsRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	err = c.store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		if rows, err = tx.FleetCounts(ctx, why.OfflineAfter.Seconds()); err != nil {
			return err
		}
		open, err := tx.AlertCounts(ctx)
		for _, row := range open {
			rows = append(rows, ctldb.FleetCountsRow{Name: "alert.open", Kind: row.Kind, Value: row.Value})
		}
		return err
	})
	return rows, err
}

func attributes(row ctldb.FleetCountsRow) []attribute.KeyValue {
	var out []attribute.KeyValue
	if row.Kind != "" {
		out = append(out, attribute.String("kind", row.Kind))
	}
	if row.State != "" {
		out = append(out, attribute.String("state", row.State))
	}
	return out
}
