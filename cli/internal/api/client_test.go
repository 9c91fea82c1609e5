package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// service answers over real HTTP; what it answers is the test's.
func service(t *testing.T, handler http.HandlerFunc) *api.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := api.New(api.Options{URL: server.URL, Token: "brt_test", Org: "initech"})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestProblemsAreErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind, body string
		status           int
		want, remedy     string
		lines            []string
		refused          bool
	}{
		{
			name: "conflict", kind: "application/problem+json", status: 409,
			body: `{"type":"about:blank","title":"Conflict","status":409,"code":"conflict","detail":"install \"acme\" already exists","remedy":"choose another name"}`,
			want: `install "acme" already exists`, remedy: "choose another name",
		},
		{
			name: "invalid folder", kind: "application/problem+json", status: 422,
			body: `{"type":"about:blank","title":"Unprocessable","status":422,"code":"config_invalid","detail":"2 errors",
				"errors":[{"file":"components/api.toml","line":14,"column":3,"message":"unknown key"},{"pointer":"/inputs/x","message":"too long"},{"message":"bare"}]}`,
			want: "2 errors", lines: []string{"components/api.toml:14:3 unknown key", "/inputs/x too long", "bare"},
		},
		{
			name: "inputs", kind: "application/problem+json", status: 422,
			body: `{"type":"about:blank","title":"Unprocessable","status":422,"code":"inputs_invalid","detail":"the inputs do not match the app",
				"errors":[{"pointer":"/inputs/copis","code":"unknown_input","message":"the app has no input \"copis\"; did you mean copies?"},{"pointer":"/inputs/token","code":"missing","message":"input \"token\" is required"}]}`,
			want: "the inputs do not match the app", remedy: "give it with --input NAME=VALUE",
			lines: []string{`the app has no input "copis"; did you mean copies?`, `input "token" is required`},
		},
		{
			name: "unknown token", kind: "application/problem+json", status: 401,
			body: `{"type":"about:blank","title":"Unauthorized","status":401,"code":"unauthenticated","remedy":"send a header"}`,
			want: "unauthorized", remedy: "check BERTH_TOKEN", refused: true,
		},
		{
			name: "not allowed", kind: "application/problem+json", status: 403,
			body: `{"type":"about:blank","title":"Forbidden","status":403,"code":"forbidden","detail":"needs the role admin"}`,
			want: "needs the role admin", remedy: "ask an admin", refused: true,
		},
		{
			name: "fault of the service", kind: "application/problem+json", status: 500,
			body: `{"type":"about:blank","title":"Internal Server Error","status":500,"code":"internal","request_id":"req_1"}`,
			want: "internal server error (request req_1)",
		},
		{name: "no problem at all", kind: "text/plain", status: 404, body: "404 page not found", want: "is not a Berth"},
		{name: "a proxy", kind: "text/plain", status: 407, body: "who are you?", want: "GET /me answered 407 Proxy Authentication Required"},
		{
			name: "nothing but not found", kind: "application/problem+json", status: 404,
			body: `{"type":"about:blank","title":"Not Found","status":404,"code":"not_found","detail":"not found"}`, want: "not found",
		},
		{
			name: "one fault is not told twice", kind: "application/problem+json", status: 400,
			body: `{"type":"about:blank","title":"Bad Request","status":400,"code":"invalid","detail":"/name: is too long","errors":[{"pointer":"/name","message":"is too long"}]}`,
			want: "/name: is too long",
		},
		{name: "some web page", kind: "text/html", status: 200, body: "<html>", want: "is not a Berth"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			client := service(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.status)
				_, _ = fmt.Fprint(w, tc.body)
			})
			_, err := client.GetMeWithResponse(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
			var problem *api.Problem
			if !errors.As(err, &problem) {
				return
			}
			if !strings.Contains(problem.Remedy(), tc.remedy) || problem.Refused() != tc.refused {
				t.Errorf("remedy %q, refused %t", problem.Remedy(), problem.Refused())
			}
			if diff := cmp.Diff(tc.lines, problem.Lines()); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestartingServiceIsWaitedForWithTheSameKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var keys []string
	client := service(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if r.Header.Get("Authorization") != "Bearer brt_test" || r.Header.Get("Berth-Org") != "initech" {
			t.Errorf("headers: %v", r.Header)
		}
		if len(keys) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"id":"app_1","name":"hello"}`)
	})
	resp, err := client.CreateAppWithResponse(t.Context(), &ctlapi.CreateAppParams{}, ctlapi.AppRequest{Name: "hello"})
	if err != nil || resp.JSON201 == nil {
		t.Fatalf("got %+v, %v", resp, err)
	}
	if len(keys) != 3 || keys[0] == "" || len(slices.Compact(keys)) != 1 {
		t.Errorf("keys of the tries: %q, want one key three times", keys)
	}
}

func TestThingsWithoutAWordAreNamedByTheirPath(t *testing.T) {
	t.Parallel()
	client := service(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"title":"Not Found","status":404,"detail":"not found"}`)
	})
	_, err := client.CancelWorkflowWithResponse(t.Context(), "wfl_1", &ctlapi.CancelWorkflowParams{})
	if err == nil || err.Error() != `there is no workflow "wfl_1"` {
		t.Errorf("got %v, want an error that names the workflow", err)
	}
}

