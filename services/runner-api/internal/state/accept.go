// Package state decides who may write and lock the Terraform state of a
// resource. The bytes are ciphertext; the facts to decide on come with them.
package state

import "fmt"

// Stored is the current state of a resource.
type Stored struct {
	Serial  int64
	Lineage string
	Digest  string
	Fence   int64
}

// Lock is who holds the state of a resource.
type Lock struct {
	ID      string
	JobID   string
	Attempt int
	Fence   int64
}

// Write is a state that somebody wants to be the current one.
type Write struct {
	LockID  string
	JobID   string
	Attempt int
	Fence   int64
	Serial  int64
	Lineage string
	Digest  string
	// LeaseOpen: the attempt is the job's present one, and its lease was not
	// ended (an expired one is open).
	LeaseOpen bool
	// ResourceFence is the resource's own: the newest grant.
	ResourceFence int64
}

// Verdict is what becomes of a write.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted" // it is the current state now
	Replayed Verdict = "replayed" // it is the current state already
	Orphaned Verdict = "orphaned" // kept as evidence
)

// AcceptWrite decides on a write. stored is nil before the first state, lock is
// nil when nobody holds it. The reason of a refusal is for people.
func AcceptWrite(stored *Stored, lock *Lock, w Write) (verdict Verdict, reason string) {
	refuse := func(format string, args ...any) (Verdict, string) {
		return Orphaned, fmt.Sprintf(format, args...)
	}
	if stored != nil && stored.Lineage == w.Lineage && stored.Serial == w.Serial && stored.Digest == w.Digest {
		return Replayed, ""
	}
	switch {
	case !w.LeaseOpen:
		return refuse("attempt %d of the job is over", w.Attempt)
	case w.Fence < w.ResourceFence:
		return refuse("fence %d is not the present one, %d", w.Fence, w.ResourceFence)
	case lock == nil:
		return refuse("the state is not locked")
	case lock.JobID != w.JobID || lock.Attempt != w.Attempt:
		return refuse("the lock is held by attempt %d of job %s", lock.Attempt, lock.JobID)
	case lock.ID != w.LockID:
		return refuse("the lock has another id")
	case lock.Fence != w.Fence:
		return refuse("fence %d is not the lock's, %d", w.Fence, lock.Fence)
	case stored == nil:
		return Accepted, ""
	case w.Fence < stored.Fence:
		return refuse("fence %d is below the stored state's, %d", w.Fence, stored.Fence)
	case w.Lineage != stored.Lineage:
		return refuse("lineage %q is not the stored one, %q", w.Lineage, stored.Lineage)
	case w.Serial <= stored.Serial:
		return refuse("serial %d is not above the stored one, %d", w.Serial, stored.Serial)
	default:
		return Accepted, ""
	}
}

// LockVerdict is what becomes of an attempt to lock.
type LockVerdict string

// The verdicts on a lock.
const (
	Take LockVerdict = "take" // nobody holds it, or one whose grant is over
	Held LockVerdict = "held" // the same attempt holds it already
	Busy LockVerdict = "busy" // somebody else holds it
)

// AcceptLock decides whether want may lock, when held (nil: nobody) holds. Only
// a newer grant of the same resource takes a lock over: it was given because
// the attempt before was shown dead. A later attempt of the same job is such a
// grant too.
func AcceptLock(held *Lock, want Lock) LockVerdict {
	switch {
	case held == nil:
		return Take
	case *held == want:
		return Held
	case held.Fence < want.Fence:
		return Take
	case held.JobID == want.JobID && held.Attempt < want.Attempt:
		return Take
	default:
		return Busy
	}
}
