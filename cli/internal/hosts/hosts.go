// Package hosts finds out which hosts answer at all, each once: one deadline for a
// host, whatever number of addresses name it. What a host says does not matter here,
// and neither does a refusal: those who ask it get that at once, in better words.
package hosts

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Deadline is how long a host has to say anything.
const Deadline = 5 * time.Second

// Hosts remembers which hosts answer. The zero value knows none; it is safe for
// several callers at once.
type Hosts struct {
	// Deadline is how long a host has; 0 is the package's.
	Deadline time.Duration

	mu    sync.Mutex
	known map[string]*probe
}

type probe struct {
	once   sync.Once
	silent bool
}

// Silent asks the host of an address, and tells whether it does not answer in time.
// The address is a URL, "user@host:path", "owner/name" of GitHub, or a host. What
// names no host is not silent. All but the first question about a host cost nothing.
func (h *Hosts) Silent(ctx context.Context, address string) (host string, silent bool) {
	u := urlOf(address)
	if u == nil {
		return "", false
	}
	h.mu.Lock()
	if h.known == nil {
		h.known = map[string]*probe{}
	}
	p := h.known[u.String()]
	if p == nil {
		p = &probe{}
		h.known[u.String()] = p
	}
	h.mu.Unlock()
	p.once.Do(func() { p.silent = h.ask(ctx, u) })
	return u.Host, p.silent
}

// ask waits for the first word of a host: of SSH a connection, else an answer to a
// request, over the proxy of the environment where there is one.
func (h *Hosts) ask(ctx context.Context, u *url.URL) bool {
	deadline := h.Deadline
	if deadline == 0 {
		deadline = Deadline
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	if u.Scheme == "ssh" {
		port := u.Port()
		if port == "" {
			port = "22"
		}
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
		if err == nil {
			_ = conn.Close()
		}
		return late(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return false
	}
	client := http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return late(err)
}

// dialer connects to no link-local address: cloud machines get their secrets there.
var dialer = &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Unmap().IsLinkLocalUnicast() {
		return errors.New("is a link-local address")
	}
	return nil
}}

// late tells the end of a deadline from all other errors: those are answers.
func late(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// urlOf is the root of the host that an address names; nil for none.
func urlOf(address string) *url.URL {
	address = strings.TrimPrefix(address, "git::")
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if at := strings.LastIndex(host, "@"); at >= 0 {
			host = host[at+1:]
		}
		switch {
		case host == "" || strings.ContainsAny(host, "{} "):
			return nil
		case scheme == "http", scheme == "ssh":
		case scheme == "https", scheme == "oci":
			scheme = "https"
		default:
			return nil
		}
		return &url.URL{Scheme: scheme, Host: host, Path: "/"}
	}
	if before, _, ok := strings.Cut(address, ":"); ok && strings.Contains(before, "@") {
		_, host, _ := strings.Cut(before, "@")
		return &url.URL{Scheme: "ssh", Host: host, Path: "/"}
	}
	first, rest, slash := strings.Cut(address, "/")
	switch {
	case first == "" || strings.HasPrefix(first, ".") || strings.ContainsAny(address, "{} "):
		return nil
	case strings.ContainsAny(first, ".:"):
		return &url.URL{Scheme: "https", Host: first, Path: "/"}
	case slash && !strings.Contains(rest, "/"):
		return &url.URL{Scheme: "https", Host: "github.com", Path: "/"}
	}
	return nil
}
