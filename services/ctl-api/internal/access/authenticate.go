package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
)

const (
	// cacheTTL bounds how long a revoked token still works when the
	// notification of its revocation was lost.
	cacheTTL = 3 * time.Second
	// maxCached bounds the memory of the cache; when it is full it starts over.
	maxCached = 10_000
)

// Authenticator turns tokens into principals. It is safe for concurrent use.
type Authenticator struct {
	store *database.Store
	now   func() time.Time

	mu     sync.Mutex
	cached map[[sha256.Size]byte]cachedPrincipal
}

type cachedPrincipal struct {
	auth.Principal
	until time.Time
}

// NewAuthenticator makes an authenticator. now may be nil.
func NewAuthenticator(st *database.Store, now func() time.Time) *Authenticator {
	if now == nil {
		now = time.Now
	}
	return &Authenticator{store: st, now: now, cached: map[[sha256.Size]byte]cachedPrincipal{}}
}

// Authenticate answers who holds the token, or the session of a browser. All that are
// not good get the same answer.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	session := auth.WellFormed(auth.BrowserPrefix, token)
	if !session && !auth.WellFormed(auth.TokenPrefix, token) {
		return auth.Principal{}, auth.ErrBadToken
	}
	p, err := a.authenticate(ctx, token)
	if session && errors.Is(err, auth.ErrBadToken) {
		err = auth.ErrSessionEnded
	}
	return p, err
}

func (a *Authenticator) authenticate(ctx context.Context, token string) (auth.Principal, error) {
	hash := [sha256.Size]byte(auth.Hash(token))
	if p, ok := a.fromCache(hash); ok {
		return p, nil
	}
	p, expires, err := a.fromStore(ctx, hash[:])
	if err != nil {
		return auth.Principal{}, err
	}
	until := a.now().Add(cacheTTL)
	if expires != nil && expires.Before(until) {
		until = *expires
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cached) >= maxCached {
		clear(a.cached)
	}
	a.cached[hash] = cachedPrincipal{Principal: p, until: until}
	return p, nil
}

// Revoked drops from the cache a token, or all of an account's tokens. It
// does not block.
func (a *Authenticator) Revoked(ref string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for hash, p := range a.cached {
		if p.TokenID == ref || p.AccountID == ref {
			delete(a.cached, hash)
		}
	}
}

func (a *Authenticator) fromCache(hash [sha256.Size]byte) (auth.Principal, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.cached[hash]
	if !ok || !a.now().Before(c.until) {
		return auth.Principal{}, false
	}
	return c.Principal, true
}

func (a *Authenticator) fromStore(ctx context.Context, hash []byte) (p auth.Principal, expires *time.Time, err error) {
	org, err := auth.OrgOfToken(ctx, a.store.Store, hash)
	if err != nil {
		return p, nil, err
	}
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		if p, expires, err = auth.User(ctx, tx.Tx, hash); err != nil {
			return err
		}
		return tx.TouchToken(ctx, p.TokenID)
	})
	return p, expires, err
}
