package api

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
)

// Metrics are what runner-api counts. Leases that are open are granted minus
// ended, summed over the replicas.
type Metrics struct {
	claimWait     metric.Float64Histogram
	granted       metric.Int64Counter
	ended         metric.Int64Counter
	lost          metric.Int64Counter
	waiting       metric.Int64UpDownCounter
	sessions      metric.Int64Counter
	superseded    metric.Int64Counter
	orphaned      metric.Int64Counter
	enrolAlarms   metric.Int64Counter
	chainForks    metric.Int64Counter
	disputes      metric.Int64Counter
	settledByFate metric.Int64Counter
}

// NewMetrics makes the instruments, once telemetry is set up.
func NewMetrics() *Metrics {
	instruments := telemetry.InstrumentsOf("services/runner-api")
	m := &Metrics{
		claimWait:     instruments.Duration("runner.claim.wait", "from a job being queued to its lease", []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60, 300}),
		granted:       instruments.Counter("runner.leases.granted", "{lease}", "leases granted to runners"),
		ended:         instruments.Counter("runner.leases.ended", "{lease}", "leases that ended: reported, or shown dead"),
		lost:          instruments.Counter("runner.leases.lost", "{lease}", "leases that expired"),
		waiting:       instruments.UpDownCounter("runner.claims.waiting", "{claim}", "claims that are being held"),
		sessions:      instruments.Counter("runner.sessions.opened", "{session}", "sessions opened"),
		superseded:    instruments.Counter("runner.results.superseded", "{result}", "reports that came too late"),
		orphaned:      instruments.Counter("runner.states.orphaned", "{state}", "Terraform states that were refused and kept"),
		enrolAlarms:   instruments.Counter("runner.enrolment.alarms", "{alarm}", "enrolment secrets used with a second key"),
		chainForks:    instruments.Counter("runner.chain.forks", "{record}", "chain records that contradict the stored ones"),
		disputes:      instruments.Counter("runner.disputes", "{dispute}", "runners whose key two processes hold"),
		settledByFate: instruments.Counter("runner.attempts.settled", "{attempt}", "attempts settled when their runner restarted, by fate"),
	}
	// An alert on the first of these needs to have seen 0 before.
	for _, counter := range []metric.Int64Counter{m.granted, m.ended, m.lost, m.sessions, m.superseded, m.orphaned, m.enrolAlarms, m.chainForks, m.disputes} {
		counter.Add(context.Background(), 0)
	}
	return m
}

// Lost returns the counter of leases that expired, for package expiry.
func (m *Metrics) Lost() metric.Int64Counter { return m.lost }
