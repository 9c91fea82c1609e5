package httpserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// Text that the database would refuse is refused here, with its place.
func TestAttackTextThatIsNone(t *testing.T) {
	t.Parallel()
	s := newServer(t, httpserver.Config{})
	tests := []struct {
		name, method, path, body string
		header                   map[string]string
		want                     string // detail; empty: it passes
	}{
		{name: "NUL in the path", method: "GET", path: "/boats/boa_%00", want: `path parameter "boat": has a NUL character, which is not text`},
		{name: "no UTF-8 in the path", method: "GET", path: "/boats/boa_%ff", want: `path parameter "boat": is not UTF-8`},
		{name: "NUL in the query", method: "GET", path: "/boats/boa_1?name=a%00b", want: `query parameter "name": has a NUL character, which is not text`},
		{name: "no UTF-8 in the query", method: "GET", path: "/boats/boa_1?name=%c3%28", want: `query parameter "name": is not UTF-8`},
		{name: "no UTF-8 in a header", method: "GET", path: "/boats/boa_1", header: map[string]string{"Idempotency-Key": "a\xffb"}, want: `header "Idempotency-Key": is not UTF-8`},
		{name: "NUL in the body", method: "PUT", path: "/boats/boa_1", body: `{"name": "a\u0000"}`, want: "/name: has a NUL character, which is not text"},
		{name: "NUL deep in the body", method: "PUT", path: "/boats/boa_1", body: `{"name": "a", "cargo": [1, {"x/y": ["ok", "\u0000"]}]}`, want: "/cargo/1/x~1y/1: has a NUL character, which is not text"},
		{name: "NUL in a key", method: "PUT", path: "/boats/boa_1", body: `{"name": "a", "cargo": {"a\u0000": 1}}`, want: "/cargo: a key has a NUL character, which is not text"},
		{name: "half a character", method: "PUT", path: "/boats/boa_1", body: `{"name": "a", "cargo": "\ud83d"}`, want: "/cargo: has half of a character (a lone surrogate), which is not text"},
		{name: "two halves in the wrong order", method: "PUT", path: "/boats/boa_1", body: `{"name": "a", "cargo": "\uDE00\uD83D"}`, want: "/cargo: has half of a character (a lone surrogate), which is not text"},
		{name: "no UTF-8 in the body", method: "PUT", path: "/boats/boa_1", body: "{\"name\": \"a\xff\"}", want: "body: is not UTF-8"},

		{name: "a backslash before u0000", method: "PUT", path: "/boats/boa_1", body: `{"name": "\\u0000"}`},
		{name: "a whole character in two halves", method: "PUT", path: "/boats/boa_1", body: `{"name": "\uD83D\uDE00"}`},
		{name: "the character that stands for a broken one", method: "PUT", path: "/boats/boa_1", body: `{"name": "\ufffd", "cargo": "\ud83d\ude00"}`},
		{name: "all of the rest", method: "PUT", path: "/boats/boa_1", body: `{"name": "\u0001ü", "cargo": [[], {}, null, 1e9, {"a": {"b": []}}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.body))
			if tt.body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			for name, value := range tt.header {
				req.Header.Set(name, value)
			}
			answer := httptest.NewRecorder()
			s.Handler().ServeHTTP(answer, req)
			if tt.want == "" {
				if answer.Code != http.StatusOK {
					t.Errorf("answered %d: %s", answer.Code, answer.Body)
				}
				return
			}
			var got fault.Problem
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if got.Status != http.StatusUnprocessableEntity || got.Code != "not_text" || got.Detail != tt.want || len(got.Errors) != 1 {
				t.Errorf("got %d %s %q, want 422 not_text %q", got.Status, got.Code, got.Detail, tt.want)
			}
		})
	}
}

// A contract's route whose middleware forgets to say who sends the body has none
// read, for anybody.
func TestABodyWithoutProofIsNotRead(t *testing.T) {
	t.Parallel()
	s := newServer(t, httpserver.Config{Middleware: []gin.HandlerFunc{func(*gin.Context) {}}})
	if answer := do(t, s, "PUT", "/boats/boa_1", "application/json", `{"name": "Ann"}`); answer.Code != http.StatusInternalServerError {
		t.Errorf("answered %d: %s", answer.Code, answer.Body)
	}
}

// Guesses are counted by what a middleware answers, and slowed down; no
// credential, and one that is known, are no guesses.
func TestGuessesAreSlowedDown(t *testing.T) {
	t.Parallel()
	codes := map[string]string{"Bearer old": "over"}
	s := newServer(t, httpserver.Config{KnownCallers: []string{"over"}, Middleware: []gin.HandlerFunc{func(c *gin.Context) {
		if c.GetHeader("Authorization") == "Bearer good" {
			return
		}
		err := fault.Newf(fault.ErrUnauthenticated, "no")
		if code := codes[c.GetHeader("Authorization")]; code != "" {
			err = fault.With(err, fault.Code(code))
		}
		httpserver.WriteProblem(c, err)
	}}})
	ask := func(credential string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/boats/boa_1", nil)
		if credential != "" {
			req.Header.Set("Authorization", credential)
		}
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, req)
		return answer
	}
	for _, credential := range []string{"", "Bearer old"} {
		for range 1000 {
			if got := ask(credential).Code; got != http.StatusUnauthorized {
				t.Fatalf("%q: answered %d", credential, got)
			}
		}
	}
	limited := 0
	for range 1000 {
		if answer := ask("Bearer guess"); answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") != "" {
			limited++
		}
	}
	if limited == 0 {
		t.Error("no guess was slowed down")
	}
	for credential, want := range map[string]int{"Bearer good": 200, "Bearer old": 401, "": 401} {
		if got := ask(credential).Code; got != want {
			t.Errorf("%q: answered %d, want %d", credential, got, want)
		}
	}
}
