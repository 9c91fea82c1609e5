package schedule

import (
	"maps"
	"sync"
	"time"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Book remembers, on disk, the last tick of each action that was run or told.
// Safe for concurrent use.
type Book struct {
	path string

	mu   sync.Mutex
	last map[string]time.Time
}

// OpenBook reads the book at path; an empty one when there is no file. Next to
// the error of a damaged one it returns an empty book, to go on with once that
// is out of the way.
func OpenBook(path string) (*Book, error) {
	b := &Book{path: path, last: map[string]time.Time{}}
	if _, err := datadir.ReadJSON(path, &b.last); err != nil {
		return &Book{path: path, last: map[string]time.Time{}}, err
	}
	if b.last == nil { // the file says null
		b.last = map[string]time.Time{}
	}
	return b, nil
}

// Last is the last tick of an action. known is false for one that was never
// looked at.
func (b *Book) Last(action string) (last time.Time, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, known = b.last[action]
	return last, known
}

// Advance remembers a tick, and returns once that is on disk. An older one
// changes nothing.
func (b *Book) Advance(action string, tick time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, known := b.last[action]; known && !tick.After(last) {
		return nil
	}
	next := maps.Clone(b.last)
	next[action] = tick.UTC()
	if err := datadir.WriteJSON(b.path, next); err != nil {
		return err // not remembered, so another try writes it again
	}
	b.last = next
	return nil
}
