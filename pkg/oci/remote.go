package oci

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// ErrInsecure is returned, wrapped, when a registry leads away from HTTPS.
var ErrInsecure = errors.New("leads to an address that is not https")

// Remote is a repository of a registry and the way to it.
type Remote struct {
	// Registry is host or host:port, never with a path or credentials.
	Registry string
	// Repository is the path in the registry, such as "<org_id>/<app>/<component>".
	Repository string
	// PlainHTTP speaks HTTP instead of HTTPS. Allowed for loopback only.
	PlainHTTP bool
	// Username chooses how the token is sent. "" sends it as a bearer token
	// with each request, as Berth's own registry wants it. With a name, the
	// registry's challenge is answered: basic, or a token service.
	Username string
	// Token returns the secret. It is called for each request, so it should
	// cache; nil means anonymous. The token is sent to Registry alone.
	Token func(ctx context.Context) (string, error)
	// Login opens the registry of somebody else, in place of Username and Token. It
	// is called whenever the registry asks, so it should cache.
	Login func(ctx context.Context) (Login, error)
	// Client supplies the transport (proxy, CA) and timeouts; nil means
	// http.DefaultClient. Its transport should keep as many idle connections per host
	// as blobs are moved at once. Redirects from HTTPS to HTTP are never followed.
	Client *http.Client
}

func (r Remote) String() string { return r.Registry + "/" + r.Repository }

// Validate tells what is wrong before anything is sent.
func (r Remote) Validate() error {
	ref := registry.Reference{Registry: r.Registry, Repository: r.Repository}
	if err := errors.Join(ref.ValidateRegistry(), ref.ValidateRepository()); err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if strings.ContainsAny(r.Registry, "@/?#") {
		return errors.New("registry: must be host or host:port")
	}
	if r.PlainHTTP && !isLoopback(r.Registry) {
		return fmt.Errorf("registry %s: plain HTTP is allowed for loopback only", r.Registry)
	}
	return nil
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// open makes the oras client; it sends nothing yet.
func (r Remote) open() (*remote.Repository, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	repo := &remote.Repository{
		Client:    r.client(),
		Reference: registry.Reference{Registry: r.Registry, Repository: r.Repository},
		PlainHTTP: r.PlainHTTP,
	}
	return repo, nil
}

func (r Remote) client() remote.Client {
	base := r.Client
	if base == nil {
		base = http.DefaultClient
	}
	client := *base
	client.CheckRedirect = refuseDowngrade(base.CheckRedirect)
	transport := base.Transport
	if transport == nil {
		transport = sharedTransport()
	}
	switch {
	case r.Login != nil:
		client.Transport = retry.NewTransport(&within{remote: r, next: transport})
		return r.loginClient(&client)
	case r.Token == nil:
		// Also to those without an account, many registries give tokens.
		client.Transport = retry.NewTransport(&within{remote: r, next: transport})
		return &auth.Client{Client: &client, Cache: auth.NewCache()}
	case r.Username == "":
		client.Transport = retry.NewTransport(&bearer{remote: r, next: transport})
		return &client
	}
	client.Transport = retry.NewTransport(transport)
	return &auth.Client{
		Client: &client,
		Cache:  auth.NewCache(),
		Credential: func(ctx context.Context, hostport string) (auth.Credential, error) {
			if hostport != r.Registry {
				return auth.EmptyCredential, nil
			}
			token, err := r.Token(ctx)
			return auth.Credential{Username: r.Username, Password: token}, err
		},
	}
}

// sharedTransport is that of net/http, but keeps a connection for each blob under
// way: two per host would have the others dial again and again.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	own := base.Clone()
	own.MaxIdleConnsPerHost = 2 * defaultConcurrency
	return own
})

// within keeps to HTTPS: the registry chooses where its token service is. It does
// not wait for a registry that asks for more than a moment.
type within struct {
	remote Remote
	next   http.RoundTripper
}

func (w *within) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !(w.remote.PlainHTTP && isLoopback(req.URL.Host)) {
		if req.Body != nil {
			req.Body.Close() // a RoundTripper always closes it
		}
		return nil, fmt.Errorf("registry %s: %w", w.remote.Registry, ErrInsecure)
	}
	res, err := w.next.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusTooManyRequests {
		return res, err
	}
	if after := retryAfter(res); after > maxPatience {
		res.Body.Close()
		return nil, &RateLimitError{After: after}
	}
	return res, nil
}

// bearer adds the token to requests for the registry itself, and to no other
// host that a redirect may lead to.
type bearer struct {
	remote Remote
	next   http.RoundTripper
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != b.remote.Registry || (req.URL.Scheme != "https" && !b.remote.PlainHTTP) {
		return b.next.RoundTrip(req)
	}
	token, err := b.remote.Token(req.Context())
	if err != nil {
		if req.Body != nil {
			req.Body.Close() // a RoundTripper always closes it
		}
		return nil, fmt.Errorf("registry token: %w", err)
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(req)
}

// maxRedirects is what net/http allows by itself.
const maxRedirects = 10

func refuseDowngrade(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
			return ErrInsecure
		}
		if next != nil {
			return next(req, via)
		}
		if len(via) >= maxRedirects {
			return errors.New("too many redirects")
		}
		return nil
	}
}
