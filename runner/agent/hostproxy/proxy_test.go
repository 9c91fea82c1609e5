package hostproxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/plugin/grant"
	"github.com/berth-dev/berth/runner/agent/hostproxy"
)

// way is a proxy on its socket, and what it told.
type way struct {
	socket string
	end    func() // Serve has returned

	mu    sync.Mutex
	lines []string
}

func open(t *testing.T, config hostproxy.Config, hosts ...string) *way {
	t.Helper()
	var err error
	if config.Hosts, err = grant.ParseHosts(hosts); err != nil {
		t.Fatal(err)
	}
	w := &way{socket: filepath.Join(t.TempDir(), strings.Repeat("deep/", 20), "hosts.sock")}
	if err := os.MkdirAll(filepath.Dir(w.socket), 0o700); err != nil {
		t.Fatal(err)
	}
	config.Tell = func(line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lines = append(w.lines, line)
	}
	for range 2 { // the second time in place of one that an earlier agent left
		l, err := hostproxy.Listen(w.socket, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- hostproxy.New(config).Serve(ctx, l) }()
		w.end = sync.OnceFunc(func() {
			cancel()
			if err := <-over; err != nil {
				t.Errorf("serve: %v", err)
			}
		})
		t.Cleanup(w.end)
	}
	return w
}

func (w *way) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

func (w *way) dial(t *testing.T) net.Conn {
	t.Helper()
	dir, err := os.Open(filepath.Dir(w.socket))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/hosts.sock", dir.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// client goes over the proxy as a plugin does.
func (w *way) client(t *testing.T, tls *http.Client) *http.Client {
	t.Helper()
	transport := &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return w.dial(t), nil },
		DisableKeepAlives: true,
	}
	if tls != nil {
		under, _ := tls.Transport.(*http.Transport)
		transport.TLSClientConfig = under.TLSClientConfig
	}
	return &http.Client{Transport: transport}
}

func get(c *http.Client, address string) (string, error) {
	resp, err := c.Get(address)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(raw))), err
}

func port(server *httptest.Server) string {
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	return port
}

func TestGrantedHost(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Connection") != "" || r.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("the host sees %v", r.Header)
		}
		fmt.Fprint(w, "hello ", r.URL.Path)
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	w := open(t, hostproxy.Config{}, "127.0.0.1:"+port(plain), "127.0.0.1:"+port(secure))
	if got, err := get(w.client(t, nil), plain.URL+"/a"); got != "200 hello /a" || err != nil {
		t.Errorf("plain: %q, %v", got, err)
	}
	if got, err := get(w.client(t, secure.Client()), secure.URL+"/b"); got != "200 hello /b" || err != nil {
		t.Errorf("tunnel: %q, %v", got, err)
	}
	w.end()
	told := w.told()
	for _, server := range []*httptest.Server{plain, secure} {
		for _, want := range []string{"network: 127.0.0.1:" + port(server) + ": connected to", "network: 127.0.0.1:" + port(server) + ": closed after"} {
			if strings.Count(told, want) != 1 {
				t.Errorf("told, want once %q:\n%s", want, told)
			}
		}
	}
	if strings.Contains(told, " 0 bytes sent") || strings.Contains(told, " 0 received") {
		t.Errorf("bytes were moved:\n%s", told)
	}
}

// A half-closed connection still carries the answer.
func TestTunnelIsHalfClosed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		raw, _ := io.ReadAll(conn) // to the end that the other side says
		_, _ = conn.Write(bytes.ToUpper(raw))
	}()
	w := open(t, hostproxy.Config{}, l.Addr().String())
	conn := w.dial(t)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nsaid at once", l.Addr())
	r := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	unix, _ := conn.(*net.UnixConn)
	if err := unix.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil || string(raw) != "SAID AT ONCE" {
		t.Errorf("%q, %v", raw, err)
	}
	w.end()
	if told := w.told(); !strings.Contains(told, "12 bytes sent, 12 received") {
		t.Errorf("told:\n%s", told)
	}
}

