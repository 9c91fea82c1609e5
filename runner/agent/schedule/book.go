package schedule

import (
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

// OpenBook reads the book at path; an empty one when there is no file.
func OpenBook(path string) (*Book, error) {
	b := &Book{path: path, last: map[string]time.Time{}}
	_, err := datadir.ReadJSON(path, &b.last)
	return b, err
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
	b.last[action] = tick.UTC()
	return datadir.WriteJSON(b.path, b.last)
}