func TestLongWaitsAreToldOnceWithTheirReason(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprint(w, `{"title":"Service Unavailable","status":503,"detail":"the database is not available"}`)
	}))
	t.Cleanup(server.Close)
	var told []string
	client, err := api.New(api.Options{URL: server.URL, Token: "brt_x", Patience: 4 * time.Second, Say: func(line string) { told = append(told, line) }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetMeWithResponse(t.Context()); err == nil {
		t.Error("no error from a service that is away")
	}
	if diff := cmp.Diff([]string{"waiting for Berth, up to 4s: the database is not available"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestNobodyThereIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	client, err := api.New(api.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	_, err = client.GetMeWithResponse(t.Context())
	var unreachable *api.Unreachable
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(unreachable.Remedy(), "berth up") {
		t.Errorf("got %v", err)
	}
}

func TestFollowResumesWithoutGaps(t *testing.T) {
	t.Parallel()
	var asked []string
	event := func(w http.ResponseWriter, seq int) {
		_, _ = fmt.Fprintf(w, "id: %d\nevent: step\ndata: {\"seq\":%d,\"kind\":\"step\",\"body\":{}}\n\n", seq, seq)
	}
	client := service(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("after_seq"))
		w.Header().Set("Content-Type", "text/event-stream")
		switch len(asked) {
		case 1: // breaks off in the middle of an event
			event(w, 1)
			_, _ = fmt.Fprint(w, ": still here\n\n")
			event(w, 2)
			_, _ = fmt.Fprint(w, "id: 3\nda")
		case 2: // repeats one, then leaves one out
			event(w, 2)
			event(w, 4)
		default:
			event(w, 3)
			event(w, 4)
			_, _ = fmt.Fprint(w, "event: end\ndata: {}\n\n")
		}
	})
	var got []int64
	err := client.FollowWorkflow(t.Context(), "wfl_1", 0, func(e api.Event) error {
		got = append(got, e.Seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3, 4}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0", "2", "2"}, asked); diff != "" {
		t.Errorf("asked after (-want +got):\n%s", diff)
	}
}

func TestFollowEndsWithItsContextAndWithItsReader(t *testing.T) {
	t.Parallel()
	client := service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "data: {\"seq\":1,\"kind\":\"step\",\"body\":{}}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	err := client.FollowWorkflow(ctx, "wfl_1", 0, func(api.Event) error { cancel(enough); return nil })
	if !errors.Is(err, enough) {
		t.Errorf("context ended: got %v", err)
	}
	err = client.FollowWorkflow(t.Context(), "wfl_1", 0, func(api.Event) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("reader ended: got %v", err)
	}
}

// A redirect must not take the token along, to another port either.
func TestRedirectsGetNoToken(t *testing.T) {
	t.Parallel()
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("Authorization"))
	}))
	t.Cleanup(thief.Close)
	client := service(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	_, err := client.GetMeWithResponse(t.Context())
	var other *api.NoBerth
	if !errors.As(err, &other) || !strings.Contains(other.Remedy(), "BERTH_URL") {
		t.Errorf("got %v", err)
	}
	if len(stolen) > 0 {
		t.Errorf("the other port got %q", stolen)
	}
}
