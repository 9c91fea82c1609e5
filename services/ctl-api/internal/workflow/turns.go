package workflow

import (
	"context"
	"sync"
)

// turns lets one Advance of a workflow work at a time, one more wait for it, and has
// no more than these two: the one that waits looks at the workflow after everything that
// happened until then, so a wake-up that comes meanwhile has nothing to add.
//
// Without it, each wake-up of a busy workflow would hold a database connection and
// wait for the workflow's row, behind every move of the others; each result of a job
// of a large deploy then waits for many looks that find nothing. Between processes
// the row's lock still decides; nothing depends on this but speed.
//
// The zero value is ready for use.
type turns struct {
	mu sync.Mutex
	// next is who waits behind the one who works, by workflow: closed when it is its
	// turn, nil while nobody waits. A workflow that nobody works on is not in it.
	next map[string]chan struct{}
}

// take waits for the caller's turn. mine is false when somebody else who waits
// covers the caller, who has nothing to do then: if that one fails, it is tried
// again, as its own wake-up is. With mine, the caller gives the turn back.
func (t *turns) take(ctx context.Context, workflowID string) (mine bool, err error) {
	t.mu.Lock()
	waits, busy := t.next[workflowID]
	switch {
	case !busy:
		if t.next == nil {
			t.next = map[string]chan struct{}{}
		}
		t.next[workflowID] = nil
		t.mu.Unlock()
		return true, nil
	case waits != nil:
		t.mu.Unlock()
		return false, nil
	}
	turn := make(chan struct{})
	t.next[workflowID] = turn
	t.mu.Unlock()
	select {
	case <-turn:
		return true, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn: // it came at the same moment
		return true, nil
	default:
	}
	t.next[workflowID] = nil // the place behind the one who works is free
	return false, context.Cause(ctx)
}

// give ends a turn.
func (t *turns) give(workflowID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waits := t.next[workflowID]
	if waits == nil {
		delete(t.next, workflowID)
		return
	}
	t.next[workflowID] = nil
	close(waits)
}
