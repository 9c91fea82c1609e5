package table_test

import (
	"math"
	"testing"

	"github.com/berth-dev/berth/cli/internal/table"
)

func TestNumberAndSpark(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{
		0: "0", 12: "12", -1.5: "-1.5", 1_000_000: "1000000", 0.25: "0.25", 1e15: "1e+15", 1.5e-7: "1.5e-07", math.MaxFloat64: "1.7976931348623157e+308",
	} {
		if got := table.Number(n); got != want {
			t.Errorf("%v is written %s, want %s", n, got, want)
		}
	}
	for _, tt := range []struct {
		values []float64
		want   string
	}{
		{nil, ""},
		{[]float64{1}, ""},
		{[]float64{5, 5, 5}, "▁▁▁"},
		{[]float64{7, 6, 5, 4, 3, 2, 1, 0}, "▁▂▃▄▅▆▇█"},
		{[]float64{-1, 1}, "█▁"},
		{[]float64{math.MaxFloat64, 0, -math.MaxFloat64}, "▁▅█"},
		{[]float64{5e-324, 0}, "▁▁"},
	} {
		if got := table.Spark(tt.values); got != tt.want {
			t.Errorf("%v is drawn %s, want %s", tt.values, got, tt.want)
		}
	}
}
