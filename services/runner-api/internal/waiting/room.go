// Package waiting is where requests wait for rows to change without asking the
// database. A waiter enters, looks at the rows, and waits; a wake-up that comes
// at any time after it entered is not lost. What a look has found (nothing) is
// remembered until the next wake-up, so that a request which comes back to wait
// on costs no statement.
package waiting

import "sync"

// Room holds the waiters of one kind of news, by key (a runner's id). The zero
// value is not ready; use NewRoom. Safe for concurrent use.
type Room struct {
	mu     sync.Mutex
	places map[string]*place
}

// place is what we know about one key. About a key without a place we know
// nothing, so its waiters must look.
type place struct {
	wakes   uint64 // counts wake-ups
	nothing bool   // a look after the last wake-up has found nothing…
	beyond  int64  // …newer than this
	waiters map[*Waiter]struct{}
}

// Waiter is one request in a room.
type Waiter struct {
	// C gets at most one pending wake-up.
	C chan struct{}

	room  *Room
	key   string
	place *place
}

// NewRoom returns an empty room.
func NewRoom() *Room { return &Room{places: map[string]*place{}} }

// Enter begins to listen for key. Leave must be called.
func (r *Room) Enter(key string) *Waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.places[key]
	if p == nil {
		p = &place{waiters: map[*Waiter]struct{}{}}
		r.places[key] = p
	}
	w := &Waiter{C: make(chan struct{}, 1), room: r, key: key, place: p}
	p.waiters[w] = struct{}{}
	return w
}

// Look says whether the caller must read the rows for anything newer than
// beyond (0 where news have no number). Give seen to Nothing after a look in
// vain.
func (w *Waiter) Look(beyond int64) (seen uint64, needed bool) {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	return w.place.wakes, !w.place.nothing || beyond < w.place.beyond
}

// Nothing records that a look found nothing newer than beyond, unless there
// was a wake-up since that look began.
func (w *Waiter) Nothing(seen uint64, beyond int64) {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	if w.place.wakes == seen {
		w.place.nothing, w.place.beyond = true, beyond
	}
}

// Leave ends the waiting.
func (w *Waiter) Leave() {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	delete(w.place.waiters, w)
	w.room.tidy(w.key, w.place)
}

// Wake says that there may be news for key: all its waiters look, and so does
// the next one to come.
func (r *Room) Wake(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.places[key]; p != nil {
		r.wake(key, p)
	}
}

// WakeBeyond is Wake for news with this number: nothing happens when a look has
// gone that far already.
func (r *Room) WakeBeyond(key string, number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.places[key]; p != nil && p.nothing && number > p.beyond {
		r.wake(key, p)
	}
}

func (r *Room) wake(key string, p *place) {
	p.wakes++
	p.nothing = false
	for w := range p.waiters {
		select {
		case w.C <- struct{}{}:
		default: // one wake-up is already waiting
		}
	}
	r.tidy(key, p)
}

// tidy drops a place of which nothing is known and in which nobody waits.
func (r *Room) tidy(key string, p *place) {
	if len(p.waiters) == 0 && !p.nothing {
		delete(r.places, key)
	}
}
