package metricexport

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// origin is what the points of one resource have in common.
type origin struct{ org, install, action string }

// metricKey is what the points of one metric have in common.
type metricKey struct {
	origin
	name, kind string
}

// request is what a collector gets for some points. They keep their order within each metric,
// and resources and metrics come in the order of their first point.
func request(points []ctldb.PointsToExportRow) (*collector.ExportMetricsServiceRequest, error) {
	out := &collector.ExportMetricsServiceRequest{}
	resources := map[origin]*metrics.ScopeMetrics{}
	known := map[metricKey]*metrics.Metric{}
	for _, p := range points {
		from := origin{p.OrgID, p.InstallID, p.Action}
		scope := resources[from]
		if scope == nil {
			scope = &metrics.ScopeMetrics{Scope: &common.InstrumentationScope{Name: "berth"}}
			resources[from] = scope
			out.ResourceMetrics = append(out.ResourceMetrics, &metrics.ResourceMetrics{
				Resource: &resource.Resource{Attributes: about(p)}, ScopeMetrics: []*metrics.ScopeMetrics{scope},
			})
		}
		key := metricKey{from, p.Name, p.Kind}
		m := known[key]
		if m == nil {
			m = empty(p)
			known[key] = m
			scope.Metrics = append(scope.Metrics, m)
		}
		if err := add(m, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// about is whose numbers these are. The app is the service, the install its instance.
func about(p ctldb.PointsToExportRow) []*common.KeyValue {
	source := "action"
	if p.Action == "" {
		source = "runner"
	}
	out := []*common.KeyValue{
		text("service.name", p.App), text("service.instance.id", p.InstallID),
		text("berth.org.id", p.OrgID), text("berth.app.name", p.App), text("berth.install.id", p.InstallID), text("berth.install.name", p.Install),
		text("berth.customer", p.Customer), text("berth.source", source),
	}
	if p.Action != "" {
		out = append(out, text("berth.action", p.Action))
	}
	return out
}

// empty is a metric without points. A counter's start is not known: scripts do not say it.
func empty(p ctldb.PointsToExportRow) *metrics.Metric {
	m := &metrics.Metric{Name: p.Name, Description: p.Help, Unit: unit(p.Name)}
	if p.Kind == string(jobspec.MetricCounter) {
		m.Data = &metrics.Metric_Sum{Sum: &metrics.Sum{
			AggregationTemporality: metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, IsMonotonic: true,
		}}
	} else {
		m.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{}}
	}
	return m
}

func add(m *metrics.Metric, p ctldb.PointsToExportRow) error {
	var labels map[string]string
	if err := json.Unmarshal(p.Labels, &labels); err != nil {
		return fmt.Errorf("labels of series %d: %w", p.Series, err)
	}
	point := &metrics.NumberDataPoint{
		TimeUnixNano: uint64(max(0, p.At.UnixNano())), Value: &metrics.NumberDataPoint_AsDouble{AsDouble: p.Value},
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		point.Attributes = append(point.Attributes, text(name, labels[name]))
	}
	switch data := m.GetData().(type) {
	case *metrics.Metric_Sum:
		data.Sum.DataPoints = append(data.Sum.DataPoints, point)
	case *metrics.Metric_Gauge:
		data.Gauge.DataPoints = append(data.Gauge.DataPoints, point)
	}
	return nil
}

// unit is what the end of a name says, as UCUM writes it; empty when it says none.
func unit(name string) string {
	for _, end := range []string{"_total", "_sum"} {
		name = strings.TrimSuffix(name, end)
	}
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return "s"
	case strings.HasSuffix(name, "_bytes"):
		return "By"
	default:
		return ""
	}
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}
