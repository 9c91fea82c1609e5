// Package session owns the lives of runner processes: whether a new one is the
// only one that holds the runner's key ([Judge]), what becomes of the attempts
// that were leased when it begins ([Resume]), and who the bearer of a session
// token is ([Cache]).
package session

// MaxAttempts is how often a job that mutates nothing is leased: a third loss
// is not bad luck any more.
const MaxAttempts = 3

// Fate is what becomes of an attempt when its runner opens a new session.
type Fate string

// The fates.
const (
	// Resumed: the runner says that it still works on it; the lease is the new
	// session's.
	Resumed Fate = "resumed"
	// Requeued: the attempt is dead and changed nothing; the job waits again.
	Requeued Fate = "requeued"
	// Exhausted is Requeued once too often: the job has failed.
	Exhausted Fate = "exhausted"
	// Cancelled: the attempt is dead, and somebody had asked for that.
	Cancelled Fate = "cancelled"
	// Uncertain: the attempt is dead and may have changed something. A plan
	// must look; it is never run again blindly.
	Uncertain Fate = "uncertain"
)

// Leased is a leased attempt of the runner, as the rows say.
type Leased struct {
	JobID           string
	Attempt         int
	Mutates         bool
	CancelRequested bool
	// Superseded: the resource was granted to somebody else since.
	Superseded bool
}

// Attempt names an attempt that the runner says is running.
type Attempt struct {
	JobID   string
	Attempt int
}

// Resume decides the fate of each leased attempt, in the order of leased. What
// the runner names without there being such a lease is void: it is in no
// answer of ours, so it must stop.
func Resume(leased []Leased, running []Attempt) []Fate {
	alive := make(map[Attempt]bool, len(running))
	for _, a := range running {
		alive[a] = true
	}
	fates := make([]Fate, len(leased))
	for i, l := range leased {
		fates[i] = fate(l, alive[Attempt{JobID: l.JobID, Attempt: l.Attempt}])
	}
	return fates
}

func fate(l Leased, alive bool) Fate {
	switch {
	case alive && !l.Superseded:
		return Resumed
	case l.Mutates:
		return Uncertain
	case l.CancelRequested:
		return Cancelled
	case l.Attempt >= MaxAttempts:
		return Exhausted
	default:
		return Requeued
	}
}
