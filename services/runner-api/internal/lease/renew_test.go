package lease_test

import (
	"testing"

	"github.com/berth-dev/berth/services/runner-api/internal/lease"
)

func TestRenew(t *testing.T) {
	t.Parallel()
	good := lease.Lease{Open: true, OwnSession: true, Current: true}
	with := func(change func(*lease.Lease)) lease.Lease {
		l := good
		change(&l)
		return l
	}
	tests := []struct {
		name string
		in   lease.Lease
		want lease.Answer
	}{
		{"an open lease goes on", good, lease.OK},
		{"a cancel is told, and the lease goes on to the safe point", with(func(l *lease.Lease) { l.CancelRequested = true }), lease.Cancel},
		{"an unknown lease is lost", lease.Lease{}, lease.Lost},
		{"an ended lease is lost", with(func(l *lease.Lease) { l.Open = false }), lease.Lost},
		{"a lease of another session is lost", with(func(l *lease.Lease) { l.OwnSession = false }), lease.Lost},
		{"an older attempt is lost", with(func(l *lease.Lease) { l.Current = false }), lease.Lost},
		{"a newer grant on the resource wins", with(func(l *lease.Lease) { l.Superseded = true }), lease.Lost},
		{"lost is stronger than cancel", with(func(l *lease.Lease) { l.Open, l.CancelRequested = false, true }), lease.Lost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := lease.Renew(tt.in); got != tt.want {
				t.Errorf("Renew(%+v) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}
