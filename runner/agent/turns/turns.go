// Package turns keeps a scheduled run that may change something apart from every
// other change of the install on this machine. The control plane, which orders these,
// may be away when the run begins, so its locks cannot say it.
//
// Changes of different resources go side by side, as their orders say; a scheduled
// run is of the whole install, and goes alone. It waits for the changes that have
// begun, and those that come wait for it. Who waits too long gives up and says so;
// that is decided by whoever waits.
package turns

import (
	"maps"
	"slices"
	"sync"
)

// Turn is what somebody wants to do.
type Turn struct {
	// What is for people: "apply api".
	What string
	// Alone: nothing else may change the install meanwhile.
	Alone bool
}

// Turns is who changes the install at this moment. Safe for concurrent use.
type Turns struct {
	mu      sync.Mutex
	holders map[string]Turn // by the names of attempts
	changed chan struct{}
}

// New returns turns that nobody has.
func New() *Turns {
	return &Turns{holders: map[string]Turn{}, changed: make(chan struct{})}
}

// Take gives an attempt its turn, and again when it has it. Otherwise busy is what
// has to end first, and changed is closed when it is worth asking again.
func (t *Turns) Take(name string, want Turn) (busy string, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range slices.Sorted(maps.Keys(t.holders)) {
		if has := t.holders[other]; other != name && (want.Alone || has.Alone) {
			return has.What, t.changed
		}
	}
	t.holders[name] = want
	return "", nil
}

// Hold gives a turn to an attempt of an earlier agent, whose engine runs.
func (t *Turns) Hold(name string, has Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holders[name] = has
}

// Leave ends a turn. Without one it does nothing.
func (t *Turns) Leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, has := t.holders[name]; has {
		delete(t.holders, name)
		close(t.changed)
		t.changed = make(chan struct{})
	}
}
