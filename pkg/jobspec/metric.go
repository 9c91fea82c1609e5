package jobspec

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits on the numbers that a run writes. The engine, the agent and the control plane
// all keep to them: none trusts the one before.
const (
	MaxMetrics          = 200  // series of a run
	MaxMetricName       = 128  // bytes
	MaxMetricLabels     = 10   // of a series
	MaxMetricLabelName  = 64   // bytes
	MaxMetricLabelValue = 256  // bytes
	MaxMetricHelp       = 256  // bytes; a longer text is cut
	MaxMetricSeries     = 1000 // of an install
	MaxMetricsError     = 1000 // bytes of what is said about numbers that were left out
)

// MetricKind says how the values of a series relate to each other.
type MetricKind string

// The kinds. What histograms and summaries are made of is counters and gauges.
const (
	MetricCounter MetricKind = "counter"
	MetricGauge   MetricKind = "gauge"
	MetricUntyped MetricKind = "untyped"
)

// Metric is a number that a run wrote.
type Metric struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Kind   MetricKind        `json:"kind"`
	Help   string            `json:"help,omitempty"`
	Value  float64           `json:"value"`
}

var (
	metricName  = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	metricLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	labelEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
)

// Series names the series of a metric as Prometheus writes it: name{a="1",b="2"}, with
// the labels in order.
func (m Metric) Series() string { return SeriesName(m.Name, m.Labels) }

// SeriesName is Metric.Series.
func SeriesName(name string, labels map[string]string) string {
	if len(labels) == 0 {
		return name
	}
	parts := make([]string, 0, len(labels))
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, label+`="`+labelEscape.Replace(labels[label])+`"`)
	}
	return name + "{" + strings.Join(parts, ",") + "}"
}

// Problem says why a metric is not kept, "" when it is. Of the metric it quotes only
// names of letters and digits.
func (m Metric) Problem() string {
	switch {
	case len(m.Name) > MaxMetricName:
		return fmt.Sprintf("a name has %d bytes, at most %d are kept", len(m.Name), MaxMetricName)
	case !metricName.MatchString(m.Name):
		return "a name has more in it than letters, digits, _ and :"
	case m.Kind != MetricCounter && m.Kind != MetricGauge && m.Kind != MetricUntyped:
		return m.Name + " is neither a counter nor a gauge"
	case math.IsNaN(m.Value) || math.IsInf(m.Value, 0):
		return m.Name + " is not a finite number"
	case len(m.Labels) > MaxMetricLabels:
		return fmt.Sprintf("%s has %d labels, at most %d are kept", m.Name, len(m.Labels), MaxMetricLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		value := m.Labels[name]
		switch {
		case len(name) > MaxMetricLabelName:
			return fmt.Sprintf("the name of a label of %s has %d bytes, at most %d are kept", m.Name, len(name), MaxMetricLabelName)
		case !metricLabel.MatchString(name):
			return "the name of a label of " + m.Name + " has more in it than letters, digits and _"
		case strings.HasPrefix(name, "__"):
			return fmt.Sprintf("label %s of %s begins with __, which Prometheus keeps for itself", name, m.Name)
		case len(value) > MaxMetricLabelValue:
			return fmt.Sprintf("label %s of %s has %d bytes, at most %d are kept", name, m.Name, len(value), MaxMetricLabelValue)
		case !isText(value):
			return fmt.Sprintf("label %s of %s is not text", name, m.Name)
		}
	}
	return ""
}

// isText says whether Postgres and JSON keep a text as it is.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// KeepMetrics is what is kept of a list: what has no problem, each series once with the
// value that came last, and no more than MaxMetrics. problems says what was left out.
func KeepMetrics(list []Metric) (kept []Metric, problems []string) {
	at := map[string]int{}
	tooMany := 0
	for _, m := range list {
		if why := m.Problem(); why != "" {
			problems = append(problems, why)
			continue
		}
		m.Help = helpText(m.Help)
		series := m.Series()
		i, known := at[series]
		switch {
		case known:
			kept[i] = m
		case len(kept) == MaxMetrics:
			tooMany++
		default:
			at[series] = len(kept)
			kept = append(kept, m)
		}
	}
	if tooMany > 0 {
		problems = append(problems, fmt.Sprintf("a run can write %d series, %d more were left out", MaxMetrics, tooMany))
	}
	return kept, problems
}

// helpText is a help text as it is kept: of one line, and cut.
func helpText(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")), " ")
	return CutText(text, MaxMetricHelp)
}

// problemsSaid is how many problems of a run are said one by one.
const problemsSaid = 3

// SayProblems is a list of problems as one line for people, "" for none.
func SayProblems(problems []string) string {
	said := strings.Join(problems[:min(len(problems), problemsSaid)], "; ")
	if more := len(problems) - problemsSaid; more > 0 {
		said += fmt.Sprintf("; and %d more", more)
	}
	return CutMetricsError(said)
}

// CutMetricsError cuts what is said about numbers that were left out to
// MaxMetricsError, and takes out what is not text.
func CutMetricsError(text string) string {
	return CutText(strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", ""), MaxMetricsError)
}

// CutText cuts a text to so many bytes, between two characters.
func CutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// Sample is what a runner says about itself at one time: its own numbers, whose names begin
// with SamplePrefix.
type Sample struct {
	At      time.Time `json:"at"`
	Metrics []Metric  `json:"metrics"`
}

// Samples is a report of them, oldest first.
type Samples struct {
	Samples []Sample `json:"samples"`
}

const (
	// SamplePrefix begins the names of a runner's own numbers.
	SamplePrefix = "runner_"
	// MaxSamples is how many are in one report, MaxSampleMetrics how many numbers are in one.
	MaxSamples, MaxSampleMetrics = 60, 40
)

// Newer are the samples of a report that are newer than the newest one known, each with no more
// than a runner's own numbers.
func (s Samples) Newer(known time.Time) (list []Sample) {
	for _, sample := range s.Samples {
		if !sample.At.After(known) {
			continue
		}
		known = sample.At
		own := slices.DeleteFunc(slices.Clone(sample.Metrics), func(m Metric) bool { return !strings.HasPrefix(m.Name, SamplePrefix) })
		list = append(list, Sample{At: sample.At, Metrics: own[:min(len(own), MaxSampleMetrics)]})
	}
	return list
}
