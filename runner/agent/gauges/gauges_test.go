package gauges

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestProcessor(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	p := processor{used: time.Second, at: start}
	for _, step := range []struct {
		name  string
		used  time.Duration
		after time.Duration
		want  float64
	}{
		{"half a core for ten seconds", 6 * time.Second, 10 * time.Second, 0.5},
		{"somebody else looks at once: the same", 7 * time.Second, 10*time.Second + time.Millisecond, 0.5},
		{"two cores", 26 * time.Second, 20 * time.Second, 2},
		{"a clock that goes backwards", 26 * time.Second, 5 * time.Second, 2},
		{"idle", 26 * time.Second, 30 * time.Second, 0},
	} {
		if got := p.since(step.used, start.Add(step.after)); got != step.want {
			t.Errorf("%s: %g cores, want %g", step.name, got, step.want)
		}
	}
}

// What is collected is what the agent knows then, and of this process the kernel's word.
func TestWatch(t *testing.T) {
	reader := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	facts := Facts{Connected: true, SettingsLeft: -time.Hour, DiskFree: 42, Jobs: 3}
	stop := Watch(func() Facts { return facts })
	collect := func() map[string]float64 {
		t.Helper()
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		found := map[string]float64{}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				if g, is := m.Data.(metricdata.Gauge[float64]); is && len(g.DataPoints) == 1 {
					found[m.Name] = g.DataPoints[0].Value
				}
			}
		}
		return found
	}
	got := collect()
	for name, want := range map[string]float64{"runner.control.connected": 1, "runner.settings.left": 0, "runner.disk.free": 42, "runner.job.running": 3} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s is %g (%v), want %g", name, value, there, want)
		}
	}
	if bytes := got["runner.memory.used"]; bytes < 1<<20 {
		t.Errorf("this test uses %g bytes", bytes)
	}
	facts.Connected, facts.SettingsLeft = false, time.Hour
	if got := collect(); got["runner.control.connected"] != 0 || got["runner.settings.left"] != 3600 {
		t.Errorf("later: %v", got)
	}
	stop()
	if got := collect(); len(got) > 0 {
		t.Errorf("after its end: %v", got)
	}
}
