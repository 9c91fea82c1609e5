package agent

import (
	"testing"
	"time"
)

func TestAfterOvertaken(t *testing.T) {
	t.Parallel()
	for n, most := range map[int]time.Duration{0: 200 * time.Millisecond, 3: 1600 * time.Millisecond, 11: 5 * time.Minute, 1000: 5 * time.Minute} {
		if wait := afterOvertaken(n); wait < most/2 || wait > most {
			t.Errorf("after %d: %s, want %s to %s", n, wait, most/2, most)
		}
	}
}

func TestReopen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		failures int
		lasted   time.Duration
		least    time.Duration // half of the wait is random
		most     time.Duration
		inARow   int
	}{
		{name: "the first session ended", lasted: time.Hour, least: 100 * time.Millisecond, most: 200 * time.Millisecond, inARow: 1},
		{name: "one that ended at once has failed", failures: 3, lasted: time.Second, least: 800 * time.Millisecond, most: 1600 * time.Millisecond, inARow: 4},
		{name: "as one that could not be opened", failures: 3, least: 800 * time.Millisecond, most: 1600 * time.Millisecond, inARow: 4},
		{name: "the wait has an end", failures: 40, least: 4 * time.Second, most: 8 * time.Second, inARow: 41},
		{name: "a steady one is a new story", failures: 40, lasted: steadySession, least: 100 * time.Millisecond, most: 200 * time.Millisecond, inARow: 1},
	} {
		wait, inARow := reopen(tc.failures, tc.lasted)
		if wait < tc.least || wait > tc.most || inARow != tc.inARow {
			t.Errorf("%s: wait %s, %d in a row; want %s to %s, %d", tc.name, wait, inARow, tc.least, tc.most, tc.inARow)
		}
	}
}
