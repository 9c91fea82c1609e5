// Package enrol decides what happens when somebody comes with an enrolment
// secret and a key. It looks at rows and does no I/O; package api acts on it.
package enrol

import "time"

// Decision is what to do with an enrolment request.
type Decision string

// The decisions.
const (
	// Bind: the key becomes the runner's key, the secret is used up.
	Bind Decision = "bind"
	// Replace is Bind for a runner that has another key: the customer consented
	// that the machine before is gone, so its sessions and leases end.
	Replace Decision = "replace"
	// Repeat: the same key has bound this secret before; answer the same.
	Repeat Decision = "repeat"

	// RefuseExpired: the secret was not used in time.
	RefuseExpired Decision = "refuse_expired"
	// RefuseBound: another key has used the secret. Somebody who should not
	// have it has it, or had it: raise the alarm.
	RefuseBound Decision = "refuse_bound"
	// RefuseEnrolled: the runner has another key, and nobody consented to its
	// replacement.
	RefuseEnrolled Decision = "refuse_enrolled"
	// RefuseSuperseded: the key has bound this secret, but another machine has
	// taken its place since.
	RefuseSuperseded Decision = "refuse_superseded"
	// RefuseHandover: the customer consented to a replacement, and the install's
	// recovery key has not signed for this machine.
	RefuseHandover Decision = "refuse_handover"
	// RefuseRevoked: the runner is not wanted any more.
	RefuseRevoked Decision = "refuse_revoked"
)

// Request is everything that the decision needs: the rows, and the key in the
// request.
type Request struct {
	// Key is the public key that signed the request.
	Key string
	// BoundKey is the key that used the secret; empty while nobody did.
	BoundKey  string
	Replaces  bool
	ExpiresAt time.Time
	// RunnerKey is the runner's present key; empty before its first enrolment.
	RunnerKey     string
	RunnerRevoked bool
	Now           time.Time
}

// Decide says what to do.
func Decide(r Request) Decision {
	switch {
	case r.BoundKey != "" && r.BoundKey != r.Key:
		return RefuseBound
	case r.RunnerRevoked:
		return RefuseRevoked
	case r.BoundKey != "" && r.RunnerKey != r.Key:
		return RefuseSuperseded
	case r.BoundKey != "":
		return Repeat
	case !r.Now.Before(r.ExpiresAt):
		return RefuseExpired
	case r.RunnerKey == "" || r.RunnerKey == r.Key:
		return Bind
	case r.Replaces:
		return Replace
	default:
		return RefuseEnrolled
	}
}
