package gauges

import (
	"sync"
	"time"
)

// Times are how long jobs and checks took. It is safe for concurrent use; on nil nothing is
// counted.
type Times struct {
	mu           sync.Mutex
	jobs, checks spell
}

// spell is many durations: all since the start, and the longest since the look before.
type spell struct {
	count   int64
	sum     time.Duration
	longest time.Duration
}

func (s *spell) add(took time.Duration) {
	s.count++
	s.sum += took
	s.longest = max(s.longest, took)
}

// Job counts an attempt that ended.
func (t *Times) Job(took time.Duration) {
	if t != nil {
		t.mu.Lock()
		t.jobs.add(took)
		t.mu.Unlock()
	}
}

// Check counts a check or probe of the schedule that ended.
func (t *Times) Check(took time.Duration) {
	if t != nil {
		t.mu.Lock()
		t.checks.add(took)
		t.mu.Unlock()
	}
}

// look takes what is counted. The longest ones begin again.
func (t *Times) look() (jobs, checks spell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	jobs, checks = t.jobs, t.checks
	t.jobs.longest, t.checks.longest = 0, 0
	return jobs, checks
}
