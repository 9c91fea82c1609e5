package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gin-gonic/gin"
)

func packed(t *testing.T, text string) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

func TestServe(t *testing.T) {
	t.Parallel()
	e := gin.New()
	register(e, fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html>the pages")}, "theme.js": {Data: []byte("theme")},
		"assets/a-1.js.gz": packed(t, "script"), "assets/f-1.woff2": {Data: []byte("font")},
	})
	tests := []struct {
		path, accept   string
		status         int
		kind, encoding string
		cache, body    string
	}{
		{"/ui/", "", 200, "text/html; charset=utf-8", "", "no-cache", "<!doctype html>the pages"},
		{"/ui/installs/acme", "", 200, "text/html; charset=utf-8", "", "no-cache", "<!doctype html>the pages"},
		{"/ui/installs/acme.example", "", 200, "text/html; charset=utf-8", "", "no-cache", "<!doctype html>the pages"},
		{"/ui/theme.js", "", 200, "text/javascript; charset=utf-8", "", "no-cache", "theme"},
		{"/ui/assets/a-1.js", "", 200, "text/javascript; charset=utf-8", "", "public, max-age=31536000, immutable", "script"},
		{"/ui/assets/a-1.js", "br, gzip", 200, "text/javascript; charset=utf-8", "gzip", "public, max-age=31536000, immutable", ""},
		{"/ui/assets/f-1.woff2", "gzip", 200, "font/woff2", "", "public, max-age=31536000, immutable", "font"},
		{"/ui/assets/old.js", "", 404, "text/plain; charset=utf-8", "", "no-store", "there is no file assets/old.js"},
		{"/ui/assets/../../../etc/passwd", "", 200, "text/html; charset=utf-8", "", "no-cache", "<!doctype html>the pages"},
		{"/ui/assets/%2e%2e/%2e%2e/go.mod", "", 404, "text/plain; charset=utf-8", "", "no-store", "there is no file go.mod"},
		{"/", "", 302, "text/html; charset=utf-8", "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.path+" "+tt.accept, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequest(http.MethodGet, "http://berth.test"+tt.path, nil)
			request.Header.Set("Accept-Encoding", tt.accept)
			answer := httptest.NewRecorder()
			e.ServeHTTP(answer, request)
			h := answer.Header()
			if answer.Code != tt.status || h.Get("Content-Type") != tt.kind || h.Get("Content-Encoding") != tt.encoding || h.Get("Cache-Control") != tt.cache {
				t.Errorf("got %d %q %q %q", answer.Code, h.Get("Content-Type"), h.Get("Content-Encoding"), h.Get("Cache-Control"))
			}
			if tt.body != "" && answer.Body.String() != tt.body {
				t.Errorf("got %q, want %q", answer.Body, tt.body)
			}
			if tt.status == http.StatusFound {
				if h.Get("Location") != Base {
					t.Errorf("it leads to %q", h.Get("Location"))
				}
				return
			}
			csp := h.Get("Content-Security-Policy")
			if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", h)
			}
		})
	}
}

// An executable that was compiled without the pages says so.
func TestNotBuilt(t *testing.T) {
	t.Parallel()
	e := gin.New()
	register(e, fstest.MapFS{})
	answer := httptest.NewRecorder()
	e.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/ui/installs", nil))
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "make build") {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}
