package front_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/front"
	"github.com/berth-dev/berth/pkg/intake"
)

// echo is a part that says who it is and what it was asked for.
func echo(t *testing.T, name string) *url.URL {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, name+" "+r.Method+" "+r.RequestURI+" "+r.Host)
		if f, ok := w.(http.Flusher); ok && r.URL.Path == "/streams/held/tail" {
			f.Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func start(t *testing.T, up front.Upstreams) (base string, client *http.Client) {
	t.Helper()
	authority := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(authority.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- front.Run(ctx, front.Config{
			Listener: listener, TLS: &tls.Config{Certificates: authority.TLS.Certificates, MinVersion: tls.VersionTLS12},
			Upstreams: up, Log: slog.New(slog.DiscardHandler),
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("front ended: %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("front did not end")
		}
	})
	return "https://" + listener.Addr().String(), authority.Client()
}

// Each path goes to its part as it is: a signature covers it.
func TestRoutes(t *testing.T) {
	t.Parallel()
	base, client := start(t, front.Upstreams{RunnerAPI: echo(t, "runner"), LogIngest: echo(t, "logs"), Registry: echo(t, "registry")})
	host := base[len("https://"):]
	for path, want := range map[string]string{
		"/chain/head":                       "runner",
		"/settings?after_version=3&wait=5":  "runner",
		"/states/res_1%2Fodd/lock":          "runner",
		"/streams/s1/records":               "logs",
		"/streams":                          "runner", // no such path: a part says so
		"/v2/":                              "registry",
		"/v2/a/b/blobs/uploads/?mount=x%2F": "registry",
		"/v2x":                              "runner",
		"/":                                 "runner",
	} {
		resp, err := client.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != want+" GET "+path+" "+host {
			t.Errorf("%s: %s, %v; want it at %s", path, got, err, want)
		}
	}
}

// The API for people is behind it only where that was asked for, and its paths
// are its own.
func TestRoutesOfTheAPI(t *testing.T) {
	t.Parallel()
	part := echo(t, "runner")
	ask := func(base string, client *http.Client, path string) string {
		t.Helper()
		resp, err := client.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK {
			return resp.Status
		}
		return strings.TrimSuffix(string(got), " "+strings.TrimPrefix(base, "https://"))
	}
	without, client := start(t, front.Upstreams{RunnerAPI: part, LogIngest: part, Registry: part})
	if got := ask(without, client, "/api/me"); got != "404 Not Found" {
		t.Errorf("without ctl-api: %s, want 404", got)
	}
	with, client := start(t, front.Upstreams{RunnerAPI: part, LogIngest: part, Registry: part, CtlAPI: echo(t, "api")})
	for path, want := range map[string]string{
		"/api/me":                    "api GET /me",
		"/api/installs/a%2Fb?wait=5": "api GET /installs/a%2Fb?wait=5",
		"/api/":                      "api GET /",
		"/api":                       "runner GET /api",
		"/apis":                      "runner GET /apis",
		"/me":                        "runner GET /me",
		"/healthz":                   "{\"status\":\"ok\"}\n",
		"/readyz":                    "{\"status\":\"ready\"}\n",
	} {
		if got := ask(with, client, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// What is held open comes through byte by byte.
func TestStreams(t *testing.T) {
	t.Parallel()
	base, client := start(t, front.Upstreams{RunnerAPI: echo(t, "runner"), LogIngest: echo(t, "logs"), Registry: echo(t, "registry")})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/streams/held/tail", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 4)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "logs" {
		t.Errorf("first bytes: %q, %v", first, err)
	}
}

// A part that is away is an outage, not an answer.
func TestAway(t *testing.T) {
	t.Parallel()
	gone := echo(t, "gone")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Host = listener.Addr().String()
	listener.Close()
	base, client := start(t, front.Upstreams{RunnerAPI: gone, LogIngest: gone, Registry: gone})
	resp, err := client.Get(base + "/chain/head")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadGateway {
		t.Errorf("answer %s, want 502", resp.Status)
	}
}

// A part that refuses a body unread is heard at once, however much of the body
// is still to come; and nobody is locked out by connections that send nothing.
func TestAttackBodiesThatNobodyReads(t *testing.T) {
	t.Parallel()
	part := httptest.NewServer(intake.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	})))
	t.Cleanup(part.Close)
	up, err := url.Parse(part.URL)
	if err != nil {
		t.Fatal(err)
	}
	base, client := start(t, front.Upstreams{RunnerAPI: up, LogIngest: up, Registry: up})
	trust := client.Transport.(*http.Transport).TLSClientConfig.Clone()
	for range 12 {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(base, "https://"), trust)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.WriteString(conn, "PUT /jobs/x/result HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nthe beginning"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("answered %s, want 401", resp.Status)
		}
	}
}