// Whatever a plugin asks for, nobody is reached who is not granted, nor this machine by
// a name; and each try is told.
func TestAttackPluginReachesOtherHosts(t *testing.T) {
	t.Parallel()
	var visits sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { visits.Store(r.URL.String(), true) }))
	defer server.Close()
	at := port(server)
	own := ownAddress(t)
	names := map[string]string{
		"loop.example.com": "127.0.0.1", "mapped.example.com": "::ffff:127.0.0.1", "six.example.com": "::1",
		"meta.example.com": "169.254.169.254", "meta6.example.com": "fd00:ec2::254", "azure.example.com": "168.63.129.16",
		"zero.example.com": "0.0.0.0", "nat64.example.com": "64:ff9b::7f00:1", "sixtofour.example.com": "2002:7f00:1::1",
		"compatible.example.com": "::127.0.0.1", "many.example.com": "224.0.0.1", "own.example.com": own, "link.example.com": "fe80::1",
	}
	config := hostproxy.Config{Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
		if name == "evil.example.org" {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		text, known := names[name]
		if !known {
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		return []netip.Addr{netip.MustParseAddr(text)}, nil
	}}
	w := open(t, config, "*.example.com:"+at, "10.255.255.1:"+at)
	try := func(name, request, want string) {
		t.Helper()
		conn := w.dial(t)
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode/100 == 2 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s, want %q", name, resp.StatusCode, body, want)
		}
	}
	for name := range names {
		try(name, "CONNECT "+name+":"+at+" HTTP/1.1\r\nHost: x\r\n\r\n", "it leads to")
		try(name, "GET http://"+name+":"+at+"/ HTTP/1.1\r\nHost: x\r\n\r\n", "it leads to")
	}
	for name, target := range map[string]string{
		"another name": "evil.example.org:" + at, "another port": "loop.example.com:1", "the domain itself": "example.com:" + at,
		"an address": "127.0.0.1:" + at, "a short address": "127.1:" + at, "a number": "2130706433:" + at, "an IPv6 address": "[::1]:" + at,
		"a mapped address": "[::ffff:127.0.0.1]:" + at, "the metadata": "169.254.169.254:80", "a name with a dot": "loop.example.com.:" + at,
		"a long name": strings.Repeat("secret", 5000) + ".example.com:" + at,
		"a wildcard":  "*.example.com:" + at, "a user": "x@loop.example.com:" + at, "localhost": "localhost:" + at,
	} {
		try(name, "CONNECT "+target+" HTTP/1.1\r\nHost: loop.example.com:"+at+"\r\n\r\n", "")
		try(name, "GET http://"+target+"/ HTTP/1.1\r\nHost: loop.example.com:"+at+"\r\n\r\n", "")
	}
	try("no proxy's request", "GET / HTTP/1.1\r\nHost: 127.0.0.1:"+at+"\r\n\r\n", "way out")
	try("another scheme", "GET ftp://loop.example.com:"+at+"/ HTTP/1.1\r\nHost: x\r\n\r\n", "way out")
	w.end()
	visits.Range(func(key, _ any) bool {
		t.Errorf("the server of this machine was reached: %v", key)
		return true
	})
	told := w.told()
	for line := range strings.SplitSeq(told, "\n") {
		if len(line) > 1000 {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
	if strings.Contains(told, "connected") {
		t.Errorf("told:\n%s", told)
	}
	for name := range names {
		if strings.Count(told, fmt.Sprintf("network: %q: refused", name+":"+at)) < 2 {
			t.Errorf("%s is not told each time:\n%s", name, told)
		}
	}
	// The same names work where the entry names the address: what refuses is the rule.
	names["loop.example.com"] = "127.0.0.1"
	w = open(t, config, "*.example.com:"+at, "127.0.0.1:"+at)
	if got, err := get(w.client(t, nil), "http://loop.example.com:"+at+"/granted"); got != "200 " || err != nil {
		t.Errorf("granted: %q, %v", got, err)
	}
}

// ownAddress is one of this machine's that is not its loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if prefix, err := netip.ParsePrefix(one.String()); err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
			return prefix.Addr().String()
		}
	}
	return "127.0.0.2" // a machine without a network
}

// A connection on which nothing moves is ended, and so is every one with the job.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for { // accepts, and says nothing
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	connect := func(w *way) *bufio.Reader {
		conn := w.dial(t)
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", l.Addr())
		r := bufio.NewReader(conn)
		if resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		return r
	}
	idle := open(t, hostproxy.Config{IdleTime: 50 * time.Millisecond}, l.Addr().String())
	if n, err := connect(idle).Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an idle connection: %d, %v", n, err)
	}
	w := open(t, hostproxy.Config{}, l.Addr().String())
	r := connect(w)
	w.end()
	if n, err := r.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the job: %d, %v", n, err)
	}
	if told := w.told(); !strings.Contains(told, "closed after") {
		t.Errorf("told:\n%s", told)
	}
}

// A plugin that tries without end costs its log a bounded number of lines, and its runner
// a bounded number of connections.
func TestAttackPluginFloodsItsHosts(t *testing.T) {
	t.Parallel()
	w := open(t, hostproxy.Config{}, "api.example.com")
	c := w.client(t, nil)
	for range 2100 {
		if got, err := get(c, "http://evil.example.org/"); err != nil || !strings.HasPrefix(got, "403") {
			t.Fatalf("%q, %v", got, err)
		}
	}
	w.end()
	lines := strings.Split(w.told(), "\n")
	if len(lines) != 2001 || !strings.Contains(lines[2000], "100 more lines are left out") {
		t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
	}
}
