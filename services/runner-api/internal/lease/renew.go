// Package lease decides on leases.
package lease

// Answer is what a runner hears about one lease.
type Answer string

// The answers.
const (
	OK     Answer = "ok"     // renewed, continue
	Cancel Answer = "cancel" // renewed, but stop at the next safe point and report
	Lost   Answer = "lost"   // not the runner's any more: stop, report nothing
)

// Lease is one lease with what decides on it. The zero value is a lease that
// does not exist.
type Lease struct {
	// Open: active, or lost by expiry. Expired is not dead.
	Open bool
	// OwnSession: it belongs to the session that asks.
	OwnSession bool
	// Current: the job is leased, and this is its present attempt.
	Current         bool
	CancelRequested bool
	// Superseded: the resource was granted to somebody else since.
	Superseded bool
}

// Renew says whether the lease continues. An expired one does, as long as
// nothing newer was granted.
func Renew(l Lease) Answer {
	switch {
	case !l.Open, !l.OwnSession, !l.Current, l.Superseded:
		return Lost
	case l.CancelRequested:
		return Cancel
	default:
		return OK
	}
}
