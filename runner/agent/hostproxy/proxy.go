// Package hostproxy is the only way out of a plugin that may reach certain hosts. The
// plugin is in a network namespace that has nothing but its own loopback; its engine
// leads connections from there to the Unix socket of a Proxy, which is the agent's:
//
//	plugin ─▶ 127.0.0.1 of the namespace ─▶ engine ─▶ in/hosts.sock ─▶ Proxy ─▶ host
//
// It speaks HTTP (CONNECT, and requests for http://). It finds the addresses of names
// itself, connects to granted hosts only, and to no address by which a name could lead
// to this machine, and tells of every connection. What is in a connection it does not
// look at: for HTTPS it could not.
package hostproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/plugin/grant"
	"github.com/berth-dev/berth/pkg/reach"
)

const (
	// maxConnections is how many connections a plugin has at a time; more wait.
	maxConnections = 64
	// idleTime ends a connection on which nothing moves.
	idleTime = 5 * time.Minute
	// headerTime is how long a plugin may take to say where it wants to go.
	headerTime = 10 * time.Second
	// dialTime is how long one address may take to answer.
	dialTime = 10 * time.Second
	// maxHeaders bounds what a plugin says to the proxy, and maxTarget the host in it, in
	// bytes: the log shows the host.
	maxHeaders = 64 << 10
	maxTarget  = 300
	// maxLines is how many lines are logged; after them only a count is.
	maxLines = 2000
)

// Config is what a Proxy needs.
type Config struct {
	Hosts grant.Hosts
	// Tell takes one line for people. It may be called at any time until Serve returns.
	Tell func(line string)
	// Resolve finds the addresses of a name; nil for the machine's own way.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// IdleTime is in place of five minutes when it is not 0.
	IdleTime time.Duration
}

// Proxy is the way out of one plugin's job.
type Proxy struct {
	config  Config
	forward *httputil.ReverseProxy

	mu             sync.Mutex
	open           map[*connection]bool
	over           bool // nothing is opened any more
	told           bool // and nothing told
	lines          int
	untold         int   // lines over maxLines
	sent, received int64 // bytes of all connections
	serving        sync.WaitGroup
}

// New returns a proxy that serves nobody yet.
func New(config Config) *Proxy {
	if config.Resolve == nil {
		config.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if config.IdleTime == 0 {
		config.IdleTime = idleTime
	}
	p := &Proxy{config: config, open: map[*connection]bool{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, // as it came, without what is meant for us
		Transport: &http.Transport{
			// Each request has a connection of its own, so that each is logged.
			DisableKeepAlives: true, DisableCompression: true,
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return p.connect(ctx, address) },
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { answer(w, err) },
	}
	return p
}

// Serve serves a listener until ctx ends, and closes it. When it returns, every
// connection is closed and told of.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: p, ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeaders, IdleTimeout: p.config.IdleTime}
	stop := context.AfterFunc(ctx, func() {
		_ = server.Close()
		p.closeAll()
	})
	defer stop()
	err := server.Serve(limited(l, maxConnections))
	p.closeAll()
	p.serving.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = true
	if p.untold > 0 {
		p.config.Tell(fmt.Sprintf("network: %d more lines are left out; in all %d bytes were sent and %d received", p.untold, p.sent, p.received))
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return
	}
	p.serving.Add(1)
	p.mu.Unlock()
	defer p.serving.Done()
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is a plugin's way out: it takes CONNECT, and requests for http://", http.StatusBadRequest)
	}
}

// refusal is why a connection is not made, by a rule.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

func answer(w http.ResponseWriter, err error) {
	if r, is := errors.AsType[*refusal](err); is {
		http.Error(w, r.why, http.StatusForbidden)
		return
	}
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// connect connects to "HOST:PORT" if that is granted, and tells of it either way.
func (p *Proxy) connect(ctx context.Context, target string) (*connection, error) {
	conn, err := p.dial(ctx, target)
	if err != nil {
		what, shown := "no connection", strconv.Quote(target)
		if _, is := errors.AsType[*refusal](err); is {
			what = "refused"
		}
		if len(target) > maxTarget { // not cut: a part of a secret is not recognised
			shown = fmt.Sprintf("a host of %d bytes", len(target))
		}
		p.tell(fmt.Sprintf("network: %s: %s: %v", shown, what, err))
		return nil, err
	}
	c := &connection{Conn: conn, proxy: p, target: target, since: time.Now(), gone: make(chan struct{})}
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	p.open[c] = true
	c.idle = time.AfterFunc(p.config.IdleTime, func() { _ = c.Close() })
	p.mu.Unlock()
	p.tell(fmt.Sprintf("network: %s: connected to %s", target, conn.RemoteAddr()))
	return c, nil
}

// dial finds the addresses of a granted host, and connects to the first that answers and
// is none of this machine's.
func (p *Proxy) dial(ctx context.Context, target string) (net.Conn, error) {
	if len(target) > maxTarget {
		return nil, &refusal{"it is longer than the name of a host"}
	}
	host, err := grant.ParseTarget(target)
	if err != nil {
		return nil, &refusal{err.Error()}
	}
	if !p.config.Hosts.Cover(host) {
		return nil, &refusal{"it is none of the hosts that this plugin may reach"}
	}
	addresses := []netip.Addr{host.Addr}
	if !host.Addr.IsValid() {
		ctx, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		if addresses, err = p.config.Resolve(ctx, host.Name); err != nil {
			if why, _ := reach.Why(err); why != "" {
				err = errors.New(why)
			}
			return nil, fmt.Errorf("%s: %w", host.Name, err)
		}
	}
	err = fmt.Errorf("%s has no address", host.Name)
	for _, address := range addresses {
		address = address.Unmap()
		literal := p.config.Hosts.Cover(grant.Host{Addr: address, Port: host.Port})
		if why := closed(address); why != "" && !literal {
			err = &refusal{fmt.Sprintf("it leads to %s, which is %s: only an entry that names the address opens that", address, why)}
			continue
		}
		var conn net.Conn
		dialer := net.Dialer{Timeout: dialTime}
		if conn, err = dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(address, host.Port).String()); err == nil {
			return conn, nil
		}
		if why, _ := reach.Why(err); why != "" {
			err = errors.New(why)
		}
	}
	return nil, err
}

// tell tells one line, within the bounds.
func (p *Proxy) tell(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told {
		return
	}
	if p.lines++; p.lines > maxLines {
		p.untold++
		return
	}
	p.config.Tell(line)
}

func (p *Proxy) closeAll() {
	p.mu.Lock()
	p.over = true
	var all []*connection
	for c := range p.open {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}
