package modulefetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	gitclient "github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/berth-dev/berth/pkg/modulekeys"
)

const (
	maxAnswer    = 512 << 20 // bytes of one answer
	maxRedirects = 5
)

var (
	errSecrets   = errors.New("it leads to an address where cloud machines get their secrets")
	errLoopback  = errors.New("it leads to the Build Runner's own machine")
	errNotHTTPS  = errors.New("it leads to an address that is not https")
	errElsewhere = errors.New("the server redirects to another host: name that one")
)

// session is what the requests of one build may use and have met. It travels in their
// context, because go-git has one client for the whole process.
type session struct {
	keys modulekeys.Keys

	mu sync.Mutex
	// refused is the last answer that asked for credentials.
	refused *refusal
}

// refusal is an answer 401, 403 or 404.
type refusal struct {
	status int
	key    string // entry that was used, "" for none
}

type (
	sessionKey struct{}
	gitKey     struct{}
)

func sessionOf(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	if s == nil {
		return &session{}
	}
	return s
}

func (s *session) met(status int, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = nil
	if status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound {
		s.refused = &refusal{status, key}
	}
}

func (s *session) last() *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// shared is the client of all fetches of this process, go-git's too.
var shared = sync.OnceValue(func() *http.Client {
	c := newClient()
	gitclient.InstallProtocol("https", githttp.NewClient(c))
	gitclient.InstallProtocol("http", githttp.NewClient(c))
	return c
})

func newClient() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{Transport: signing{transport}, CheckRedirect: func(to *http.Request, before []*http.Request) error {
		switch {
		case len(before) > maxRedirects:
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		case to.URL.User != nil:
			return errNotHTTPS
		case to.Context().Value(gitKey{}) != nil && !sameOrigin(to.URL, before[0].URL):
			return errElsewhere // go-git would ask that host for all the rest
		}
		to.Header.Del("Referer") // the address before may be signed
		return nil
	}}
}

// dial refuses addresses that no module is at, after their names are resolved. A
// connection is for one build: its session says which hosts the operator named.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	keys := sessionOf(ctx).keys
	named := keys.Names("http", address) || keys.Names("https", address) || isProxy(address)
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		return checkIP(at.Addr().Unmap(), named)
	}}
	return dialer.DialContext(ctx, network, address)
}

// ofClouds are addresses besides the link-local ones that give machines their secrets.
var ofClouds = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}

func checkIP(ip netip.Addr, named bool) error {
	switch {
	case ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || slices.Contains(ofClouds, ip):
		return errSecrets
	case (ip.IsLoopback() || ip.IsUnspecified()) && !named:
		return errLoopback
	}
	return nil
}

// isProxy tells whether the operator's environment names the address as a proxy.
func isProxy(address string) bool {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if u, err := url.Parse(os.Getenv(name)); err == nil && u.Host == address {
			return true
		}
	}
	return false
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// signing adds the credentials of an address to each request for it, and to no other.
type signing struct{ next http.RoundTripper }

func (t signing) RoundTrip(req *http.Request) (*http.Response, error) {
	s := sessionOf(req.Context())
	if req.URL.Scheme != "https" && !(req.URL.Scheme == "http" && s.keys.Names("http", req.URL.Host)) {
		return nil, errNotHTTPS
	}
	// A proxy would resolve these for us.
	if ip, err := netip.ParseAddr(req.URL.Hostname()); err == nil {
		if err := checkIP(ip.Unmap(), s.keys.Names(req.URL.Scheme, req.URL.Host)); err != nil {
			return nil, err
		}
	}
	out := req.Clone(req.Context())
	out.Header.Del("Authorization")
	entry := ""
	if name, key, ok := s.keys.Find(req.URL); ok && !redirectedFromElsewhere(req) {
		entry = name
		key.Sign(out)
	}
	res, err := t.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	s.met(res.StatusCode, entry)
	res.Body = &boundedBody{ReadCloser: res.Body, left: maxAnswer}
	return res, nil
}

// redirectedFromElsewhere tells whether another host sent us to this one: its word does
// not open what an entry opens.
func redirectedFromElsewhere(req *http.Request) bool {
	for r := req; r.Response != nil && r.Response.Request != nil; r = r.Response.Request {
		if !sameOrigin(r.Response.Request.URL, req.URL) {
			return true
		}
	}
	return false
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server answers with more than %d MiB", maxAnswer>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
