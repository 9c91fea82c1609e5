package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// Login is what a registry of somebody else gives access for. One of the three
// ways is used: a user name with a password, AccessToken or IdentityToken.
type Login struct {
	// Username and Password answer a challenge for basic authentication. Where the
	// registry has a token service, they buy a token there.
	Username, Password string
	// AccessToken is sent as a bearer token as it is.
	AccessToken string
	// IdentityToken, also called refresh token, buys access tokens at the registry's
	// token service, by OAuth 2.
	IdentityToken string
}

// loginClient answers the registry's challenges, and no other host's.
func (r Remote) loginClient(client *http.Client) *auth.Client {
	host := registry.Reference{Registry: r.Registry}.Host() // that of docker.io is another one
	return &auth.Client{
		Client: client,
		Cache:  auth.NewCache(),
		Credential: func(ctx context.Context, asked string) (auth.Credential, error) {
			if asked != host && asked != r.Registry {
				return auth.EmptyCredential, nil
			}
			l, err := r.Login(ctx)
			return auth.Credential{Username: l.Username, Password: l.Password, AccessToken: l.AccessToken, RefreshToken: l.IdentityToken}, err
		},
	}
}

// maxPatience is how long a registry may ask to wait within a request.
const maxPatience = 5 * time.Second

// RateLimitError is the answer of a registry that allows no more requests now.
type RateLimitError struct {
	// After is when it allows some again, zero when it did not say.
	After time.Duration
}

func (e *RateLimitError) Error() string {
	if e.After == 0 {
		return "the registry allows no more requests now"
	}
	return fmt.Sprintf("the registry allows no more requests for %s", e.After)
}

// RateLimited tells whether a registry allows no more requests now, and for how
// long, zero when it did not say.
func RateLimited(err error) (after time.Duration, limited bool) {
	if e, ok := errors.AsType[*RateLimitError](err); ok {
		return e.After, true
	}
	answer, ok := errors.AsType[*errcode.ErrorResponse](err)
	return 0, ok && answer.StatusCode == http.StatusTooManyRequests
}

// retryAfter reads how long to wait: seconds, or a date.
func retryAfter(res *http.Response) time.Duration {
	text := res.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at).Round(time.Second))
	}
	return 0
}
