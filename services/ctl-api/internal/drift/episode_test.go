package drift_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/drift"
)

func TestNext(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC) }
	clean := func(hour int) drift.Look { return drift.Look{At: at(hour)} }
	edited := func(hour int) drift.Look { return drift.Look{At: at(hour), Digest: "one", Class: "human_edit"} }
	other := func(hour int) drift.Look { return drift.Look{At: at(hour), Digest: "two", Class: "human_edit"} }
	asked := func(l drift.Look) drift.Look { l.Asked = true; return l }
	gone := drift.Look{At: at(9), Digest: "three", Class: "real", AtOnce: true}
	for _, tc := range []struct {
		name  string
		open  bool
		looks []drift.Look // newest first
		want  drift.Step
		since time.Time
	}{
		{"never looked at", false, nil, drift.Stay, time.Time{}},
		{"never looked at since the change", true, nil, drift.Stay, time.Time{}},
		{"clean", false, []drift.Look{clean(9)}, drift.Stay, time.Time{}},
		{"one look finds drift", false, []drift.Look{edited(9), clean(8)}, drift.Stay, time.Time{}},
		{"two looks find the same", false, []drift.Look{edited(9), edited(8), clean(7)}, drift.Open, at(8)},
		{"two looks find two things", false, []drift.Look{other(9), edited(8)}, drift.Stay, time.Time{}},
		{"it comes and goes", false, []drift.Look{edited(9), clean(8), edited(7), clean(6)}, drift.Stay, time.Time{}},
		{"an object is gone", false, []drift.Look{gone, clean(8)}, drift.Open, at(9)},
		{"a person asked", false, []drift.Look{asked(edited(9)), clean(8)}, drift.Open, at(9)},
		{"a person asked, and it is clean", false, []drift.Look{asked(clean(9))}, drift.Stay, time.Time{}},
		{"it goes on", true, []drift.Look{edited(9), edited(8)}, drift.Keep, time.Time{}},
		{"it is another drift now", true, []drift.Look{other(9), edited(8)}, drift.Keep, time.Time{}},
		{"one clean look", true, []drift.Look{clean(9), edited(8)}, drift.Stay, time.Time{}},
		{"two clean looks", true, []drift.Look{clean(9), clean(8), edited(7)}, drift.Close, time.Time{}},
		{"clean, and a person asked", true, []drift.Look{asked(clean(9)), edited(8)}, drift.Close, time.Time{}},
		{"it is back after one clean look", true, []drift.Look{edited(9), clean(8), edited(7)}, drift.Keep, time.Time{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			step, since := drift.Next(tc.open, tc.looks)
			if step != tc.want || !since.Equal(tc.since) {
				t.Errorf("got %q since %s", step, since)
			}
			// Decided once more on the same looks, nothing else happens.
			open := tc.open && step != drift.Close || step == drift.Open
			if again, _ := drift.Next(open, tc.looks); again != drift.Stay && again != drift.Keep && again != step {
				t.Errorf("decided again: %q after %q", again, step)
			}
			if again, _ := drift.Next(open, tc.looks); step == drift.Close && again == drift.Open || step == drift.Open && again == drift.Close {
				t.Errorf("it flaps: %q after %q", again, step)
			}
		})
	}
}
