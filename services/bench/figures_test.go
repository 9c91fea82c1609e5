package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// upTo are the samples 1 ms, 2 ms, … n ms, the largest first.
func upTo(n int) *figures {
	f := &figures{}
	for i := n; i > 0; i-- {
		f.add(time.Duration(i) * time.Millisecond)
	}
	return f
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		of       *figures
		p50, p99 time.Duration
	}{
		{name: "no samples", of: upTo(0)},
		{name: "one sample is all percentiles", of: upTo(1), p50: time.Millisecond, p99: time.Millisecond},
		{name: "the 99th of few samples is the largest", of: upTo(10), p50: 5 * time.Millisecond, p99: 10 * time.Millisecond},
		{name: "one in a hundred may be larger", of: upTo(100), p50: 50 * time.Millisecond, p99: 99 * time.Millisecond},
		{name: "rounded up to a sample", of: upTo(101), p50: 51 * time.Millisecond, p99: 100 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if p50, p99 := tt.of.percentile(50), tt.of.percentile(99); p50 != tt.p50 || p99 != tt.p99 {
				t.Errorf("p50 %s, p99 %s; want %s, %s", p50, p99, tt.p50, tt.p99)
			}
		})
	}
}

func TestWithinNeedsBoth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		p50, p99 time.Duration
		want     bool
	}{
		{"both just kept", 50 * time.Millisecond, 99 * time.Millisecond, true},
		{"the middle too slow", 49 * time.Millisecond, time.Second, false},
		{"the tail too slow", time.Second, 98 * time.Millisecond, false},
	} {
		if got := upTo(100).within(tt.p50, tt.p99); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	bare := upTo(4)
	bare.what = "bare"
	ours := upTo(10)
	ours.what, ours.waiting, ours.against = "in hands →", 100, bare
	var b strings.Builder
	if err := table(&b, []*figures{bare, ours}); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
| waiting | what       | samples | p50 ms | p99 ms | max ms | to River, p50 |   p99 |
|--------:|------------|--------:|-------:|-------:|-------:|--------------:|------:|
|       0 | bare       |       4 |    2.0 |    4.0 |    4.0 |               |       |
|     100 | in hands → |      10 |    5.0 |   10.0 |   10.0 |         × 2.5 | × 2.5 |
`, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b time.Duration
		want string
	}{
		{a: time.Second, b: time.Millisecond, want: "× 1000"},
		{a: 25 * time.Millisecond, b: 10 * time.Millisecond, want: "× 2.5"},
		{a: 5 * time.Millisecond, b: 100 * time.Millisecond, want: "× 0.05"},
		{a: time.Second, b: 0, want: ""},
	} {
		if got := ratio(tt.a, tt.b); got != tt.want {
			t.Errorf("%s to %s: %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}
