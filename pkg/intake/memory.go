package intake

import "sync"

// Memory bounds the bytes of bodies that a process holds at once. It counts
// bodies as they were sent; decoding one takes a few times as much.
//
// A nil Memory has no bounds.
type Memory struct {
	total, share int64

	mu      sync.Mutex
	inUse   int64
	holders map[string]int64
}

// NewMemory bounds all bodies together by total bytes, and those of one holder
// by share.
func NewMemory(total, share int64) *Memory {
	return &Memory{total: total, share: share, holders: map[string]int64{}}
}

// InUse is how many bytes are held now.
func (m *Memory) InUse() int64 {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inUse
}

// fits reports whether there is room for n more bytes now. It takes nothing: a
// peer that only announces a body holds no memory.
func (m *Memory) fits(holder string, n int64) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.room(holder, n)
}

func (m *Memory) take(holder string, n int64) bool {
	if m == nil || n == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.room(holder, n) {
		return false
	}
	m.inUse += n
	m.holders[holder] += n
	return true
}

func (m *Memory) room(holder string, n int64) bool {
	return m.inUse+n <= m.total && m.holders[holder]+n <= m.share
}

func (m *Memory) give(holder string, n int64) {
	if m == nil || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inUse -= n
	if m.holders[holder] -= n; m.holders[holder] == 0 {
		delete(m.holders, holder)
	}
}
