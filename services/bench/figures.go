package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// figures are the times of all samples of one thing.
type figures struct {
	what    string
	waiting int // runners that waited meanwhile
	took    []time.Duration
	// against is what the same moment took in another way, nil for none.
	against *figures
}

func (f *figures) add(took time.Duration) { f.took = append(f.took, took) }

// percentile is the smallest sample that p percent of all samples do not
// exceed; 0 without samples.
func (f *figures) percentile(p int) time.Duration {
	if len(f.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f.took))
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// within says whether the figures keep a budget.
func (f *figures) within(p50, p99 time.Duration) bool {
	return f.percentile(50) <= p50 && f.percentile(99) <= p99
}

// table writes figures as a Markdown table.
func table(w io.Writer, all []*figures) error {
	rows := [][]string{{"waiting", "what", "samples", "p50 ms", "p99 ms", "max ms", "to River, p50", "p99"}}
	for _, f := range all {
		row := []string{
			fmt.Sprint(f.waiting), f.what, fmt.Sprint(len(f.took)),
			milliseconds(f.percentile(50)), milliseconds(f.percentile(99)), milliseconds(f.percentile(100)), "", "",
		}
		if f.against != nil {
			row[6] = ratio(f.percentile(50), f.against.percentile(50))
			row[7] = ratio(f.percentile(99), f.against.percentile(99))
		}
		rows = append(rows, row)
	}
	return markdown(w, rows, 1)
}

// markdown writes rows as a Markdown table, the first as its head. The columns
// of text stand to the left, all others to the right.
func markdown(w io.Writer, rows [][]string, text ...int) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if slices.Contains(text, i) {
				b.WriteString("| " + cell + padding + " ")
			} else {
				b.WriteString("| " + padding + cell + " ")
			}
		}
		b.WriteString("|\n")
		if n == 0 {
			for i, width := range widths {
				line := strings.Repeat("-", width+1)
				if slices.Contains(text, i) {
					b.WriteString("|" + line + "-")
				} else {
					b.WriteString("|" + line + ":")
				}
			}
			b.WriteString("|\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}

// ratio is how many times b fits into a.
func ratio(a, b time.Duration) string {
	if b == 0 {
		return ""
	}
	times, digits := float64(a)/float64(b), 2
	switch {
	case times >= 10:
		digits = 0
	case times >= 1:
		digits = 1
	}
	return fmt.Sprintf("× %.*f", digits, times)
}
