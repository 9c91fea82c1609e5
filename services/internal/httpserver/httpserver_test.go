package httpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

const contract = `
openapi: 3.0.3
info: {title: Boats, version: "1", description: What floats.}
security: [{token: []}]
tags: [{name: Boats, description: Floating things.}]
paths:
  /boats/{boat}:
    get:
      operationId: getBoat
      tags: [Boats]
      summary: One boat
      parameters:
        - {name: boat, in: path, required: true, schema: {type: string, pattern: '^boa_'}}
        - {name: name, in: query, description: What it is called., schema: {type: string}}
        - {name: limit, in: query, description: How many at most., schema: {type: integer, maximum: 500, default: 50}}
      responses: {"200": {description: It.}}
    put:
      operationId: putBoat
      tags: [Boats]
      summary: Change a boat
      parameters:
        - {name: boat, in: path, required: true, schema: {type: string}}
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              additionalProperties: false
              required: [name]
              properties:
                name: {type: string, maxLength: 10, example: Albatros}
                masts: {type: integer, default: 2}
                cargo: {}
      responses: {"200": {description: It.}}
  /boats/{boat}/cargo:
    put:
      operationId: putCargo
      parameters:
        - {name: boat, in: path, required: true, schema: {type: string}}
      requestBody:
        required: true
        content: {application/octet-stream: {schema: {type: string, format: binary}}}
      responses: {"200": {description: Taken.}}
components:
  securitySchemes: {token: {type: http, scheme: bearer}}
`

