package registry

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

const codeUnauthorized = "UNAUTHORIZED"

// Guard lets nobody pull who does not show the token. Only whether there is a
// registry at all is no secret: the probe of its container asks for that.
func Guard(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(want[:], got[:]) != 1 && r.URL.Path != "/v2/" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="berth"`)
			refuse(w, http.StatusUnauthorized, codeUnauthorized, "this registry answers its relays alone; pull from 127.0.0.1 on a node")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Relay passes pulls on to a guarded registry at HOST:PORT, with its token. Who
// reaches the relay needs none, so it belongs on a loopback address.
func Relay(to, token string, log *slog.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: to})
			p.Out.Header.Set("Authorization", "Bearer "+token)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.WarnContext(r.Context(), "registry cannot be reached", "to", to, "err", err)
			refuse(w, http.StatusBadGateway, codeUnknown, "the install's registry cannot be reached")
		},
		// The way to the registry is inside the cluster, never through a proxy.
		Transport: &http.Transport{MaxIdleConnsPerHost: 16, DialContext: (&lastAddress{}).dial},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, codeUnsupported, "this registry only gives out")
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// lastAddress remembers where a name led: the address of a Service stays, and
// pods must start also while no name can be looked up. Safe for concurrent use.
type lastAddress struct {
	dialer net.Dialer
	last   atomic.Pointer[string]
}

func (l *lastAddress) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.dialer.DialContext(ctx, network, address)
	if err == nil {
		l.last.Store(new(conn.RemoteAddr().String()))
		return conn, nil
	}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		if last := l.last.Load(); last != nil {
			return l.dialer.DialContext(ctx, network, *last)
		}
	}
	return nil, err
}
