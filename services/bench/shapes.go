package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// makespanBudget is how much longer than its bound a workflow may take.
const makespanBudget = 1.1

// slots is how many jobs an agent works on at once, as it ships.
const slots = 4

// layers is in how many layers components stand.
const layers = 5

// shape is a way in which components stand on each other.
type shape struct {
	name string
	// needs are the components that number i of n stands on.
	needs func(i, n int) []int
}

// shapes are those that are measured.
var shapes = []shape{
	{name: "chain", needs: func(i, _ int) []int {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	}},
	{name: "star", needs: func(i, _ int) []int {
		if i == 0 {
			return nil
		}
		return []int{0}
	}},
	{name: "layers", needs: func(i, n int) (all []int) {
		width := max(1, (n+layers-1)/layers)
		for j := (i/width - 1) * width; i >= width && j < i/width*width; j++ {
			all = append(all, j)
		}
		return all
	}},
}

// in is the kind with components that stand on each other like this.
func (s shape) in(k kind, n int) kind {
	all, component := names(n), k.component
	k.component = func(name, namespace string) string {
		var needs []string
		for _, i := range s.needs(slices.Index(all, name), n) {
			needs = append(needs, fmt.Sprintf("%q", all[i]))
		}
		// Keys of the file itself come before its first table.
		own := fmt.Sprintf("dependencies = [%s]\n", strings.Join(needs, ", "))
		return strings.Replace(component(name, namespace), "\n\n", "\n"+own+"\n", 1)
	}
	return k
}

// node is a step of a workflow.
type node struct {
	name  string
	needs []string
	took  time.Duration // that runners had its jobs in their hands
	jobs  []span        // in their order
}

// span is when a job was queued, a runner took it, and its result was there.
type span struct{ queued, taken, ended time.Time }

// criticalPath is the longest way through a graph.
func criticalPath(graph []node) time.Duration {
	byName, known := map[string]node{}, map[string]time.Duration{}
	for _, n := range graph {
		byName[n.name] = n
	}
	var end func(name string) time.Duration
	end = func(name string) time.Duration {
		if at, ok := known[name]; ok {
			return at
		}
		var start time.Duration
		for _, need := range byName[name].needs {
			start = max(start, end(need))
		}
		known[name] = start + byName[name].took
		return known[name]
	}
	var longest time.Duration
	for _, n := range graph {
		longest = max(longest, end(n.name))
	}
	return longest
}

// spread is how long the jobs of a graph take when no slot is ever free.
func spread(graph []node, slots int) time.Duration {
	var all time.Duration
	for _, n := range graph {
		all += n.took
	}
	return all / time.Duration(slots)
}

// shaped is a line of the table.
type shaped struct {
	shape            string
	n                int
	makespan         figures // from the request to the end of the workflow
	critical, spread figures
	next             figures   // from the last job of all that a step needs until its first is queued
	between          figures   // from the end of a job of a step until its next is queued
	waits            figures   // from there until a runner has it
	over             []float64 // of each round: makespan over the larger of the two
}

// add takes one deploy.
func (s *shaped) add(makespan time.Duration, graph []node) {
	critical, spread := criticalPath(graph), spread(graph, slots)
	s.makespan.add(makespan)
	s.critical.add(critical)
	s.spread.add(spread)
	s.over = append(s.over, float64(makespan)/float64(max(critical, spread)))
	s.addGaps(graph)
}

// addGaps takes what lies between the jobs of a graph.
func (s *shaped) addGaps(graph []node) {
	ends := map[string]time.Time{}
	for _, n := range graph {
		if len(n.jobs) > 0 {
			ends[n.name] = n.jobs[len(n.jobs)-1].ended
		}
	}
	for _, n := range graph {
		var before time.Time
		for _, need := range n.needs {
			if ends[need].After(before) {
				before = ends[need]
			}
		}
		for i, job := range n.jobs {
			switch {
			case i > 0:
				s.between.add(job.queued.Sub(n.jobs[i-1].ended))
			case !before.IsZero():
				s.next.add(job.queued.Sub(before))
			}
			s.waits.add(job.taken.Sub(job.queued))
		}
	}
}

// median is that of the ratios of all rounds.
func (s *shaped) median() float64 {
	return slices.Sorted(slices.Values(s.over))[(len(s.over)-1)/2]
}

