package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/oci"
)

// TokenPrefix lets people and secret scanners recognise a registry token.
const TokenPrefix = "brg_"

// tokenBytes of randomness make guessing hopeless, so that a plain hash is
// enough to store them.
const tokenBytes = 32

// NewToken makes a token, to be shown once, and the hash to store.
func NewToken() (token string, hash []byte) {
	var secret [tokenBytes]byte
	rand.Read(secret[:]) // never fails, says crypto/rand
	token = TokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	return token, HashToken(token)
}

// HashToken is what the store keeps and is asked for.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// Action is what a token may do.
type Action string

// The actions of registry_tokens.actions.
const (
	ActionPull   Action = "pull"
	ActionPush   Action = "push"
	ActionDelete Action = "delete" // of what was pushed; the builder's, not a runner's
)

// Grant is what stands behind a token.
type Grant struct {
	OrgID    string // repositories "<OrgID>/…" and no others
	RunnerID string // whose token it is; "" for the builder's own
	Actions  []Action
	// RepositoryPrefix narrows the grant to one repository and those below it,
	// "<OrgID>/apps/…" in whole path components. "" means all of the org.
	RepositoryPrefix string
	ExpiresAt        time.Time // the zero time means never
	RevokedAt        time.Time // the zero time means not
}

type decision int

const (
	hidden decision = iota // must look as if the repository did not exist
	denied                 // may know of it, but not do this
	allowed
)

// decide is the whole access rule.
func (g Grant) decide(repository string, action Action) decision {
	if g.OrgID == "" || !below(repository, g.OrgID) || repository == g.OrgID {
		return hidden
	}
	if prefix := strings.TrimSuffix(g.RepositoryPrefix, "/"); prefix != "" && !below(repository, prefix) {
		return hidden
	}
	if oci.IsCacheRepository(repository) && !g.fillsCaches() {
		return hidden
	}
	if !slices.Contains(g.Actions, action) {
		return denied
	}
	return allowed
}

// fillsCaches: the cache of a build has every stage of it, sources and all, and
// decides what the next build is made of. It is for those alone whose builds fill
// it: only Build Runners and builder get tokens that push. Runners of installs and
// people pull.
func (g Grant) fillsCaches() bool { return slices.Contains(g.Actions, ActionPush) }

func below(repository, prefix string) bool {
	rest, ok := strings.CutPrefix(repository, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// Authenticator finds the grant of a secret that a client sent as a basic
// password or a bearer token. ErrUnauthenticated means that it is none; any
// other error means that nobody knows now, and the client may try again.
type Authenticator interface {
	Authenticate(ctx context.Context, secret string) (Grant, error)
}

// ErrUnauthenticated says that a secret gives access to nothing (any more).
var ErrUnauthenticated = errors.New("registry token is not valid")

// TokenLookup is the store of tokens. ErrUnauthenticated, possibly wrapped,
// means that no token has the hash.
type TokenLookup interface {
	LookupRegistryToken(ctx context.Context, hash []byte) (Grant, error)
}

// Tokens authenticates brg_ tokens. It asks the store each time: a revoked
// token is refused from then on.
type Tokens struct {
	lookup TokenLookup
	now    func() time.Time
}

// NewTokens makes the authenticator; now is time.Now but for tests.
func NewTokens(lookup TokenLookup, now func() time.Time) *Tokens {
	return &Tokens{lookup: lookup, now: now}
}

// Authenticate implements [Authenticator].
func (t *Tokens) Authenticate(ctx context.Context, secret string) (Grant, error) {
	if !strings.HasPrefix(secret, TokenPrefix) {
		return Grant{}, ErrUnauthenticated
	}
	grant, err := t.lookup.LookupRegistryToken(ctx, HashToken(secret))
	if err != nil {
		return Grant{}, err
	}
	if !grant.RevokedAt.IsZero() || (!grant.ExpiresAt.IsZero() && !t.now().Before(grant.ExpiresAt)) {
		return Grant{}, ErrUnauthenticated
	}
	return grant, nil
}
