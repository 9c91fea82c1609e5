package api

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
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

// NewMetrics makes the instruments with the global meter.
func NewMetrics() (*Metrics, error) {
	meter := otel.Meter("github.com/berth-dev/berth/services/runner-api")
	var m Metrics
	var err error
	counter := func(to *metric.Int64Counter, name, description string) {
		if err == nil {
			*to, err = meter.Int64Counter(name, metric.WithDescription(description))
		}
	}
	counter(&m.granted, "runner_leases_granted_total", "leases granted to runners")
	counter(&m.ended, "runner_leases_ended_total", "leases that ended: reported, or shown dead")
	counter(&m.lost, "runner_leases_lost_total", "leases that expired")
	counter(&m.sessions, "runner_sessions_opened_total", "sessions opened")
	counter(&m.superseded, "runner_results_superseded_total", "reports that came too late")
	counter(&m.orphaned, "runner_states_orphaned_total", "Terraform states that were refused and kept")
	counter(&m.enrolAlarms, "runner_enrolment_alarms_total", "enrolment secrets used with a second key")
	counter(&m.chainForks, "runner_chain_forks_total", "chain records that contradict the stored ones")
	counter(&m.disputes, "runner_disputes_total", "runners whose key two processes hold")
	counter(&m.settledByFate, "runner_attempts_settled_total", "attempts settled when their runner restarted, by fate")
	if err == nil {
		m.claimWait, err = meter.Float64Histogram("runner_claim_wait_seconds", metric.WithUnit("s"),
			metric.WithDescription("from a job being queued to its lease"),
			metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60, 300))
	}
	if err == nil {
		m.waiting, err = meter.Int64UpDownCounter("runner_claims_waiting", metric.WithDescription("claims that are being held"))
	}
	return &m, err
}

// Lost returns the counter of leases that expired, for package expiry.
func (m *Metrics) Lost() metric.Int64Counter { return m.lost }
