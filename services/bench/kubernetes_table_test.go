package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// running is what took a while, half of it on a processor; nothing for 0.
func running(ms int) measured { return measured{wall: taking(ms), cpu: taking(ms / 2)} }

// taking are the figures of one sample; none for 0.
func taking(ms int) figures {
	if ms == 0 {
		return figures{}
	}
	return figures{took: []time.Duration{time.Duration(ms) * time.Millisecond}}
}

func TestBudgetIsPerComponentAndAgainstTheFasterTool(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		n                 int
		berth, tool, side int
		want              bool
	}{
		{name: "one, just kept", n: 1, berth: 249, tool: 100, want: true},
		{name: "one, just missed", n: 1, berth: 250, tool: 100},
		{name: "ten share it", n: 10, berth: 1599, tool: 100, side: 100, want: true},
		{name: "side by side is the faster use", n: 10, berth: 1599, tool: 100, side: 90},
		{name: "side by side may be the slower one", n: 10, berth: 1600, tool: 100, side: 200},
		{name: "faster than the tool", n: 10, berth: 500, tool: 1000, side: 600, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := comparison{n: tt.n, berth: running(tt.berth), tool: running(tt.tool), side: running(tt.side)}
			if got := c.within(); got != tt.want {
				t.Errorf("within: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestComponentTables(t *testing.T) {
	t.Parallel()
	all := []*comparison{
		{kind: clusterKinds[0], n: 1, berth: running(500), tool: running(200), spent: &spent{jobs: map[string]*jobSpent{
			"plan": {waits: taking(4), starts: taking(80), works: taking(200), reported: taking(20)},
		}, between: taking(70)}},
		{
			kind: clusterKinds[1], n: 10, changed: true, berth: running(2000), tool: running(4000), side: running(1000),
			spent: &spent{jobs: map[string]*jobSpent{"plan": {works: taking(300)}, "apply": {works: taking(250)}}},
		},
	}
	var b strings.Builder
	if err := componentTable(&b, all); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n")
	if err := spentTable(&b, all); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
| components | what                          | rounds | Berth ms | tool ms | 2 at once ms | own ms each | over 2 at once | to tool | to 2 at once | CPU ms each | tool's CPU | budget |
|-----------:|-------------------------------|-------:|---------:|--------:|-------------:|------------:|---------------:|--------:|-------------:|------------:|-----------:|--------|
|          1 | helm_chart, the same again    |      1 |    500.0 |   200.0 |              |       300.0 |                |   × 2.5 |              |       250.0 |      100.0 | missed |
|         10 | kubernetes_manifest, one line |      1 |   2000.0 |  4000.0 |       1000.0 |      -200.0 |          100.0 |  × 0.50 |        × 2.0 |       100.0 |      200.0 | kept   |

| components | what                          | job   | waits ms | starts ms | works ms | reported ms | between jobs ms |
|-----------:|-------------------------------|-------|---------:|----------:|---------:|------------:|----------------:|
|          1 | helm_chart, the same again    | plan  |      4.0 |      80.0 |    200.0 |        20.0 |            70.0 |
|         10 | kubernetes_manifest, one line | plan  |      0.0 |       0.0 |    300.0 |         0.0 |             0.0 |
|         10 | kubernetes_manifest, one line | apply |      0.0 |       0.0 |    250.0 |         0.0 |                 |
`, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}
