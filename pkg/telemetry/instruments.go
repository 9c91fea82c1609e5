package telemetry

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// Boundaries of histograms, in seconds. Those that OpenTelemetry would choose
// are for milliseconds.
var (
	// Requests is for what somebody waits for.
	Requests = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	// Work is for jobs of engines and builds.
	Work = []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
	// Days is for what may wait for a person.
	Days = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 86400, 3 * 86400}
)

// Instruments makes the instruments of one part of Berth. Each has a row in
// docs/reference/metrics.md, which a test compares with the literals in these
// calls: name in dots, unit as UCUM writes it ("s", "By", "{job}"), and what
// it counts. None fails: a name that OpenTelemetry refuses goes to its error
// handler.
type Instruments struct{ meter metric.Meter }

// InstrumentsOf is for the part in this folder, such as "services/runner-api".
// It may be called before Setup.
func InstrumentsOf(part string) Instruments {
	return Instruments{otel.Meter("github.com/berth-dev/berth/" + part)}
}

// Counter only ever grows.
func (i Instruments) Counter(name, unit, what string) metric.Int64Counter {
	return made(i.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what)))
}

// UpDownCounter is a sum that also shrinks; those of replicas add up.
func (i Instruments) UpDownCounter(name, unit, what string) metric.Int64UpDownCounter {
	return made(i.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what)))
}

// Duration is a histogram of seconds with these boundaries.
func (i Instruments) Duration(name, what string, boundaries []float64) metric.Float64Histogram {
	return made(i.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(boundaries...)))
}

// Gauge is what is looked at when somebody collects, see Observe.
func (i Instruments) Gauge(name, unit, what string) metric.Float64ObservableGauge {
	return made(i.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what)))
}

// Observe has look called at each collection, to observe these gauges, until
// stop. While nothing is exported it is never called.
func (i Instruments) Observe(look metric.Callback, gauges ...metric.Float64ObservableGauge) (stop func()) {
	observables := make([]metric.Observable, len(gauges))
	for n, gauge := range gauges {
		observables[n] = gauge
	}
	registration := made(i.meter.RegisterCallback(look, observables...))
	if registration == nil {
		return func() {}
	}
	return func() {
		if err := registration.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
}

func made[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// bounded keeps attributes of measurements that a caller chooses from making one
// series each: of HTTP requests these three stay. Without it the port in a Host
// header would be one of the others.
func bounded() sdkmetric.View {
	keep := attribute.NewAllowKeysFilter("http.request.method", "http.response.status_code", "http.route")
	return sdkmetric.NewView(sdkmetric.Instrument{Name: "http.server.*"}, sdkmetric.Stream{AttributeFilter: keep})
}
