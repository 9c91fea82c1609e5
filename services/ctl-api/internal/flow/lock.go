package flow

import (
	"slices"
	"time"
)

const (
	// lockWait bounds a wait for one other change of the same resource. What was planned
	// so long ago is planned again.
	lockWait = 24 * time.Hour
	// lockRetry is how often a change that waits for a resource looks at the lock by
	// itself. Whoever frees the resource wakes it at once; this makes up for a wake-up
	// that was lost.
	lockRetry = 15 * time.Minute
)

// Locks is who holds the resources of an install.
type Locks struct {
	// By names, per resource, the change that holds it, whatever workflow it is
	// of.
	By map[string]string
	// SandboxID is the resource that excludes all others; empty without one.
	SandboxID string
	// Queue are the approved changes that wait for a resource, the next one first.
	Queue []Turn
}

// Turn is the place of a change among those that want a resource: who was asked for
// first is first.
type Turn struct {
	ChangeID    string
	Resource    string
	RequestedAt time.Time // when a person asked for its workflow
}

// before orders turns.
func (t Turn) before(other Turn) bool {
	if t.RequestedAt.Equal(other.RequestedAt) {
		return t.ChangeID < other.ChangeID
	}
	return t.RequestedAt.Before(other.RequestedAt)
}

// Before names the change that has to end before it is the turn of one: the holder
// of its resource, else the first in the queue that was asked for earlier and that
// excludes it. Empty when it is its turn.
func (l Locks) Before(t Turn) string {
	if t.Resource == "" {
		return ""
	}
	if by := l.Holder(t.Resource); by != "" {
		return by
	}
	for _, q := range l.Queue {
		excludes := q.Resource == t.Resource || l.SandboxID != "" && (q.Resource == l.SandboxID || t.Resource == l.SandboxID)
		if excludes && q.ChangeID != t.ChangeID && q.before(t) {
			return q.ChangeID
		}
	}
	return ""
}

// Holder names the change that keeps a resource from being changed; empty when
// it is free. The sandbox excludes every other resource of the install and is
// excluded by each.
func (l Locks) Holder(resource string) string {
	if resource == "" {
		return ""
	}
	if by := l.By[resource]; by != "" {
		return by
	}
	if l.SandboxID == "" {
		return ""
	}
	if resource != l.SandboxID {
		return l.By[l.SandboxID]
	}
	var holders []string
	for _, by := range l.By {
		if by != "" {
			holders = append(holders, by)
		}
	}
	if len(holders) == 0 {
		return ""
	}
	return slices.Min(holders)
}
