package turns_test

import (
	"testing"

	"github.com/berth-dev/berth/runner/agent/turns"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	apply := func(what string) turns.Turn { return turns.Turn{What: "apply " + what} }
	nightly := turns.Turn{What: "nightly", Alone: true}
	for _, tc := range []struct {
		name string
		has  map[string]turns.Turn
		want turns.Turn
		busy string
	}{
		{"nobody changes anything", nil, nightly, ""},
		{"changes go side by side", map[string]turns.Turn{"a": apply("api"), "b": apply("db")}, apply("web"), ""},
		{"a scheduled run waits for a change", map[string]turns.Turn{"a": apply("api")}, nightly, "apply api"},
		{"a change waits for a scheduled run", map[string]turns.Turn{"a": nightly}, apply("api"), "nightly"},
		{"two scheduled runs go one after the other", map[string]turns.Turn{"a": {What: "hourly", Alone: true}}, nightly, "hourly"},
		{"who has the turn gets it again", map[string]turns.Turn{"me": nightly}, nightly, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			all := turns.New()
			for name, has := range tc.has {
				all.Hold(name, has)
			}
			busy, changed := all.Take("me", tc.want)
			if busy != tc.busy {
				t.Fatalf("busy = %q, want %q", busy, tc.busy)
			}
			if busy == "" {
				return
			}
			for name := range tc.has {
				all.Leave(name)
			}
			<-changed
			if busy, _ := all.Take("me", tc.want); busy != "" {
				t.Errorf("after all have left, %q is in the way", busy)
			}
		})
	}
}
