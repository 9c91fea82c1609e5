package exposition_test

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/exposition"
)

func TestParse(t *testing.T) {
	t.Parallel()
	untyped := func(name string, value float64, labels ...string) jobspec.Metric {
		m := jobspec.Metric{Name: name, Kind: jobspec.MetricUntyped, Value: value}
		for i := 0; i+1 < len(labels); i += 2 {
			if m.Labels == nil {
				m.Labels = map[string]string{}
			}
			m.Labels[labels[i]] = labels[i+1]
		}
		return m
	}
	of := func(kind jobspec.MetricKind, help string, m jobspec.Metric) jobspec.Metric {
		m.Kind, m.Help = kind, help
		return m
	}
	for _, tt := range []struct {
		name, text string
		want       []jobspec.Metric
		says       []string
		timed      bool
	}{
		{name: "nothing"},
		{name: "nothing but blanks and remarks", text: "\n  \t\n# a remark\n#\n# EOF\n"},
		{name: "a number without anything else", text: "queue_length 3", want: []jobspec.Metric{untyped("queue_length", 3)}},
		{name: "lines of Windows", text: "a 1\r\nb 2\r\n", want: []jobspec.Metric{untyped("a", 1), untyped("b", 2)}},
		{
			name: "kinds, help and labels, in any order",
			text: "# HELP jobs_total Jobs so \\\\ far.\\n\n# TYPE jobs_total counter\njobs_total{queue=\"mail\",} 12\nage 1.5e3\n# TYPE age GAUGE\n",
			want: []jobspec.Metric{
				of(jobspec.MetricCounter, "Jobs so \\ far.\n", untyped("jobs_total", 12, "queue", "mail")), of(jobspec.MetricGauge, "", untyped("age", 1500)),
			},
		},
		{
			name: "escapes and blanks", text: " a { x = \"q\\\"\\\\\\n\" , y=\"é, }\" }\t-1 \n",
			want: []jobspec.Metric{untyped("a", -1, "x", "q\"\\\n", "y", "é, }")},
		},
		{name: "a time is not used", text: "a 1 99999999999999\n", want: []jobspec.Metric{untyped("a", 1)}, timed: true},
		{
			name: "a histogram is its lines",
			text: "# HELP h Seconds.\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4.5\nh_count 3\n",
			want: []jobspec.Metric{
				of(jobspec.MetricCounter, "Seconds.", untyped("h_bucket", 2, "le", "1")), of(jobspec.MetricCounter, "Seconds.", untyped("h_bucket", 3, "le", "+Inf")),
				of(jobspec.MetricCounter, "Seconds.", untyped("h_sum", 4.5)), of(jobspec.MetricCounter, "Seconds.", untyped("h_count", 3)),
			},
		},
		{
			name: "a summary is its lines", text: "# TYPE s summary\ns{quantile=\"0.5\"} 2\ns_sum 4\ns_count 3\ns_bucket 1\n",
			want: []jobspec.Metric{
				of(jobspec.MetricGauge, "", untyped("s", 2, "quantile", "0.5")), of(jobspec.MetricCounter, "", untyped("s_sum", 4)),
				of(jobspec.MetricCounter, "", untyped("s_count", 3)), untyped("s_bucket", 1),
			},
		},
		{
			name: "a line that is wrong costs itself", text: "a 1\nhunter2: secret\nb 2\n",
			want: []jobspec.Metric{untyped("a", 1), untyped("b", 2)}, says: []string{"line 2 is not in the Prometheus text format"},
		},
		{name: "a type that is none", text: "# TYPE a meter\na 1\n", want: []jobspec.Metric{untyped("a", 1)}, says: []string{"line 1: a type is counter, gauge, histogram, summary or untyped"}},
		{name: "a label twice", text: "a{x=\"1\",x=\"2\"} 1", says: []string{"line 1 is not in the Prometheus text format"}},
		{name: "what the reference implementation falls over", text: "{} 1", says: []string{"line 1 is not in the Prometheus text format"}},
	} {
		got := exposition.Parse([]byte(tt.text))
		if diff := cmp.Diff(exposition.Text{Metrics: tt.want, Problems: tt.says, Timed: tt.timed}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	for _, line := range []string{
		"a", "a{", "a{} ", "a{x} 1", "a{x=1} 1", "a{x=\"1} 1", "a{x=\"\\t\"} 1", "a{x=\"1\" y=\"2\"} 1", "a{x=\"\xff\"} 1", "a{,} 1", "a 1 2 3", "a 1 soon", "a one",
		"a 0x1p4", "a 1_000", "a 1e999", "1a 1", "a-b 1", "a=1", "\x00\x01\x02", "{\"a\"} 1", "a{x=\"\\", "é 1",
	} {
		if got := exposition.Parse([]byte(line)); len(got.Metrics) != 0 || len(got.Problems) != 1 {
			t.Errorf("%q is read as %+v", line, got)
		}
	}
}

// A script can have made anything in the place of its metrics file.
func TestAttackMetricsFile(t *testing.T) {
	t.Parallel()
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	secret := at("secret")
	must(t, os.WriteFile(secret, []byte("stolen 1\n"), 0o600))
	fifo, link, device, dangling, socket, sparse, garbage, good := at("fifo"), at("link"), at("device"), at("dangling"), at("s"), at("sparse"), at("garbage"), at("good")
	must(t, syscall.Mkfifo(fifo, 0o600))
	must(t, os.Symlink(secret, link))
	must(t, os.Symlink("/dev/zero", device))
	must(t, os.Symlink(at("none"), dangling))
	listener, err := net.Listen("unix", socket)
	must(t, err)
	defer func() { _ = listener.Close() }()
	must(t, os.WriteFile(sparse, []byte("a 1\n"), 0o600))
	must(t, os.Truncate(sparse, 10<<30)) // ten gigabytes that take no room
	noise := make([]byte, exposition.MaxBytes)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	must(t, os.WriteFile(garbage, noise, 0o600))
	must(t, os.WriteFile(good, []byte("a 1\n"), 0o600))
	for _, tt := range []struct{ name, path, says string }{
		{"a pipe that nobody writes to", fifo, "the metrics file is not a regular file"},
		{"a link to another file", link, "the metrics file is not a regular file"},
		{"a link to a device", device, "the metrics file is not a regular file"},
		{"a link to nothing", dangling, "the metrics file is not a regular file"},
		{"a socket", socket, "the metrics file is not a regular file"},
		{"a folder", t.TempDir(), "the metrics file is not a regular file"},
		{"ten gigabytes", sparse, "the metrics file is larger than 256 KiB: none of its numbers are kept"},
		{"garbage", garbage, "is not in the Prometheus text format"},
	} {
		got := exposition.ReadFile(tt.path)
		if said := jobspec.SayProblems(got.Problems); !strings.Contains(said, tt.says) || len(got.Metrics) > 0 {
			t.Errorf("%s: %d numbers, %q; want none and %q", tt.name, len(got.Metrics), said, tt.says)
		}
	}
	if got := exposition.ReadFile(good); len(got.Metrics) != 1 || got.Problems != nil {
		t.Errorf("a plain file: %+v", got)
	}
	if got := exposition.ReadFile(at("none")); got.Metrics != nil || got.Problems != nil {
		t.Errorf("no file: %+v", got)
	}
}

// Whatever a script writes, what is kept is within the limits and can be written again;
// and where the reference implementation reads plain numbers, we read the same ones.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"a 1\n", "# TYPE a counter\na{x=\"y\"} 1 5\n", "a NaN\n", "{} 1", "# TYPE s summary\ns{quantile=\"0.5\"} 1\n", "a{x=\"\\\\\\\"\\n\",} +Inf\n#\n# HELP a b\\n\n",
		"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\n", "a\t{ x = \"\x00\" } -0\n# TYPE b GAUGE\nb 0x1p3\nb 1_0\nb inf\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := exposition.Parse(data)
		kept, _ := jobspec.KeepMetrics(got.Metrics)
		if len(kept) > jobspec.MaxMetrics {
			t.Fatalf("%d series are kept", len(kept))
		}
		for _, m := range kept {
			if why := m.Problem(); why != "" {
				t.Fatalf("%+v is kept: %s", m, why)
			}
			again := exposition.Parse([]byte(m.Series() + " 1"))
			if len(again.Metrics) != 1 || again.Metrics[0].Series() != m.Series() {
				t.Fatalf("%s is read as %+v", m.Series(), again)
			}
		}
		want, err := reference(data)
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, told(got.Metrics)); diff != "" {
			t.Fatalf("%q (-reference +ours):\n%s", data, diff)
		}
	})
}

