package gauges

import (
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Sampler makes the numbers that the vendor gets, under the names that Prometheus has for them.
type Sampler struct {
	look  func() Facts
	times *Times
	used  processor
	// told are the counts that were in the sample before.
	told map[string]int64
}

// NewSampler begins to count.
func NewSampler(look func() Facts, times *Times) *Sampler {
	return &Sampler{look: look, times: times, used: processor{used: cpuTime(), at: time.Now()}, told: map[string]int64{}}
}

// Sample is what the runner is like now. What nothing was added to since the sample before is
// left out. It is for one goroutine.
func (s *Sampler) Sample(at time.Time) jobspec.Sample {
	f := s.look()
	gauge := func(name, help string, value float64) jobspec.Metric {
		return jobspec.Metric{Name: name, Kind: jobspec.MetricGauge, Help: help, Value: value}
	}
	list := []jobspec.Metric{
		gauge("runner_cpu_used", "cores that the agent used since the sample before, without engines", s.used.since(cpuTime(), time.Now())),
		gauge("runner_disk_free_bytes", "room on the disk of the data directory", float64(f.DiskFree)),
		gauge("runner_job_running", "attempts that the agent works on", float64(f.Jobs)),
	}
	if bytes, ok := resident(); ok {
		list = append(list, gauge("runner_memory_used_bytes", "resident memory of the agent, without engines", float64(bytes)))
	}
	jobs, checks := s.times.look()
	list = append(list, s.durations("runner_job_duration_seconds", "how long attempts took, since the agent started", jobs)...)
	list = append(list, s.durations("runner_check_duration_seconds", "how long checks and probes of the schedule took, since the agent started", checks)...)
	return jobspec.Sample{At: at, Metrics: list}
}

// durations are the series of a summary: all so far, and the longest since the sample before.
func (s *Sampler) durations(name, help string, of spell) []jobspec.Metric {
	if of.count == s.told[name] {
		return nil
	}
	s.told[name] = of.count
	return []jobspec.Metric{
		{Name: name + "_count", Kind: jobspec.MetricCounter, Help: help, Value: float64(of.count)},
		{Name: name + "_sum", Kind: jobspec.MetricCounter, Help: help, Value: of.sum.Seconds()},
		{Name: name, Labels: map[string]string{"quantile": "1"}, Kind: jobspec.MetricGauge, Help: "the longest since the sample before", Value: of.longest.Seconds()},
	}
}