func TestProblems(t *testing.T) {
	t.Parallel()
	s := newServer(t, httpserver.Config{BodyLimits: map[string]int64{"putBoat": 100}, Ready: func(context.Context) error { return errors.New("dial tcp 10.0.0.7") }})
	tests := []struct {
		name, method, path, body string
		contentType              string // "": application/json
		want                     fault.Problem
	}{
		{
			name: "as curl sends a body", method: "PUT", path: "/boats/boa_1", body: `{"name": "Ann"}`, contentType: "application/x-www-form-urlencoded",
			want: fault.Problem{
				Status: 422, Code: "invalid", Detail: "the body has no Content-Type that this takes",
				Remedy: "send it with the header Content-Type: application/json",
			},
		},
		{
			name: "no such route", method: "GET", path: "/ships",
			want: fault.Problem{Status: 404, Code: "no_route", Detail: "there is no route /ships"},
		},
		{
			name: "no such method", method: "DELETE", path: "/boats/boa_1",
			want: fault.Problem{Status: 405, Code: "method_not_allowed", Detail: "DELETE is not a method of /boats/boa_1"},
		},
		{
			name: "a parameter is wrong", method: "GET", path: "/boats/boa_1?limit=5000",
			want: fault.Problem{
				Status: 422, Code: "invalid", Detail: `query parameter "limit": number must be at most 500`,
				Errors: []fault.FieldError{{Detail: `query parameter "limit": number must be at most 500`}},
			},
		},
		{
			name: "a parameter is no number", method: "GET", path: "/boats/boa_1?limit=many",
			want: fault.Problem{
				Status: 422, Code: "invalid", Detail: `query parameter "limit": an invalid integer`,
				Errors: []fault.FieldError{{Detail: `query parameter "limit": an invalid integer`}},
			},
		},
		{
			name: "all faults of a body at once, without its values", method: "PUT", path: "/boats/boa_1", body: `{"name": "hunter2hunter2", "masts": "x", "oars": 1}`,
			want: fault.Problem{
				Status: 422, Code: "invalid", Detail: "3 things are wrong with the request",
				Errors: []fault.FieldError{
					{Detail: `body: property "oars" is unsupported`},
					{Pointer: "/masts", Detail: "value must be an integer"},
					{Pointer: "/name", Detail: "maximum string length is 10"},
				},
			},
		},
		{
			name: "a required field is missing", method: "PUT", path: "/boats/boa_1", body: `{}`,
			want: fault.Problem{
				Status: 422, Code: "invalid", Detail: `/name: property "name" is missing`,
				Errors: []fault.FieldError{{Pointer: "/name", Detail: `property "name" is missing`}},
			},
		},
		{
			name: "no JSON", method: "PUT", path: "/boats/boa_1", body: `{`,
			want: fault.Problem{
				Status: 422, Code: "invalid", Detail: "body: is not JSON: it ends too early",
				Errors: []fault.FieldError{{Detail: "body: is not JSON: it ends too early"}},
			},
		},
		{
			name: "broken JSON", method: "PUT", path: "/boats/boa_1", body: `{"name" "Ann"}`,
			want: fault.Problem{
				Status: 422, Code: "invalid", Detail: "body: is not JSON: error at byte 9",
				Errors: []fault.FieldError{{Detail: "body: is not JSON: error at byte 9"}},
			},
		},
		{
			name: "no body", method: "PUT", path: "/boats/boa_1",
			want: fault.Problem{
				Status: 422, Code: "invalid", Detail: "body: is required",
				Errors: []fault.FieldError{{Detail: "body: is required"}},
			},
		},
		{
			name: "a body over the limit", method: "PUT", path: "/boats/boa_1", body: `{"name": "` + strings.Repeat("x", 200) + `"}`,
			want: fault.Problem{Status: 413, Code: "too_large", Detail: "the body is larger than 100 bytes"},
		},
		{
			name: "the handler's error", method: "GET", path: "/boats/boa_gone",
			want: fault.Problem{Status: 404, Code: "not_found", Detail: `there is no boat "boa_gone"`},
		},
		{
			name: "an error that is ours to know", method: "GET", path: "/boats/boa_broken",
			want: fault.Problem{Status: 500, Code: "internal", Detail: "internal error"},
		},
		{
			name: "a panic", method: "GET", path: "/boats/boa_panic",
			want: fault.Problem{Status: 500, Code: "internal", Detail: "internal error"},
		},
		{
			name: "not ready, without saying where", method: "GET", path: "/readyz",
			want: fault.Problem{Status: 503, Code: "unavailable", Detail: "not ready"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			contentType := tt.contentType
			if contentType == "" {
				contentType = "application/json"
			}
			answer := do(t, s, tt.method, tt.path, contentType, tt.body)
			var got fault.Problem
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatalf("%q is not a problem: %v", answer.Body, err)
			}
			tt.want.Type, tt.want.Title = "about:blank", http.StatusText(tt.want.Status)
			sort := cmpopts.SortSlices(func(a, b fault.FieldError) bool { return a.Pointer < b.Pointer })
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(fault.Problem{}, "RequestID"), sort); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.RequestID == "" || got.RequestID != answer.Header().Get(httpserver.RequestIDHeader) {
				t.Errorf("request_id: got %q, header %q; want the same, not empty", got.RequestID, answer.Header().Get(httpserver.RequestIDHeader))
			}
			if answer.Code != got.Status || answer.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("got status %d of type %s", answer.Code, answer.Header().Get("Content-Type"))
			}
		})
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()
	s := newServer(t, httpserver.Config{})
	if got, want := do(t, s, "GET", "/boats/boa_1", "", "").Body.String(), "getBoat limit=50"; got != want {
		t.Errorf("query: got %q, want %q", got, want)
	}
	if got, want := do(t, s, "PUT", "/boats/boa_1", "application/json", `{"name": "Ann"}`).Body.String(), `putBoat {"masts":2,"name":"Ann"}`; got != want {
		t.Errorf("body: got %q, want %q", got, want)
	}
}

// A stream reaches the handler byte by byte: nobody holds it in memory first.
func TestStreamedBodiesAreNotReadBefore(t *testing.T) {
	t.Parallel()
	got := make(chan string, 2)
	s := newServer(t, httpserver.Config{})
	s.Router().PUT("/boats/:boat/cargo", func(c *gin.Context) {
		half := make([]byte, 4)
		for range 2 {
			if _, err := io.ReadFull(c.Request.Body, half); err != nil {
				got <- err.Error()
			}
			got <- string(half)
		}
	})
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	body, write := io.Pipe()
	go func() {
		_, _ = write.Write([]byte("half"))
		// Had somebody read the whole body before, this would wait in vain.
		if first := <-got; first != "half" {
			t.Errorf("first read: got %q", first)
		}
		_, _ = write.Write([]byte("rest"))
		_ = write.Close()
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/boats/boa_1/cargo", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if second := <-got; resp.StatusCode != http.StatusOK || second != "rest" {
		t.Errorf("got status %d and %q", resp.StatusCode, second)
	}
}

