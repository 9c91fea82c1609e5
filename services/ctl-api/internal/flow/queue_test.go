package flow_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
)

// Who was asked for first is first, also when somebody looks before it.
func TestTurns(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 11, 23, 12, minute, 0, 0, time.UTC) }
	turn := func(change, resource string, minute int) flow.Turn {
		return flow.Turn{ChangeID: change, Resource: resource, RequestedAt: at(minute)}
	}
	queue := []flow.Turn{turn("first", "api", 1), turn("second", "api", 2), turn("base", "sandbox", 3), turn("other", "web", 4)}
	for _, tt := range []struct {
		name string
		held map[string]string
		who  flow.Turn
		want string
	}{
		{"the first has its turn", nil, queue[0], ""},
		{"the second is behind it", nil, queue[1], "first"},
		{"one that comes now is behind those before it", nil, turn("late", "api", 9), "first"},
		{"one that was asked for before has its turn", nil, turn("early", "api", 0), ""},
		{"of two of the same moment the id decides", nil, turn("a", "api", 1), ""},
		{"the sandbox is behind every component before it", nil, queue[2], "first"},
		{"a component is behind the sandbox that was asked for before", nil, queue[3], "base"},
		{"another component is not", nil, turn("quick", "db", 2), ""},
		{"a holder comes before the queue", map[string]string{"api": "holder"}, queue[0], "holder"},
		{"what has no resource never waits", map[string]string{"sandbox": "holder"}, turn("script", "", 9), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := (flow.Locks{By: tt.held, SandboxID: "sandbox", Queue: queue}).Before(tt.who); got != tt.want {
				t.Errorf("before it is %q, want %q", got, tt.want)
			}
		})
	}
	// Whatever the queue, somebody in it has no one before it.
	for _, q := range queue {
		if (flow.Locks{SandboxID: "sandbox", Queue: queue}).Before(q) == "" {
			return
		}
	}
	t.Error("everybody in the queue waits for another one")
}
