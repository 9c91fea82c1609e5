package table

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Writer is who writes a series: an action, or the runner about itself.
func Writer(m ctlapi.Metric) string {
	if m.Source == ctlapi.MetricSourceRunner {
		return "(the runner)"
	}
	return m.Action
}

// Metric shows series of numbers that runs or the runner wrote, with a line of their last values when
// these were asked for.
func Metric(now time.Time, recent bool) output.View[ctlapi.Metric] {
	v := output.View[ctlapi.Metric]{
		Name: func(m ctlapi.Metric) string { return m.ID },
		None: "no numbers; a script of an action writes one so: echo 'queue_length 12' >> \"$BERTH_METRICS\"",
		Columns: []output.Column[ctlapi.Metric]{
			{Head: "SERIES", Shrinks: true, Least: 20, Cell: func(m ctlapi.Metric) string { return m.Series }},
			{Head: "VALUE", Cell: func(m ctlapi.Metric) string { return Number(m.Value) }},
			{Head: "KIND", Cell: func(m ctlapi.Metric) string { return string(m.Kind) }},
			{Head: "ACTION", Shrinks: true, Least: 10, Cell: Writer},
			{Head: "AGE", Cell: func(m ctlapi.Metric) string { return age(now, m.At) }},
			{Head: "AT", Wide: true, Cell: func(m ctlapi.Metric) string { return m.At.UTC().Format(time.RFC3339) }},
			{Head: "RUN", Wide: true, Cell: func(m ctlapi.Metric) string { return m.RunID }},
			{Head: "ID", Wide: true, Cell: func(m ctlapi.Metric) string { return m.ID }},
			{Head: "HELP", Wide: true, Cell: func(m ctlapi.Metric) string { return api.Value(m.Help) }},
		},
	}
	if recent {
		v.Columns = append(v.Columns, output.Column[ctlapi.Metric]{Head: "RECENT", Yields: true, Cell: func(m ctlapi.Metric) string { return Spark(api.Value(m.Recent)) }})
	}
	return v
}

// MetricPoint shows the points of a series, or steps of them.
func MetricPoint(steps bool) output.View[ctlapi.MetricPoint] {
	v := output.View[ctlapi.MetricPoint]{
		Name: func(p ctlapi.MetricPoint) string { return api.Value(p.RunID) },
		None: "no points in this time; see others with --since",
		Columns: []output.Column[ctlapi.MetricPoint]{
			{Head: "AT", Cell: func(p ctlapi.MetricPoint) string { return p.At.UTC().Format(time.RFC3339) }},
		},
	}
	if !steps {
		v.Columns = append(v.Columns,
			output.Column[ctlapi.MetricPoint]{Head: "VALUE", Cell: func(p ctlapi.MetricPoint) string { return Number(p.Value) }},
			output.Column[ctlapi.MetricPoint]{Head: "RUN", Shrinks: true, Least: shortID, Cell: func(p ctlapi.MetricPoint) string { return api.Value(p.RunID) }})
		return v
	}
	v.Columns = append(v.Columns,
		output.Column[ctlapi.MetricPoint]{Head: "VALUE", Cell: func(p ctlapi.MetricPoint) string { return rounded(p.Value) }},
		output.Column[ctlapi.MetricPoint]{Head: "MIN", Cell: func(p ctlapi.MetricPoint) string { return rounded(api.Value(p.Min)) }},
		output.Column[ctlapi.MetricPoint]{Head: "MAX", Cell: func(p ctlapi.MetricPoint) string { return rounded(api.Value(p.Max)) }},
		output.Column[ctlapi.MetricPoint]{Head: "MEAN", Yields: true, Cell: func(p ctlapi.MetricPoint) string { return rounded(api.Value(p.Mean)) }},
		output.Column[ctlapi.MetricPoint]{Head: "COUNT", Cell: func(p ctlapi.MetricPoint) string { return strconv.Itoa(api.Value(p.Count)) }})
	return v
}

// RunMetric shows the numbers that one run wrote.
func RunMetric() output.View[ctlapi.RunMetric] {
	return output.View[ctlapi.RunMetric]{
		Name: func(m ctlapi.RunMetric) string { return m.ID },
		None: "it wrote no numbers",
		Columns: []output.Column[ctlapi.RunMetric]{
			{Head: "SERIES", Shrinks: true, Least: 24, Cell: func(m ctlapi.RunMetric) string { return m.Series }},
			{Head: "VALUE", Cell: func(m ctlapi.RunMetric) string { return Number(m.Value) }},
			{Head: "KIND", Cell: func(m ctlapi.RunMetric) string { return string(m.Kind) }},
		},
	}
}

// Number writes a number as people do, with an exponent only where it is long.
func Number(n float64) string {
	if size := math.Abs(n); size != 0 && (size >= 1e15 || size < 1e-6) {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// rounded is Number for where there are many: a long one is rounded to six digits, since
// a number that is cut is another one.
func rounded(n float64) string {
	const long = 12
	if text := Number(n); len(text) <= long {
		return text
	}
	return strconv.FormatFloat(n, 'g', 6, 64)
}

// bars are the heights of a spark line.
var bars = []rune("▁▂▃▄▅▆▇█")

// Spark draws values, given newest first, with the newest at the right; one alone is
// nothing to see.
func Spark(values []float64) string {
	if len(values) < 2 {
		return ""
	}
	low := slices.Min(values)
	span := slices.Max(values)/2 - low/2 // half of it, which is finite
	var line strings.Builder
	for _, value := range slices.Backward(values) {
		part := 0.0
		if span > 0 {
			part = (value/2 - low/2) / span
		}
		line.WriteRune(bars[int(math.Round(part*float64(len(bars)-1)))])
	}
	return line.String()
}
