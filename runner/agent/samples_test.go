package agent_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/egress"
)

// sampling is a runner that looks at itself often.
func sampling(t *testing.T) *runner {
	t.Helper()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.sampleEvery = 20 * time.Millisecond
	return r
}

func valuesOf(s jobspec.Sample) map[string]float64 {
	values := map[string]float64{}
	for _, m := range s.Metrics {
		values[m.Series()] = m.Value
	}
	return values
}

// The vendor sees processor, memory, disk and how long jobs take, in the order of their times.
func TestOwnNumbers(t *testing.T) {
	t.Parallel()
	r := sampling(t)
	r.start()
	r.plane.result(t, r.plane.give(script("measure orders 42")))
	counted := func() (found map[string]float64) {
		for _, s := range r.plane.samples {
			if values := valuesOf(s); values["runner_job_duration_seconds_count"] > 0 {
				found = values
			}
		}
		return found
	}
	r.plane.until(t, "a sample with the job", func() bool { return counted() != nil })
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	got := counted()
	if got["runner_job_duration_seconds_count"] < 1 || got["runner_job_duration_seconds_sum"] <= 0 || got[`runner_job_duration_seconds{quantile="1"}`] <= 0 ||
		got["runner_memory_used_bytes"] < 1<<20 || got["runner_disk_free_bytes"] <= 0 {
		t.Errorf("the sample is %v", got)
	}
	for i, s := range r.plane.samples {
		if i > 0 && !s.At.After(r.plane.samples[i-1].At) {
			t.Errorf("sample %d is of %s, after one of %s", i, s.At, r.plane.samples[i-1].At)
		}
		for _, m := range s.Metrics {
			if why := m.Problem(); why != "" || !strings.HasPrefix(m.Name, jobspec.SamplePrefix) {
				t.Errorf("%s is not kept: %s", m.Series(), why)
			}
		}
	}
}

// What a cut-off runner could not send waits on disk, also for the agent after a killed one, and
// comes with its own times.
func TestOwnNumbersWait(t *testing.T) {
	t.Parallel()
	r := sampling(t)
	stop := r.start()
	r.plane.until(t, "samples", func() bool { return len(r.plane.samples) > 0 })
	r.plane.change(func() { r.plane.away = true })
	r.appears(r.dir.Samples())
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(r.dir.Samples())
	if err != nil {
		t.Fatal(err)
	}
	left := time.Now()
	r.plane.change(func() { r.plane.away, r.plane.samples = false, nil })
	r.start()
	r.plane.until(t, "the samples of before", func() bool { return len(r.plane.samples) > 0 && r.plane.samples[len(r.plane.samples)-1].At.After(left) })
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	before := 0
	for _, s := range r.plane.samples {
		if s.At.Before(left) {
			before++
		}
	}
	if before == 0 || before != strings.Count(string(raw), `"at"`) {
		t.Errorf("%d samples of before came, the file has %s", before, raw)
	}
}

// With metrics off nothing is sent, and nothing of that time comes later.
func TestOwnNumbersAreSwitchedOff(t *testing.T) {
	t.Parallel()
	r := sampling(t)
	r.start()
	r.plane.until(t, "samples", func() bool { return len(r.plane.samples) > 0 })
	r.plane.change(func() { r.plane.away = true })
	r.appears(r.dir.Samples())
	r.switches(egress.Metrics, true)
	waitUntil := time.Now().Add(10 * time.Second)
	for _, err := os.Stat(r.dir.Samples()); err == nil; _, err = os.Stat(r.dir.Samples()) {
		if time.Now().After(waitUntil) {
			t.Fatal("what waits is not dropped")
		}
		time.Sleep(5 * time.Millisecond)
	}
	off := time.Now()
	var had int
	r.plane.change(func() { had, r.plane.away = len(r.plane.samples), false })
	r.plane.result(t, r.plane.give(script("output look fine"))) // time goes by, and the plane is reached
	middle := off.Add(time.Since(off) / 2)                      // a look may be under way at the switch
	r.plane.mu.Lock()
	if got := len(r.plane.samples); got != had {
		t.Errorf("%d samples came while they are off", got-had)
	}
	r.plane.mu.Unlock()
	r.switches(egress.Metrics, false)
	r.plane.until(t, "samples again", func() bool { return len(r.plane.samples) > had })
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	if first := r.plane.samples[had].At; first.Before(middle) {
		t.Errorf("a sample of %s came, they were off since %s", first, off)
	}
}

// A control plane of before knows no such report: it is asked once an hour, and all else goes on.
func TestOwnNumbersAreRefused(t *testing.T) {
	t.Parallel()
	r := sampling(t)
	r.plane.olderThanSamples = true
	r.start()
	r.plane.until(t, "a report", func() bool { return r.plane.served["PUT /samples"] > 0 })
	r.plane.result(t, r.plane.give(script("output look fine")))
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	if n := r.plane.served["PUT /samples"]; n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	if _, err := os.Stat(r.dir.Samples()); err == nil {
		t.Error("what nobody takes waits on disk")
	}
}
