package schedule

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Book remembers, on disk, the last tick of each action that was run or told, and
// since when it has its present schedule. Safe for concurrent use.
type Book struct {
	path string

	mu   sync.Mutex
	last map[string]time.Time // by action, and by action and schedule: see since
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

// Advance remembers a tick, and returns once that is on disk. An older one
// changes nothing.
func (b *Book) Advance(action string, tick time.Time) error {
	return b.AdvanceAll(map[string]time.Time{action: tick})
}

// AdvanceAll is Advance for a tick of each of several actions, in one write.
func (b *Book) AdvanceAll(ticks map[string]time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, newer := maps.Clone(b.last), false
	for action, tick := range ticks {
		if last, known := b.last[action]; !known || tick.After(last) {
			next[action], newer = tick.UTC(), true
		}
	}
	if !newer {
		return nil
	}
	return b.write(next)
}

// since is where the book keeps when an action got a schedule. No name has a tab.
func since(action, cron string) string { return action + "\t" + cron }

// Begin returns the time after which the ticks of an action count: the last one, or
// when it got its present schedule. The ticks that this schedule had before then are
// nobody's.
func (b *Book) Begin(action, cron string, now time.Time) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.last[action]
	if began, known := b.last[since(action, cron)]; known {
		if began.After(last) {
			return began, nil
		}
		return last, nil
	}
	next := maps.Clone(b.last)
	maps.DeleteFunc(next, func(key string, _ time.Time) bool { return strings.HasPrefix(key, action+"\t") })
	begins := now.UTC()
	if _, known := b.last[action]; known && len(next) == len(b.last) {
		begins = last // a runner of before noted no schedules
	}
	next[since(action, cron)] = begins
	return begins, b.write(next)
}

// Last is the last tick of an action that was run or told, zero for none.
func (b *Book) Last(action string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[action]
}

// Retain forgets the actions that have no schedule any more. One that gets a schedule
// again begins then.
func (b *Book) Retain(scheduled func(action string) bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := maps.Clone(b.last)
	maps.DeleteFunc(next, func(key string, _ time.Time) bool {
		action, _, _ := strings.Cut(key, "\t")
		return !scheduled(action)
	})
	if len(next) == len(b.last) {
		return nil
	}
	return b.write(next)
}

// write stores a new content; one that is not stored is not remembered, so another
// try writes it again.
func (b *Book) write(next map[string]time.Time) error {
	if err := datadir.WriteJSON(b.path, next); err != nil {
		return err
	}
	b.last = next
	return nil
}
