package preflight_test

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/runner/preflight"
)

// plane answers nobody in particular, as the control plane's front does.
func plane(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v2/") {
		w.Header().Set("WWW-Authenticate", `Basic realm="berth"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, `{"status":401,"code":"signature_refused"}`)
}

func tlsServer(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, caFile string) {
	t.Helper()
	server = httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(caFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, caFile
}

// connectProxy lets CONNECT to one host through, whatever name it is called by,
// and nothing else.
func connectProxy(t *testing.T, host, target string) (url string, used *atomic.Int64) {
	t.Helper()
	used = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != host {
			http.Error(w, "not allowed", http.StatusForbidden)
			return
		}
		there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", target)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer there.Close()
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		used.Add(1)
		_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(there, buffered) }()
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(server.Close)
	return server.URL, used
}

func config(url string) preflight.Config {
	return preflight.Config{
		Code:    enrolcode.Code{URL: url, OneHost: true, Install: "acme", InstallID: "ins_1", ExpiresAt: time.Now().Add(time.Hour)},
		Version: "1.2.0",
	}
}

// statuses are the findings as "check status".
func statuses(found []preflight.Finding) string {
	var all []string
	for _, f := range found {
		all = append(all, f.Check+" "+string(f.Status))
	}
	return strings.Join(all, ", ")
}

const allGood = "code ok, runner version ok, proxy ok, network ok, runner-api ok, clock ok, log-ingest ok, registry ok, cluster skip"

func TestReach(t *testing.T) {
	t.Parallel()
	server, ca := tlsServer(t, plane)
	address := server.Listener.Addr().String()
	// The name of the certificate that httptest has; only the proxy can find it.
	proxy, used := connectProxy(t, "example.com:443", address)
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := deaf.Addr().String()
	deaf.Close()
	tests := []struct {
		name   string
		change func(*preflight.Config)
		want   string
		fix    string // part of the last failed one's
	}{
		{name: "all is well", change: func(*preflight.Config) {}, want: allGood},
		{
			name: "through a proxy", want: allGood,
			change: func(c *preflight.Config) { c.Code.URL, c.Proxy = "https://example.com", proxy },
		},
		{
			name: "an authority that is not believed", fix: "--ca",
			change: func(c *preflight.Config) { c.CAFile = "" },
			want:   "code ok, runner version ok, proxy ok, network ok, runner-api fail, cluster skip",
		},
		{
			name: "a proxy that lets another host through", fix: "CONNECT to other.example.com:443",
			change: func(c *preflight.Config) { c.Code.URL, c.Proxy = "https://other.example.com", proxy },
			want:   "code ok, runner version ok, proxy ok, network ok, runner-api fail, cluster skip",
		},
		{
			name: "no proxy where it says", fix: "this network may call it",
			change: func(c *preflight.Config) { c.Proxy = "http://" + closed },
			want:   "code ok, runner version ok, proxy ok, network fail, cluster skip",
		},
		{
			name: "nobody there", fix: "open the firewall",
			change: func(c *preflight.Config) { c.Code.URL = "https://" + closed },
			want:   "code ok, runner version ok, proxy ok, network fail, cluster skip",
		},
		{
			name: "a name that nobody knows", fix: "can be looked up",
			change: func(c *preflight.Config) { c.Code.URL = "https://berth.invalid" },
			want:   "code ok, runner version ok, proxy ok, name fail, cluster skip",
		},
		{
			name: "a certificate for another name", fix: "must agree",
			change: func(c *preflight.Config) { c.Code.URL = strings.Replace(c.Code.URL, "127.0.0.1", "localhost", 1) },
			want:   "code ok, runner version ok, proxy ok, network ok, runner-api fail, cluster skip",
		},
		{
			name: "a clock that is wrong", fix: "NTP",
			change: func(c *preflight.Config) { c.Now = func() time.Time { return time.Now().Add(2 * time.Minute) } },
			want:   strings.Replace(allGood, "clock ok", "clock fail", 1),
		},
		{
			name: "a code that is over", fix: "new code",
			change: func(c *preflight.Config) { c.Code.ExpiresAt = time.Now().Add(-time.Second) },
			want:   strings.Replace(allGood, "code ok", "code fail", 1),
		},
		{
			name: "a runner that is too old", fix: "newer image",
			change: func(c *preflight.Config) { c.Code.MinRunnerVersion = "1.3.0" },
			want:   strings.Replace(allGood, "version ok", "version fail", 1),
		},
		{
			name:   "a runner of no release",
			change: func(c *preflight.Config) { c.Version, c.Code.MinRunnerVersion = "dev", "1.3.0" },
			want:   strings.Replace(allGood, "version ok", "version warn", 1),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := config("https://" + address)
			c.CAFile = ca
			tt.change(&c)
			found := preflight.Run(t.Context(), c)
			if got := statuses(found); got != tt.want {
				t.Fatalf("found %s\nwant  %s\n%+v", got, tt.want, found)
			}
			fix := ""
			for _, f := range found {
				if f.Status == preflight.Fail {
					fix = f.Fix
				}
			}
			if !strings.Contains(fix, tt.fix) || (preflight.Failed(found) == 0) != (fix == "") {
				t.Errorf("fix %q, want one with %q", fix, tt.fix)
			}
		})
	}
	t.Cleanup(func() {
		if used.Load() == 0 {
			t.Error("nothing went through the proxy")
		}
	})
}

// An address that leads one path elsewhere is found, and named.
func TestWrongRoute(t *testing.T) {
	t.Parallel()
	for path, name := range map[string]string{"/v2/": "registry", "/streams/": "log-ingest"} {
		server, ca := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, path) {
				_, _ = io.WriteString(w, "<html>a page of somebody</html>")
				return
			}
			plane(w, r)
		})
		c := config(server.URL)
		c.CAFile = ca
		want := strings.Replace(allGood, name+" ok", name+" fail", 1)
		if got := statuses(preflight.Run(t.Context(), c)); got != want {
			t.Errorf("found %s\nwant  %s", got, want)
		}
	}
}
