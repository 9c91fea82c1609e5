package probe_test

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/engine/probe"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/well", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/ill", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ill", http.StatusFound) })
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/much", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	for _, tt := range []struct {
		name, kind, target, status, timeout string
		want                                int
		says                                string
	}{
		{"it answers", "http", server.URL + "/well", "200-399", "5s", 0, "GET http://HOST/well: 200 OK"},
		{"it answers wrongly", "http", server.URL + "/ill", "200-399", "5s", 1, "GET http://HOST/ill: 503 Service Unavailable, want 200-399"},
		{"a status that is wanted", "http", server.URL + "/ill", "503", "5s", 0, "503"},
		{"a redirect is not followed", "http", server.URL + "/elsewhere", "200-399", "5s", 0, "302 Found"},
		{"an answer without an end", "http", server.URL + "/much", "200", "5s", 0, "200 OK"},
		{"too slow", "http", server.URL + "/never", "200", "50ms", 1, "GET http://HOST/never: no answer within 50ms"},
		{"nobody listens", "http", "http://" + nobody + "/", "200", "5s", 1, "connection refused"},
		{"secrets of the address are not shown", "http", strings.Replace(server.URL, "http://", "http://user:canary@", 1) + "/ill?token=canary", "200", "5s", 1, "GET http://HOST/ill: 503"},
		{"nor in an error", "http", "http://user:canary@" + nobody + "/?token=canary", "200", "5s", 1, "connection refused"},
		{"another scheme", "http", "file:///etc/passwd", "200", "5s", 2, "begins with http"},
		{"a port that is open", "tcp", host, "", "5s", 0, "it takes connections"},
		{"a port that is closed", "tcp", nobody, "", "5s", 1, "connection refused"},
		{"no port", "tcp", "localhost", "", "5s", 2, "not HOST:PORT"},
		{"another type", "grpc", host, "", "5s", 2, "http, tcp and exec"},
		{"a command without one", "exec", "deployment/web", "", "5s", 2, "needs a command"},
		{"no timeout", "tcp", host, "", "", 2, "PROBE_TIMEOUT"},
		{"no status", "http", server.URL, "399-200", "5s", 2, "PROBE_STATUS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"PROBE_TARGET": tt.target, "PROBE_STATUS": tt.status, "PROBE_TIMEOUT": tt.timeout, "PROBE_METHOD": "GET"}
			var said bytes.Buffer
			began := time.Now()
			got := probe.Run(t.Context(), tt.kind, func(name string) string { return env[name] }, &said)
			text := strings.ReplaceAll(said.String(), host, "HOST")
			if got != tt.want || !strings.Contains(text, tt.says) || strings.Contains(text, "canary") || strings.Count(text, "\n") != 1 {
				t.Errorf("exit %d, want %d; it says %q, want %q", got, tt.want, text, tt.says)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
