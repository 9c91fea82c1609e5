package order

import (
	"fmt"
	"maps"
	"sync"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Fences remembers, on disk, the highest fence that was seen for each resource.
// Safe for concurrent use.
type Fences struct {
	path string

	mu      sync.Mutex
	highest map[string]int64
}

// OpenFences reads the fences at path; none when there is no file.
func OpenFences(path string) (*Fences, error) {
	f := &Fences{path: path, highest: map[string]int64{}}
	if _, err := datadir.ReadJSON(path, &f.highest); err != nil {
		return nil, err
	}
	if f.highest == nil { // the file says null
		return nil, fmt.Errorf("%s: holds no fences", path)
	}
	return f, nil
}

// Highest is the highest fence seen for a resource, 0 when none was.
func (f *Fences) Highest(resource string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.highest[resource]
}

// Raise remembers a fence, and returns once that is on disk.
func (f *Fences) Raise(resource string, fence int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fence <= f.highest[resource] {
		return nil
	}
	next := maps.Clone(f.highest)
	next[resource] = fence
	if err := datadir.WriteJSON(f.path, next); err != nil {
		return err // not remembered, so another try writes it again
	}
	f.highest = next
	return nil
}
