package keyring

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/cloudauth"
	"github.com/berth-dev/berth/pkg/oci"
)

// Key opens an address to an org.
type Key struct {
	ring    *Ring
	entry   entry
	name    string // its key of the file
	org     string
	address string
	want    ECR
}

// ECR is what an app folder says about a registry of AWS.
type ECR struct {
	Region     string `json:"region,omitempty"`
	IAMRoleARN string `json:"iam_role_arn,omitempty"`
}

// Name is the key of the file, for people.
func (k Key) Name() string { return k.name }

// ForECR tells whether the key is made by AWS.
func (k Key) ForECR() bool { return k.entry.Helper == helperECR }

// With adds what the app folder says.
func (k Key) With(want ECR) Key {
	k.want = want
	return k
}

// Basic is a user name and a password; ok is false for a key of another kind.
func (k Key) Basic() (username, password string, ok bool) {
	return k.entry.Username, k.entry.Password, k.entry.Username != ""
}

// Ended tells whether the key is a token that says itself when it ends, and has.
func (k Key) Ended() (ended bool, until time.Time) {
	if k.ring == nil {
		return false, time.Time{}
	}
	until = cloudauth.Expiry(k.entry.Token + k.entry.IdentityToken) // one of them is ""
	return !until.IsZero() && !k.ring.clouds.now().Before(until), until
}

// Error is why a cloud made no key, for people: it names neither the key nor a part
// of it.
type Error struct {
	// Transient: the same may work later.
	Transient bool
	text      string
	cause     error
}

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.cause }

func refuse(format string, args ...any) *Error { return &Error{text: fmt.Sprintf(format, args...)} }

// Login is what the registry takes. What a cloud made is used until shortly before
// it ends. Errors are *Error, or that of ctx.
func (k Key) Login(ctx context.Context) (oci.Login, error) {
	switch {
	case k.entry.Helper == "":
		return oci.Login{
			Username: k.entry.Username, Password: k.entry.Password, AccessToken: k.entry.Token, IdentityToken: k.entry.IdentityToken,
		}, nil
	case k.ring == nil:
		return oci.Login{}, errors.New("keyring: key of no ring")
	}
	host := k.host()
	ask, id := k.ring.clouds.google, k.name
	switch k.entry.Helper {
	case helperECR:
		// Who may name a role gets what that role may read, and no other's.
		ask, id = k.ring.clouds.ecr, fmt.Sprintf("%q", []string{k.name, host, k.org, k.want.Region, k.want.IAMRoleARN})
	case helperAzure:
		ask, id = k.ring.clouds.azure, fmt.Sprintf("%q", []string{k.name, host})
	}
	return k.ring.cached(ctx, id, func(ctx context.Context) (oci.Login, time.Time, error) { return ask(ctx, k) })
}

func (k Key) host() string {
	u, err := url.Parse(k.address)
	if err != nil {
		return ""
	}
	return u.Host
}

// made is a key of a cloud.
type made struct {
	mu    sync.Mutex
	login oci.Login
	until time.Time
}

const (
	// maxMade bounds the keys that are remembered: app folders choose roles.
	maxMade = 1000

	// reserve is left of a key's life when it is used: a question to a registry, and
	// the first of a copy's.
	reserve = 2 * time.Minute
)

// cached asks for a key, one at a time for each id, unless there is one that lasts.
func (r *Ring) cached(ctx context.Context, id string, ask func(context.Context) (oci.Login, time.Time, error)) (oci.Login, error) {
	r.mu.Lock()
	m := r.made[id]
	if m == nil {
		if len(r.made) >= maxMade {
			clear(r.made)
		}
		m = &made{}
		r.made[id] = m
	}
	r.mu.Unlock()

	m.mu.Lock()
	defer m.mu.Unlock()
	if r.clouds.now().Add(reserve).Before(m.until) {
		return m.login, nil
	}
	ctx, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	login, until, err := ask(ctx)
	if err != nil {
		return oci.Login{}, err
	}
	m.login, m.until = login, until
	return login, nil
}
