// Package metrictest reads what the instruments of a test's process say.
package metrictest

import (
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// reader is the only one of the process: instruments are global.
var reader = sync.OnceValue(func() *metric.ManualReader {
	r := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(r)))
	return r
})

// Start begins to count; what was before is not counted.
func Start() { reader() }

// Value is what a counter or gauge says, or how often a histogram was recorded
// to, altogether where all these attributes are; 0 where there is nothing.
// Other tests of the process count as well.
func Value(t *testing.T, name string, attrs ...attribute.KeyValue) float64 {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := reader().Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				sum += total(m.Data, attrs)
			}
		}
	}
	return sum
}

func total(data metricdata.Aggregation, attrs []attribute.KeyValue) (sum float64) {
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes, attrs) {
				sum += float64(p.Value)
			}
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes, attrs) {
				sum += p.Value
			}
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes, attrs) {
				sum += float64(p.Count)
			}
		}
	}
	return sum
}

func has(set attribute.Set, attrs []attribute.KeyValue) bool {
	for _, want := range attrs {
		if got, ok := set.Value(want.Key); !ok || got != want.Value {
			return false
		}
	}
	return true
}