// runShapes measures how close the schedule of a workflow comes to what its jobs
// take: Terraform modules in different shapes, one line changed in each.
func runShapes(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	fmt.Fprintln(progress, "starting Berth")
	s, err := startSystem(ctx, opts.bin)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if err != nil {
		return err
	}
	c := &cluster{system: s, name: "berth-bench", progress: progress}
	if err := c.open(ctx); err != nil {
		return err
	}
	defer c.store.Close()
	before := load()
	var results []*shaped
	for _, n := range opts.components {
		for _, shape := range shapes {
			got, err := c.measureShape(ctx, shape, n, min(opts.rounds, max(1, deploysPerRow/n)))
			if err != nil {
				return fmt.Errorf("%d as %s: %w", n, shape.name, err)
			}
			results = append(results, got)
		}
	}
	fmt.Fprintf(out, "\nShapes. %d CPUs, %d slots, load %s before and %s after; %s/%s.\n\n", runtime.NumCPU(), slots, before, load(), runtime.GOOS, runtime.GOARCH)
	if err := shapeTable(out, results); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nBudget: makespan ≤ %.1f × the larger of the critical path and all jobs spread over the slots.\n", makespanBudget)
	return err
}

// measureShape makes an install of n components and deploys a changed line to it.
func (c *cluster) measureShape(ctx context.Context, s shape, n, rounds int) (*shaped, error) {
	k, name := s.in(moduleKinds[0], n), fmt.Sprintf("%s-%s-%d", c.name, s.name, n)
	folder := filepath.Join(c.system.dir, name)
	if err := writeApp(folder, k, n, name); err != nil {
		return nil, err
	}
	if err := c.system.berth(ctx, "sync", folder, "--app", name, "--wait"); err != nil {
		return nil, err
	}
	if err := c.system.berth(ctx, "installs", "create", name, "--app", name, "--approve-all", "--watch"); err != nil {
		return nil, err
	}
	way := &berthWay{cluster: c, kind: k, install: name, n: n, spent: map[bool]*spent{true: newSpent()}}
	result := &shaped{shape: s.name, n: n}
	for round := range rounds {
		fmt.Fprintf(c.progress, "%d as %s, round %d of %d\n", n, s.name, round+1, rounds)
		if err := way.prepare(ctx, c.nextValue()); err != nil {
			return nil, err
		}
		if _, _, err := way.deploy(ctx); err != nil {
			return nil, err
		}
		if err := way.verify(ctx, true); err != nil {
			return nil, err
		}
		graph, err := c.graph(ctx, way)
		if err != nil {
			return nil, err
		}
		result.add(way.last.FinishedAt.Sub(way.last.CreatedAt), graph)
	}
	return result, nil
}

// graph is what the last deploy was, with the times of its jobs.
func (c *cluster) graph(ctx context.Context, way *berthWay) ([]node, error) {
	var graph []node
	for _, listed := range way.last.Steps {
		resp, err := c.api.GetStepWithResponse(ctx, listed.ID)
		if err != nil {
			return nil, err
		}
		step := resp.JSON200
		if step == nil {
			return nil, fmt.Errorf("step %s: %s", listed.Name, resp.Status())
		}
		n := node{name: step.Name, needs: step.Needs}
		for _, job := range step.Jobs {
			if job.StartedAt == nil || job.FinishedAt == nil {
				return nil, fmt.Errorf("job %s of step %s is %s", job.ID, step.Name, job.State)
			}
			n.took += job.FinishedAt.Sub(*job.StartedAt)
			n.jobs = append(n.jobs, span{job.QueuedAt, *job.StartedAt, *job.FinishedAt})
		}
		graph = append(graph, n)
	}
	return graph, nil
}

// shapeTable prints one line per shape; all times are medians.
func shapeTable(w io.Writer, all []*shaped) error {
	rows := [][]string{{"components", "shape", "rounds", "makespan ms", "critical path ms", "jobs over slots ms", "makespan to the larger", "budget", "next step ms", "next job ms", "waits ms"}}
	for _, s := range all {
		verdict := "missed"
		if s.median() <= makespanBudget {
			verdict = "kept"
		}
		rows = append(rows, []string{
			fmt.Sprint(s.n), s.shape, fmt.Sprint(len(s.over)), milliseconds(s.makespan.percentile(50)), milliseconds(s.critical.percentile(50)),
			milliseconds(s.spread.percentile(50)), fmt.Sprintf("× %.2f", s.median()), verdict,
			milliseconds(s.next.percentile(50)), milliseconds(s.between.percentile(50)), milliseconds(s.waits.percentile(50)),
		})
	}
	return markdown(w, rows, 1, 7)
}
