package state_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/runner-api/internal/state"
)

func TestAcceptWrite(t *testing.T) {
	t.Parallel()
	lock := &state.Lock{ID: "L", JobID: "j", Attempt: 1, Fence: 5}
	stored := &state.Stored{Serial: 7, Lineage: "x", Digest: "d7", Fence: 4}
	good := state.Write{LockID: "L", JobID: "j", Attempt: 1, Fence: 5, Serial: 8, Lineage: "x", Digest: "d8", LeaseOpen: true, ResourceFence: 5}
	with := func(change func(*state.Write)) state.Write {
		w := good
		change(&w)
		return w
	}
	tests := []struct {
		name   string
		stored *state.Stored
		lock   *state.Lock
		in     state.Write
		want   state.Verdict
		reason string // part of it
	}{
		{"the first state has any lineage and serial", nil, lock, with(func(w *state.Write) { w.Lineage, w.Serial = "new", 0 }), state.Accepted, ""},
		{"a higher serial of the same lineage", stored, lock, good, state.Accepted, ""},
		{"serials may skip", stored, lock, with(func(w *state.Write) { w.Serial = 12 }), state.Accepted, ""},
		{"the stored serial with the same digest is a repeat", stored, lock, with(func(w *state.Write) { w.Serial, w.Digest = 7, "d7" }), state.Replayed, ""},
		{"a repeat needs no lock any more", stored, nil, with(func(w *state.Write) { w.Serial, w.Digest, w.LeaseOpen = 7, "d7", false }), state.Replayed, ""},
		{"the stored serial with another digest", stored, lock, with(func(w *state.Write) { w.Serial = 7 }), state.Orphaned, "serial 7 is not above"},
		{"a lower serial", stored, lock, with(func(w *state.Write) { w.Serial = 3 }), state.Orphaned, "serial 3"},
		{"another lineage", stored, lock, with(func(w *state.Write) { w.Lineage = "y" }), state.Orphaned, "lineage"},
		{"without a lock", stored, nil, good, state.Orphaned, "not locked"},
		{"with the lock of another id", stored, lock, with(func(w *state.Write) { w.LockID = "M" }), state.Orphaned, "another id"},
		{"with the lock of another job", stored, lock, with(func(w *state.Write) { w.JobID = "k" }), state.Orphaned, "attempt 1 of job j"},
		{"with the lock of another attempt", stored, lock, with(func(w *state.Write) { w.Attempt = 2 }), state.Orphaned, "attempt 1 of job j"},
		{"under another fence than the lock", stored, lock, with(func(w *state.Write) { w.Fence = 6 }), state.Orphaned, "not the lock's"},
		{"under a fence below the stored one", &state.Stored{Serial: 7, Lineage: "x", Fence: 9}, lock, good, state.Orphaned, "below the stored"},
		{"after a newer grant", stored, lock, with(func(w *state.Write) { w.ResourceFence = 6 }), state.Orphaned, "not the present one"},
		{"after the end of the attempt", stored, lock, with(func(w *state.Write) { w.LeaseOpen = false }), state.Orphaned, "is over"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, reason := state.AcceptWrite(tt.stored, tt.lock, tt.in)
			if got != tt.want || !strings.Contains(reason, tt.reason) || (reason == "") != (got != state.Orphaned) {
				t.Errorf("AcceptWrite(%+v, %+v, %+v) = %s, %q; want %s, …%s…", tt.stored, tt.lock, tt.in, got, reason, tt.want, tt.reason)
			}
		})
	}
}

func TestAcceptLock(t *testing.T) {
	t.Parallel()
	want := state.Lock{ID: "L", JobID: "j", Attempt: 2, Fence: 5}
	tests := []struct {
		name string
		held *state.Lock
		want state.LockVerdict
	}{
		{"a free state is taken", nil, state.Take},
		{"the same lock again is held", &state.Lock{ID: "L", JobID: "j", Attempt: 2, Fence: 5}, state.Held},
		{"a second terraform of the same attempt waits", &state.Lock{ID: "M", JobID: "j", Attempt: 2, Fence: 5}, state.Busy},
		{"an older grant is taken over", &state.Lock{ID: "M", JobID: "i", Attempt: 1, Fence: 4}, state.Take},
		{"an older attempt is taken over", &state.Lock{ID: "M", JobID: "j", Attempt: 1, Fence: 5}, state.Take},
		{"a newer attempt is not", &state.Lock{ID: "M", JobID: "j", Attempt: 3, Fence: 5}, state.Busy},
		{"a newer grant is not", &state.Lock{ID: "M", JobID: "k", Attempt: 1, Fence: 6}, state.Busy},
		{"another job of the same grant is not", &state.Lock{ID: "M", JobID: "k", Attempt: 1, Fence: 5}, state.Busy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := state.AcceptLock(tt.held, want); got != tt.want {
				t.Errorf("AcceptLock(%+v, %+v) = %s, want %s", tt.held, want, got, tt.want)
			}
		})
	}
}
