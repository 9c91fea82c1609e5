package kubetest

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// A Write is a request to the API server that changes something. Dry runs are
// none.
type Write struct {
	N       int // from 1
	Method  string
	Path    string
	forward func() int
	cut     func()
}

// Forward passes the write on to the API server at once and returns the status
// code; the answer goes on to who asked when the hook returns.
func (w Write) Forward() int { return w.forward() }

// Cut ends the connection without an answer.
func (w Write) Cut() { w.cut() }

// Proxy stands between an engine and the API server: hook sees every write
// before the server does, and the write goes on when it returns. It returns the
// path of a kubeconfig that leads to the proxy.
func (c *Connection) Proxy(t *testing.T, hook func(Write)) string {
	t.Helper()
	return c.ProxyOfAll(t, hook, func(*http.Request) {})
}

// ProxyOfAll is Proxy with a second hook, which sees all other requests before
// the server does: what is read, and dry runs.
func (c *Connection) ProxyOfAll(t *testing.T, hook func(Write), read func(*http.Request)) string {
	t.Helper()
	transport, err := rest.TransportFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	var writes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !changes(r) {
			read(r)
			proxy.ServeHTTP(w, r)
			return
		}
		var answer *httptest.ResponseRecorder
		forward := func() int {
			if answer == nil {
				answer = httptest.NewRecorder()
				proxy.ServeHTTP(answer, r)
			}
			return answer.Code
		}
		hook(Write{
			N: int(writes.Add(1)), Method: r.Method, Path: r.URL.Path,
			forward: forward, cut: func() { panic(http.ErrAbortHandler) },
		})
		forward()
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // who asked may be dead by now
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: proxy, cluster: {server: %q}}]
users: [{name: proxy, user: {}}]
contexts: [{name: proxy, context: {cluster: proxy, user: proxy}}]
current-context: proxy
`, server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func changes(r *http.Request) bool {
	return slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method) &&
		r.URL.Query().Get("dryRun") == ""
}
