package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// ours is the contestant that the others are compared with.
const ours = "berth"

// row is a contestant's result in one discipline. Times are medians, in milliseconds.
type row struct {
	Op, Shape, Who string
	Rounds         int
	Bytes          int64
	TookMS         float64
	ClientMS       float64 // processor time
	ServerMS       float64
	// Ratio is how many times as fast ours is, by the medians; BestRatio, by the fastest
	// rounds, which others on the machine disturb least.
	Ratio, BestRatio float64
	// CPURatio is that of the processor time of client and registries, by the medians.
	CPURatio float64
}

// compare sets the ratios of a row, where ours took part.
func compare(r *row, samples map[string][]sample) {
	mine, its := samples[ours], samples[r.Who]
	if len(mine) == 0 {
		return
	}
	took := func(s sample) float64 { return s.took.Seconds() }
	cpu := func(s sample) float64 { return (s.client + s.server).Seconds() }
	r.Ratio, r.CPURatio = median(its, took)/median(mine, took), median(its, cpu)/median(mine, cpu)
	fastest := func(list []sample) float64 {
		return took(slices.MinFunc(list, func(a, b sample) int { return int(a.took - b.took) }))
	}
	r.BestRatio = fastest(its) / fastest(mine)
}

// summarise makes rows of samples, ours first and then the fastest.
func summarise(op, shape string, bytes int64, samples map[string][]sample) []row {
	var rows []row
	for who, list := range samples {
		r := row{
			Op: op, Shape: shape, Who: who, Rounds: len(list), Bytes: bytes,
			TookMS:   median(list, func(s sample) float64 { return milliseconds(s.took) }),
			ClientMS: median(list, func(s sample) float64 { return milliseconds(s.client) }),
			ServerMS: median(list, func(s sample) float64 { return milliseconds(s.server) }),
		}
		rows = append(rows, r)
	}
	for i := range rows {
		compare(&rows[i], samples)
	}
	slices.SortFunc(rows, func(a, b row) int {
		switch {
		case a.Who == ours:
			return -1
		case b.Who == ours:
			return 1
		}
		return int(a.TookMS*1000) - int(b.TookMS*1000)
	})
	return rows
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(list []sample, of func(sample) float64) float64 {
	values := make([]float64, len(list))
	for i, s := range list {
		values[i] = of(s)
	}
	return middle(values)
}

// middle is the median; 0 of nothing.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// table is rows for people and for Markdown.
func table(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, " what\t who\t ms\t MB/s\t client CPU ms\t registry CPU ms\t its time / ours\t its best / ours\t its CPU / ours")
	for _, r := range rows {
		fmt.Fprintf(w, " %s %s\t %s\t %.1f\t %.0f\t %.0f\t %.0f\t %.2f\t %.2f\t %.2f\n", r.Op, r.Shape, r.Who, r.TookMS,
			float64(r.Bytes)/1e6/(r.TookMS/1e3), r.ClientMS, r.ServerMS, r.Ratio, r.BestRatio, r.CPURatio)
	}
	_ = w.Flush()
	return b.String()
}

// verdict says for each discipline how ours compares with the best of the others.
func verdict(rows []row) string {
	var b strings.Builder
	for i, r := range rows {
		if r.Who != ours {
			continue
		}
		rest := rows[i+1:]
		if end := slices.IndexFunc(rest, func(o row) bool { return o.Who == ours }); end >= 0 {
			rest = rest[:end]
		}
		if len(rest) == 0 {
			continue
		}
		by := func(of func(row) float64) row {
			return slices.MinFunc(rest, func(a, b row) int { return cmp.Compare(of(a), of(b)) })
		}
		median, best, cpu := by(func(o row) float64 { return o.Ratio }), by(func(o row) float64 { return o.BestRatio }), by(func(o row) float64 { return o.CPURatio })
		word := "kept"
		if median.Ratio < 1 {
			word = "MISSED"
		}
		fmt.Fprintf(&b, "%s %s: %.2f × the best by the medians (%s), %.2f × by the fastest rounds (%s), %.2f × by processor time (%s): %s\n",
			r.Op, r.Shape, median.Ratio, median.Who, best.BestRatio, best.Who, cpu.CPURatio, cpu.Who, word)
	}
	return b.String()
}
