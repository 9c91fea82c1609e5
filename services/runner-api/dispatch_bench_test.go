package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/runnerapi"
)

// BenchmarkDispatch measures from the commit of a job to its assignment in the
// hands of a runner, while this many runners wait. The budget is p50 ≤ 5 ms and
// p99 ≤ 50 ms with 1,000.
func BenchmarkDispatch(b *testing.B) {
	for _, waiting := range []int{1, 100, 1000} {
		b.Run(strconv.Itoa(waiting), func(b *testing.B) { benchmarkDispatch(b, waiting) })
	}
}

func benchmarkDispatch(b *testing.B, waiting int) {
	w := newWorld(b)
	type arrival struct {
		jobs []runnerapi.Assignment
		at   time.Time
	}
	agents := make([]*agent, waiting)
	arrivals := make([]chan arrival, waiting)
	hold := func(i, n int) {
		jobs := agents[i].claim(fmt.Sprintf("claim-%d-%d", i, n), 1, 55)
		arrivals[i] <- arrival{jobs, time.Now()}
	}
	for i := range agents {
		agents[i] = w.agent(w.org(), "install")
		agents[i].claim("claim-nothing", 1, 0)
		arrivals[i] = make(chan arrival, 1)
		go hold(i, 0)
	}
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		i := rand.IntN(waiting)
		jobID := agents[i].queue(job{}) // insert, commit, notify
		queued := one[time.Time](w, `select queued_at from runner_jobs where id = $1`, jobID)
		got := <-arrivals[i]
		if len(got.jobs) != 1 || got.jobs[0].JobID != jobID {
			b.Fatalf("claimed %+v, want %s", got.jobs, jobID)
		}
		took = append(took, got.at.Sub(queued))
		go hold(i, n)
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	for i := range agents { // end what is held
		agents[i].queue(job{})
		<-arrivals[i]
	}
}
