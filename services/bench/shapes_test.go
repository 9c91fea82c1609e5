package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// graphOf is what a shape of n makes when each of its jobs takes a second.
func graphOf(s shape, n int) (graph []node) {
	all := names(n)
	for i, name := range all {
		one := node{name: name, took: time.Second}
		for _, need := range s.needs(i, n) {
			one.needs = append(one.needs, all[need])
		}
		graph = append(graph, one)
	}
	return graph
}

func TestCriticalPathOfShapes(t *testing.T) {
	t.Parallel()
	want := map[string]time.Duration{"chain": 50 * time.Second, "star": 2 * time.Second, "layers": layers * time.Second}
	for _, s := range shapes {
		graph := graphOf(s, 50)
		if got := criticalPath(graph); got != want[s.name] {
			t.Errorf("%s: critical path %s, want %s", s.name, got, want[s.name])
		}
		if got := spread(graph, slots); got != 12500*time.Millisecond {
			t.Errorf("%s: spread over slots %s", s.name, got)
		}
	}
}

func TestCriticalPathTakesTheLongerWay(t *testing.T) {
	t.Parallel()
	graph := []node{
		{name: "end", needs: []string{"short", "long"}, took: 1},
		{name: "short", needs: []string{"start"}, took: 10},
		{name: "long", needs: []string{"start", "gone"}, took: 100},
		{name: "start", took: 1000},
		{name: "alone", took: 500},
	}
	if got := criticalPath(graph); got != 1101 {
		t.Errorf("critical path %d, want 1101", got)
	}
}

func TestComponentsOfShapes(t *testing.T) {
	t.Parallel()
	got := shapes[2].in(moduleKinds[0], 10).component("line-03", "")
	if want := "\"src/module\""; !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
	if diff := cmp.Diff("dependencies = [\"line-01\", \"line-02\"]", lastOfHead(got)); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

// lastOfHead is the line before the first empty one.
func lastOfHead(text string) string {
	head, _, _ := strings.Cut(text, "\n\n")
	return head[strings.LastIndex(head, "\n")+1:]
}

func TestShapeTable(t *testing.T) {
	t.Parallel()
	kept, missed := &shaped{shape: "chain", n: 50}, &shaped{shape: "star", n: 50}
	graph := graphOf(shapes[0], 50)
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	graph[0].jobs = []span{{at(0), at(2), at(20)}, {at(25), at(27), at(40)}}
	graph[1].jobs = []span{{at(50), at(52), at(60)}}
	kept.add(54*time.Second, graph)
	missed.add(14*time.Second, graphOf(shapes[1], 50))
	var b strings.Builder
	if err := shapeTable(&b, []*shaped{kept, missed}); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
| components | shape | rounds | makespan ms | critical path ms | jobs over slots ms | makespan to the larger | budget | next step ms | next job ms | waits ms |
|-----------:|-------|-------:|------------:|-----------------:|-------------------:|-----------------------:|--------|-------------:|------------:|---------:|
|         50 | chain |      1 |     54000.0 |          50000.0 |            12500.0 |                 × 1.08 | kept   |         10.0 |         5.0 |      2.0 |
|         50 | star  |      1 |     14000.0 |           2000.0 |            12500.0 |                 × 1.12 | missed |          0.0 |         0.0 |      0.0 |
`, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
