package metricexport

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 7000, time.UTC)

// point is one of the install acme.
func point(action, name, kind, labels string, at time.Time, value float64) ctldb.PointsToExportRow {
	return ctldb.PointsToExportRow{
		OrgID: "org_1", InstallID: "ins_1", Install: "acme", App: "shop", Customer: "ACME", Action: action,
		Name: name, Kind: kind, Help: "of " + name, Labels: []byte(labels), At: at, Value: value,
	}
}

func gauge(m *metrics.Metric, points ...*metrics.NumberDataPoint) *metrics.Metric {
	m.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: points}}
	return m
}

func number(at time.Time, value float64, labels ...*common.KeyValue) *metrics.NumberDataPoint {
	return &metrics.NumberDataPoint{
		TimeUnixNano: uint64(at.UnixNano()), Value: &metrics.NumberDataPoint_AsDouble{AsDouble: value}, Attributes: labels,
	}
}

func of(attributes []*common.KeyValue, all ...*metrics.Metric) *metrics.ResourceMetrics {
	return &metrics.ResourceMetrics{
		Resource:     &resource.Resource{Attributes: attributes},
		ScopeMetrics: []*metrics.ScopeMetrics{{Scope: &common.InstrumentationScope{Name: "berth"}, Metrics: all}},
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	acme := []*common.KeyValue{
		text("service.name", "shop"), text("service.instance.id", "ins_1"), text("berth.org.id", "org_1"), text("berth.app.name", "shop"),
		text("berth.install.id", "ins_1"), text("berth.install.name", "acme"), text("berth.customer", "ACME"),
	}
	look := slices.Concat(acme, []*common.KeyValue{text("berth.source", "action"), text("berth.action", "look")})
	runner := slices.Concat(acme, []*common.KeyValue{text("berth.source", "runner")})
	before := noon.Add(-3 * time.Hour)
	for _, test := range []struct {
		name   string
		points []ctldb.PointsToExportRow
		want   []*metrics.ResourceMetrics
	}{
		{name: "no points"},
		{
			name: "series of one metric are one metric, and a late point keeps its time",
			points: []ctldb.PointsToExportRow{
				point("look", "queue_length", "gauge", `{"queue": "mail", "a": "1"}`, noon, 12), point("look", "queue_length", "gauge", `{"queue": "sms"}`, before, 3),
			},
			want: []*metrics.ResourceMetrics{of(look, gauge(&metrics.Metric{Name: "queue_length", Description: "of queue_length"},
				number(noon, 12, text("a", "1"), text("queue", "mail")), number(before, 3, text("queue", "sms"))))},
		},
		{
			name:   "a counter is a cumulative sum with an unknown start",
			points: []ctldb.PointsToExportRow{point("look", "sent_bytes_total", "counter", `{}`, noon, 9)},
			want: []*metrics.ResourceMetrics{of(look, &metrics.Metric{
				Name: "sent_bytes_total", Description: "of sent_bytes_total", Unit: "By",
				Data: &metrics.Metric_Sum{Sum: &metrics.Sum{
					AggregationTemporality: metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, IsMonotonic: true,
					DataPoints: []*metrics.NumberDataPoint{number(noon, 9)},
				}},
			})},
		},
		{
			name: "the runner's own numbers have no action, and are another resource",
			points: []ctldb.PointsToExportRow{
				point("", "runner_job_duration_seconds_sum", "untyped", `{}`, noon, 1), point("look", "x", "untyped", `{}`, noon, 2), point("", "runner_cpu_used", "gauge", `{}`, noon, 3),
			},
			want: []*metrics.ResourceMetrics{
				of(runner, gauge(&metrics.Metric{Name: "runner_job_duration_seconds_sum", Description: "of runner_job_duration_seconds_sum", Unit: "s"}, number(noon, 1)),
					gauge(&metrics.Metric{Name: "runner_cpu_used", Description: "of runner_cpu_used"}, number(noon, 3))),
				of(look, gauge(&metrics.Metric{Name: "x", Description: "of x"}, number(noon, 2))),
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := request(test.points)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&collector.ExportMetricsServiceRequest{ResourceMetrics: test.want}, got, protocmp.Transform()); diff != "" {
				t.Errorf("request(%v) (-want +got):\n%s", test.points, diff)
			}
		})
	}
	if _, err := request([]ctldb.PointsToExportRow{point("look", "x", "gauge", `[]`, noon, 1)}); err == nil {
		t.Error("labels that are none made no error")
	}
}

func TestFate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer answer
		want   fate
	}{
		{answer{status: 200}, taken},
		{answer{status: 202}, taken},
		{answer{status: 400}, refused},
		{answer{status: 413}, refused},
		{answer{status: 302}, later},
		{answer{status: 401}, later},
		{answer{status: 404}, later},
		{answer{status: 429}, later},
		{answer{status: 503}, later},
		{answer{err: errors.New("no route")}, later},
	} {
		if got := test.answer.fate(); got != test.want {
			t.Errorf("%+v: fate is %d, want %d", test.answer, got, test.want)
		}
	}
}

func TestBackOff(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		failed      int
		asked, want time.Duration
	}{
		{1, 0, 5 * time.Second},
		{3, 0, 20 * time.Second},
		{1000, 0, 5 * time.Minute},
		{1, time.Minute, time.Minute},
		{4, time.Second, 40 * time.Second},
		{1, 48 * time.Hour, time.Hour},
	} {
		if got := backOff(test.failed, test.asked); got != test.want {
			t.Errorf("backOff(%d, %s) is %s, want %s", test.failed, test.asked, got, test.want)
		}
	}
	for header, want := range map[string]time.Duration{
		"": 0, "30": 30 * time.Second, "-5": 0, "soon": 0, noon.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second, noon.Add(-time.Hour).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(header, noon.Truncate(time.Second)); got != want {
			t.Errorf("retryAfter(%q) is %s, want %s", header, got, want)
		}
	}
}

func TestHeadersOfAFile(t *testing.T) {
	t.Parallel()
	got, err := parseHeaders("Authorization: Bearer s3cret\n\n x-tenant:acme \r\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(http.Header{"Authorization": {"Bearer s3cret"}, "X-Tenant": {"acme"}}, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	for _, file := range []string{"s3cret", "Author ization: s3cret", "X: s3cret\x00"} {
		if _, err := parseHeaders("ok: yes\n" + file); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: error is %v, want one about line 2 without the value", file, err)
		}
	}
}
