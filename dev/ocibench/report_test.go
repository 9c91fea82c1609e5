package main

import (
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	turns := func(ms ...int) (list []sample) {
		for _, n := range ms {
			list = append(list, sample{took: time.Duration(n) * time.Millisecond, client: 10 * time.Millisecond, server: time.Duration(n) * time.Millisecond / 2})
		}
		return list
	}
	rows := summarise(opPush, "small", 1000, map[string][]sample{ours: turns(100, 90, 300), "slow": turns(200, 210, 190), "quick": turns(80, 95, 99)})
	rows = append(rows, summarise(opPull, "small", 1000, map[string][]sample{ours: turns(50), "slow": turns(100)})...)
	if rows[0].Who != ours || rows[1].Who != "quick" || rows[1].Ratio != 0.95 || rows[2].Ratio != 2 {
		t.Errorf("rows: %+v", rows)
	}
	want := "push small: 0.95 × the best by the medians (quick), 0.89 × by the fastest rounds (quick), 0.96 × by processor time (quick): MISSED\n" +
		"pull small: 2.00 × the best by the medians (slow), 2.00 × by the fastest rounds (slow), 1.71 × by processor time (slow): kept\n"
	if got := verdict(rows); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := table(rows); strings.Count(got, "\n") != 6 || !strings.Contains(got, "push small | quick") {
		t.Errorf("table:\n%s", got)
	}
	if middle(nil) != 0 || middle([]float64{4, 1, 3, 2}) != 2.5 {
		t.Error("the median is wrong")
	}
}