// The answer to a caller who asks too often says how it stands and when to come back; its
// body is not read.
func TestAttackTooManyRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t, httpserver.Config{Rates: httpserver.Rates{RequestsPerMinute: 60}})
	for n := range 60 {
		answer := do(t, s, "GET", "/boats/boa_1", "", "")
		if got, want := answer.Header().Get("RateLimit"), fmt.Sprintf(`"requests";r=%d;`, 59-n); answer.Code != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Fatalf("request %d: %d with RateLimit %s, want %s…", n+1, answer.Code, got, want)
		}
	}
	over := do(t, s, "GET", "/boats/boa_1", "", "")
	if over.Code != http.StatusTooManyRequests || over.Header().Get("Retry-After") != "1" ||
		over.Header().Get("RateLimit-Policy") != `"requests";q=60;w=60` || !strings.Contains(over.Body.String(), `"code":"rate_limited"`) {
		t.Errorf("one too many: %d %v %s", over.Code, over.Header(), over.Body)
	}
}

// At the end, waiting handlers must answer, and do.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{})
	s := newServer(t, httpserver.Config{Listener: listener, Drain: 30 * time.Second})
	s.Router().PUT("/boats/:boat/cargo", func(*gin.Context) {})
	s.Engine().GET("/wait", func(c *gin.Context) {
		close(waiting)
		select {
		case <-httpserver.Draining(c.Request.Context()):
			c.String(http.StatusOK, "drained")
		case <-c.Request.Context().Done():
			c.String(http.StatusOK, "cut off")
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + listener.Addr().String() + "/wait")
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-waiting
	cancel()
	if got := <-answered; got != "drained" {
		t.Errorf("the waiting request got %q, want %q", got, "drained")
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestRunRefusesAContractThatNobodyServes(t *testing.T) {
	t.Parallel()
	s := httpserver.New(httpserver.Config{Name: "test", Log: slog.New(slog.DiscardHandler), Spec: loadContract(t)})
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "GET /boats/:boat") {
			t.Errorf("panic: got %q, want the operation named", got)
		}
	}()
	_ = s.Run(t.Context())
}

// A value that is refused may be a secret: it is in no answer and in no log.
func TestRefusedValuesAreNotLogged(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-of-the-harbour"
	var log bytes.Buffer
	s := newServer(t, httpserver.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	answer := do(t, s, "PUT", "/boats/ada", "application/json", `{"name":"`+secret+`"}`)
	if answer.Code != http.StatusUnprocessableEntity || !strings.Contains(log.String(), "request served") {
		t.Fatalf("answered %d: %s\n%s", answer.Code, answer.Body, &log)
	}
	if text := answer.Body.String() + log.String(); strings.Contains(text, secret) {
		t.Errorf("the value shows:\n%s", text)
	}
}

func newServer(t *testing.T, cfg httpserver.Config) *httpserver.Server {
	t.Helper()
	cfg.Name, cfg.Spec = "test", loadContract(t)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Middleware == nil {
		cfg.Middleware = []gin.HandlerFunc{func(c *gin.Context) {
			if err := httpserver.Proven(c, "caller"); err != nil {
				httpserver.WriteProblem(c, err)
			}
		}}
	}
	s := httpserver.New(cfg)
	s.Router().GET("/boats/:boat", func(c *gin.Context) {
		switch boat := c.Param("boat"); boat {
		case "boa_gone":
			httpserver.HandlerError(c, fault.Newf(fault.ErrNotFound, "there is no boat %q", boat))
		case "boa_broken":
			httpserver.HandlerError(c, errors.New("password=hunter2"))
		case "boa_panic":
			panic("password=hunter2")
		default:
			c.String(http.StatusOK, "%s limit=%s", httpserver.OperationID(c), c.Query("limit"))
		}
	})
	s.Router().PUT("/boats/:boat", func(c *gin.Context) {
		body, err := io.ReadAll(c.Request.Body)
		if err != nil {
			httpserver.RequestError(c, err)
			return
		}
		c.String(http.StatusOK, "%s %s", httpserver.OperationID(c), body)
	})
	return s
}

func loadContract(t *testing.T) *openapi3.T {
	t.Helper()
	spec, err := openapi3.NewLoader().LoadFromData([]byte(contract))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func do(t *testing.T, s *httpserver.Server, method, path, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req := httptest.NewRequestWithContext(t.Context(), method, path, reader)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, req)
	return answer
}
