package httpsig

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrTooMany is returned when a key makes more requests within the window than
// the cache remembers for it. Refusing is the safe side: forgetting a nonce
// would let it be used again.
var ErrTooMany = errors.New("too many signed requests of one key")

// NonceCache remembers the nonces of recent requests, per key, in memory. It
// guards one process; a request sent again to another replica is caught by
// what the request does being idempotent. Safe for concurrent use.
type NonceCache struct {
	window time.Duration
	perKey int

	mu sync.Mutex
	// Nonces live in two generations. Each is at least one window old before
	// it is dropped, as a whole, so forgetting costs nothing per nonce.
	current, previous map[string]map[string]struct{}
	turned            time.Time
}

// NewNonceCache returns a cache for signatures checked with maxSkew. It keeps
// up to perKey nonces of each key per generation (about 100 bytes each).
func NewNonceCache(maxSkew time.Duration, perKey int) *NonceCache {
	return &NonceCache{
		// A signature may be dated maxSkew ahead and is then good for two.
		window:   2 * maxSkew,
		perKey:   perKey,
		current:  map[string]map[string]struct{}{},
		previous: map[string]map[string]struct{}{},
	}
}

// Use records a nonce that Verify accepted. It returns ErrReplay when the key
// used it before, ErrTooMany when the key's share is full. Call it after
// Verify: strangers must not be able to fill the cache.
func (c *NonceCache) Use(p Params, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn(now)
	if _, used := c.previous[p.KeyID][p.Nonce]; used {
		return ErrReplay
	}
	nonces := c.current[p.KeyID]
	if _, used := nonces[p.Nonce]; used {
		return ErrReplay
	}
	if len(nonces) >= c.perKey {
		return fmt.Errorf("%w: %d within %s", ErrTooMany, c.perKey, c.window)
	}
	if nonces == nil {
		nonces = map[string]struct{}{}
		c.current[p.KeyID] = nonces
	}
	nonces[p.Nonce] = struct{}{}
	return nil
}

// turn starts a new generation when the current one is a window old.
func (c *NonceCache) turn(now time.Time) {
	switch age := now.Sub(c.turned); {
	case c.turned.IsZero():
		c.turned = now
	case age > 2*c.window:
		c.current, c.previous = map[string]map[string]struct{}{}, map[string]map[string]struct{}{}
		c.turned = now
	case age > c.window:
		c.current, c.previous = map[string]map[string]struct{}{}, c.current
		c.turned = now
	}
}
