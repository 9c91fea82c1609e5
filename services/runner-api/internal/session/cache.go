package session

import (
	"container/list"
	"crypto/ed25519"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// TokenHash is how the store knows a token.
type TokenHash [sha256.Size]byte

// Hash returns the hash of a token.
func Hash(token string) TokenHash { return sha256.Sum256([]byte(token)) }

// Session is a live session of a runner, as long as Voided is open. Its fields
// never change.
type Session struct {
	TokenHash TokenHash
	ID        string
	OrgID     string
	RunnerID  string
	InstallID string // empty for a Build Runner
	Kind      model.RunnerKind
	Epoch     int64
	PublicKey ed25519.PublicKey
	// Disputed: another process holds the key. It never changes during a session: a
	// dispute begins with one, and ends with the machine.
	Disputed bool

	voided chan struct{}
	// reported is the switch that the last claim reported.
	reported atomic.Pointer[Reported]
}

// Reported is what a runner says of itself with each claim.
type Reported struct {
	Switch  string
	Reason  string    // of the switch; "" for none
	Since   time.Time // of the switch; zero when the runner does not know
	Problem string    // "" for none
}

// same tells whether nothing moved between two reports.
func (r Reported) same(other Reported) bool {
	return r.Switch == other.Switch && r.Reason == other.Reason && r.Since.Equal(other.Since) && r.Problem == other.Problem
}

// Note remembers what the runner reports, and says whether it is something else
// than before.
func (s *Session) Note(now Reported) (changed bool) {
	before := s.reported.Swap(&now)
	return before == nil || !before.same(now)
}

// ForgetReported makes the next Note report a change.
func (s *Session) ForgetReported() { s.reported.Store(nil) }

// Voided is closed when something happened because of which the session must
// be looked up again: it may be over, or was only forgotten. A held request
// selects on it, which is how revocation cuts it.
func (s *Session) Voided() <-chan struct{} { return s.voided }

// Cache remembers live sessions by the hash of their token, so that a request
// costs no look-up. It holds at most a fixed number and forgets the one that was
// not used for longest. What it says may be a moment behind: whatever writes
// checks the epoch again under the runner's row lock. Safe for concurrent use.
type Cache struct {
	most int

	mu      sync.Mutex
	entries map[TokenHash]*list.Element // of *entry
	order   *list.List                  // most recently used first
	runners map[string]map[TokenHash]struct{}

	// Clock of what was forgotten, to find that a look-up was overtaken.
	clock     uint64
	forgotten map[string]uint64 // by runner
	floor     uint64            // everything before it counts as forgotten
}

type entry struct {
	hash    TokenHash
	session *Session
}

// NewCache returns an empty cache for at most most sessions (about 400 bytes
// each).
func NewCache(most int) *Cache {
	return &Cache{
		most:      most,
		entries:   map[TokenHash]*list.Element{},
		order:     list.New(),
		runners:   map[string]map[TokenHash]struct{}{},
		forgotten: map[string]uint64{},
	}
}

// Get returns the live session of a token. When there is none, look it up and
// hand it to Put together with started.
func (c *Cache) Get(hash TokenHash) (s *Session, started uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[hash]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*entry).session, c.clock
	}
	return nil, c.clock
}

// Put remembers a session that was looked up after Get. It returns false when
// its runner was forgotten in between: what was read may be outdated, so look
// again.
func (c *Cache) Put(hash TokenHash, s *Session, started uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten[s.RunnerID] > started || c.floor > started {
		return false
	}
	if e := c.entries[hash]; e != nil { // another request was faster
		s.voided = e.Value.(*entry).session.voided
		return true
	}
	s.voided = make(chan struct{})
	c.entries[hash] = c.order.PushFront(&entry{hash: hash, session: s})
	if c.runners[s.RunnerID] == nil {
		c.runners[s.RunnerID] = map[TokenHash]struct{}{}
	}
	c.runners[s.RunnerID][hash] = struct{}{}
	for c.order.Len() > c.most {
		c.drop(c.order.Back())
	}
	return true
}

// Forget voids all sessions of a runner: it was revoked, replaced, or opened a
// newer session.
func (c *Cache) Forget(runnerID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(runnerID)
}

// Reconcile forgets the sessions of a runner that are older than its epoch, or
// all of them when the runner is not active. It heals what a lost notification
// left behind.
func (c *Cache) Reconcile(runnerID string, epoch int64, active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash := range c.runners[runnerID] {
		if s := c.entries[hash].Value.(*entry).session; !active || s.Epoch < epoch {
			c.forget(runnerID)
			return
		}
	}
}

// Len returns how many sessions are remembered.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

func (c *Cache) forget(runnerID string) {
	c.clock++
	if len(c.forgotten) >= c.most { // remembering who was forgotten is bounded too
		clear(c.forgotten)
		c.floor = c.clock
	}
	c.forgotten[runnerID] = c.clock
	for hash := range c.runners[runnerID] {
		c.drop(c.entries[hash])
	}
}

func (c *Cache) drop(e *list.Element) {
	gone := c.order.Remove(e).(*entry)
	delete(c.entries, gone.hash)
	of := c.runners[gone.session.RunnerID]
	delete(of, gone.hash)
	if len(of) == 0 {
		delete(c.runners, gone.session.RunnerID)
	}
	close(gone.session.voided)
}