// newNames are names in quotes or inside braces: it reads {a}1, and even a""1, as numbers.
var newNames = regexp.MustCompile(`(?m)^[ \t]*\{|^[^{\n]*"|\{[ \t]*"`)

var errNotCompared = errors.New("the reference implementation does not read it, or not as lines")

// reference is what the text says by the implementation of others, as a line for each
// number.
func reference(data []byte) (lines []string, err error) {
	defer func() {
		if recover() != nil {
			err = errNotCompared
		}
	}()
	if bytes.ContainsRune(data, '\r') || newNames.Match(data) {
		return nil, errNotCompared
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	read, err := parser.TextToMetricFamilies(bytes.NewReader(append(slices.Clone(data), '\n')))
	if err != nil {
		return nil, err
	}
	var list []jobspec.Metric
	for _, name := range slices.Sorted(maps.Keys(read)) {
		for _, m := range read[name].GetMetric() {
			one := jobspec.Metric{Name: name, Help: read[name].GetHelp()}
			switch read[name].GetType() {
			case dto.MetricType_COUNTER:
				one.Kind, one.Value = jobspec.MetricCounter, m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				one.Kind, one.Value = jobspec.MetricGauge, m.GetGauge().GetValue()
			case dto.MetricType_UNTYPED:
				one.Kind, one.Value = jobspec.MetricUntyped, m.GetUntyped().GetValue()
			default:
				return nil, errNotCompared
			}
			one.Labels = map[string]string{}
			for _, label := range m.GetLabel() {
				one.Labels[label.GetName()] = label.GetValue()
			}
			list = append(list, one)
		}
	}
	return told(list), nil
}

// told is a line for each number, in order, in which NaN is one value.
func told(list []jobspec.Metric) (lines []string) {
	for _, m := range list {
		bits := math.Float64bits(m.Value)
		if math.IsNaN(m.Value) {
			bits = 1
		}
		lines = append(lines, strings.Join([]string{m.Series(), string(m.Kind), m.Help, string(big(bits))}, "\x00"))
	}
	slices.Sort(lines)
	return lines
}

func big(n uint64) []byte {
	var out []byte
	for range 8 {
		out, n = append(out, byte(n)), n>>8
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
