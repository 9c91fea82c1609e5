package recovery_test

import (
	"testing"

	"github.com/berth-dev/berth/runner/agent/recovery"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		facts recovery.Facts
		want  recovery.Decision
	}{
		{"a directory and nothing else", recovery.Facts{Phase: recovery.Claimed, Mutates: true}, recovery.NotStarted},
		{"an empty phase, as a torn first write leaves it", recovery.Facts{}, recovery.NotStarted},
		{"the order was used, the engine not begun", recovery.Facts{Phase: recovery.Ordered, Mutates: true}, recovery.NotStarted},
		{"an engine that runs", recovery.Facts{Phase: recovery.Started, Alive: true, Mutates: true}, recovery.Adopt},
		{"an engine that runs and has its result already", recovery.Facts{Phase: recovery.Started, Alive: true, HasResult: true}, recovery.Adopt},
		{"an engine that was just begun and is not on record", recovery.Facts{Phase: recovery.Starting, Alive: true}, recovery.Adopt},
		{"an engine that finished while no agent looked", recovery.Facts{Phase: recovery.Started, HasResult: true, Mutates: true}, recovery.Report},
		{"one that finished before it was on record", recovery.Facts{Phase: recovery.Starting, HasResult: true, Mutates: true}, recovery.Report},
		{"an apply that died without a word", recovery.Facts{Phase: recovery.Started, Mutates: true}, recovery.Uncertain},
		{"an apply that maybe began", recovery.Facts{Phase: recovery.Starting, Mutates: true}, recovery.Uncertain},
		{"a plan that died without a word", recovery.Facts{Phase: recovery.Started}, recovery.Uncertain},
		{"a plan that maybe began", recovery.Facts{Phase: recovery.Starting}, recovery.NotStarted},
		{"a report that waits", recovery.Facts{Phase: recovery.Ended, Mutates: true}, recovery.Report},
		{"a report that waits, whatever else holds", recovery.Facts{Phase: recovery.Ended, Alive: true}, recovery.Report},
		{"a report that was delivered", recovery.Facts{Phase: recovery.Delivered, HasResult: true, Mutates: true}, recovery.Forget},
		{"a result without an engine is nobody's", recovery.Facts{Phase: recovery.Claimed, HasResult: true, Mutates: true}, recovery.NotStarted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := recovery.Decide(tc.facts); got != tc.want {
				t.Errorf("Decide(%+v) = %s, want %s", tc.facts, got, tc.want)
			}
		})
	}
}
