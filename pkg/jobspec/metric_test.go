package jobspec_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestKeepMetrics(t *testing.T) {
	t.Parallel()
	gauge := func(name string, value float64, labels ...string) jobspec.Metric {
		m := jobspec.Metric{Name: name, Kind: jobspec.MetricGauge, Value: value}
		for i := 0; i+1 < len(labels); i += 2 {
			if m.Labels == nil {
				m.Labels = map[string]string{}
			}
			m.Labels[labels[i]] = labels[i+1]
		}
		return m
	}
	list := func(of ...jobspec.Metric) []jobspec.Metric { return of }
	var many []jobspec.Metric
	for i := range jobspec.MaxMetrics + 2 {
		many = append(many, gauge("m"+strconv.Itoa(i), 1))
	}
	var labels []string
	for i := range jobspec.MaxMetricLabels + 1 {
		labels = append(labels, "l"+strconv.Itoa(i), "x")
	}
	with := func(edit func(*jobspec.Metric)) []jobspec.Metric {
		m := gauge("queue_length", 1)
		edit(&m)
		return list(m)
	}
	for _, tt := range []struct {
		name string
		give []jobspec.Metric
		want []jobspec.Metric
		says string
	}{
		{"two series of one metric", list(gauge("a", 1, "q", "mail"), gauge("a", 2, "q", "print")), list(gauge("a", 1, "q", "mail"), gauge("a", 2, "q", "print")), ""},
		{"the same series twice: the later value", list(gauge("a", 1, "x", "1"), gauge("b", 3), gauge("a", 2, "x", "1")), list(gauge("a", 2, "x", "1"), gauge("b", 3)), ""},
		{"no name", list(gauge("", 1)), nil, "a name has more in it"},
		{"a name that is none", list(gauge("queue-length", 1)), nil, "a name has more in it"},
		{"a long name", list(gauge(strings.Repeat("a", jobspec.MaxMetricName+1), 1)), nil, "129 bytes"},
		{"not a number", list(gauge("a", math.NaN())), nil, "a is not a finite number"},
		{"infinite", list(gauge("a", math.Inf(-1))), nil, "a is not a finite number"},
		{"of no kind", with(func(m *jobspec.Metric) { m.Kind = "histogram" }), nil, "neither a counter nor a gauge"},
		{"a label that is none", list(gauge("a", 1, "x y", "1")), nil, "the name of a label of a"},
		{"a long label", list(gauge("a", 1, strings.Repeat("x", jobspec.MaxMetricLabelName+1), "1")), nil, "65 bytes"},
		{"a label of Prometheus", list(gauge("a", 1, "__name__", "b")), nil, "begins with __"},
		{"a long value of a label", list(gauge("a", 1, "x", strings.Repeat("v", jobspec.MaxMetricLabelValue+1))), nil, "257 bytes"},
		{"a label that Postgres does not take", list(gauge("a", 1, "x", "a\x00b")), nil, "label x of a is not text"},
		{"a label that is not UTF-8", list(gauge("a", 1, "x", "\xff")), nil, "label x of a is not text"},
		{"too many labels", list(gauge("a", 1, labels...)), nil, "11 labels"},
		{"what is right next to a mistake", list(gauge("a", 1), gauge("b-", 1), gauge("c", 1)), list(gauge("a", 1), gauge("c", 1)), "a name has more"},
		{"too many", many, many[:jobspec.MaxMetrics], "200 series, 2 more were left out"},
		{
			"help of one line", with(func(m *jobspec.Metric) { m.Help = " In\nline.\x00 \xff" }),
			with(func(m *jobspec.Metric) { m.Help = "In line." }), "",
		},
	} {
		kept, problems := jobspec.KeepMetrics(tt.give)
		if diff := cmp.Diff(tt.want, kept); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if says := jobspec.SayProblems(problems); !strings.Contains(says, tt.says) || tt.says == "" && says != "" {
			t.Errorf("%s: says %q, want %q", tt.name, says, tt.says)
		}
		again, problems := jobspec.KeepMetrics(kept)
		if diff := cmp.Diff(kept, again); diff != "" || problems != nil {
			t.Errorf("%s: what is kept is not kept again: %q\n%s", tt.name, problems, diff)
		}
	}
}

func TestTextsAboutMetrics(t *testing.T) {
	t.Parallel()
	got := jobspec.Metric{Name: "a", Labels: map[string]string{"z": `q"\` + "\n", "b": "é"}}.Series()
	if want := `a{b="é",z="q\"\\\n"}`; got != want {
		t.Errorf("series %s, want %s", got, want)
	}
	for _, tt := range []struct {
		problems []string
		want     string
	}{
		{nil, ""},
		{[]string{"x", "y", "z"}, "x; y; z"},
		{[]string{"x", "y", "z", "a", "b"}, "x; y; z; and 2 more"},
	} {
		if got := jobspec.SayProblems(tt.problems); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.problems, got, tt.want)
		}
	}
	long := jobspec.CutMetricsError(strings.Repeat("é", jobspec.MaxMetricsError) + "\x00")
	if len(long) > jobspec.MaxMetricsError || !utf8.ValidString(long) || !strings.HasSuffix(long, "é…") {
		t.Errorf("%d bytes, %q", len(long), long[len(long)-8:])
	}
}
