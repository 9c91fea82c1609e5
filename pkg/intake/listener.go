package intake

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listener bounds the connections of a server. When all are taken, a new
// connection takes the place of the one that has been without a request for
// longest, where half of a header is no request; when all have one, the new
// connection is closed. So idle connections lock nobody out.
type Listener struct {
	net.Listener
	most int

	mu    sync.Mutex
	conns map[net.Conn]*use
}

// use is what a connection is doing.
type use struct {
	requests int       // that are being handled now
	quiet    time.Time // since when there is none
}

type connKey struct{}

// Limit bounds the connections of a listener; no bound when most is 0. The
// server that serves it must be given to Watch.
func Limit(listener net.Listener, most int) *Listener {
	return &Listener{Listener: listener, most: most, conns: map[net.Conn]*use{}}
}

// Watch sets the hooks of a server by which the listener learns what its
// connections do. Call it when the server's handler is set, before it serves.
func (l *Listener) Watch(server *http.Server) {
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, plain(conn))
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			l.forget(plain(conn))
		}
	}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		l.request(conn, 1)
		defer l.request(conn, -1)
		next.ServeHTTP(w, r)
	})
}

// plain is the connection that Accept returned.
func plain(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.most == 0 || l.admit(conn) {
			return conn, err
		}
		_ = conn.Close()
	}
}

func (l *Listener) admit(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= l.most {
		oldest := l.longestQuiet()
		if oldest == nil {
			return false
		}
		delete(l.conns, oldest)
		_ = oldest.Close() // its server sees that, and ends it
	}
	l.conns[conn] = &use{quiet: time.Now()}
	return true
}

func (l *Listener) longestQuiet() (oldest net.Conn) {
	var since time.Time
	for conn, u := range l.conns {
		if u.requests == 0 && (oldest == nil || u.quiet.Before(since)) {
			oldest, since = conn, u.quiet
		}
	}
	return oldest
}

func (l *Listener) request(conn net.Conn, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.conns[conn]; u != nil { // else its place was taken
		u.requests += more
		u.quiet = time.Now()
	}
}

func (l *Listener) forget(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}
