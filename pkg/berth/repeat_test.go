package berth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A POST meets all that may pass: it carries one key and one body each time.
func TestPostIsRepeatedWithItsKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var keys, bodies []string
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		keys, bodies = append(keys, r.Header.Get("Idempotency-Key")), append(bodies, string(body))
		if r.Header.Get("Authorization") != "Bearer "+token || r.Header.Get("Berth-Org") != "initech" {
			t.Errorf("headers: %v", r.Header)
		}
		switch len(keys) {
		case 1:
			reply(w, http.StatusServiceUnavailable, `{"title":"Service Unavailable","status":503,"code":"unavailable"}`)
		case 2:
			reply(w, http.StatusBadGateway, "")
		case 3:
			w.Header().Set("Retry-After", "0")
			reply(w, http.StatusTooManyRequests, "")
		case 4:
			panic(http.ErrAbortHandler) // the connection breaks off
		case 5: // and in the middle of the answer
			w.Header().Set("Content-Length", "100")
			reply(w, http.StatusCreated, `{"id":"app_1",`)
		default:
			reply(w, http.StatusCreated, `{"id":"app_1","name":"hello"}`)
		}
	})
	c := client(t, server, func(o *berth.Options) { o.Org = "initech" })
	resp, err := c.CreateAppWithResponse(t.Context(), &ctlapi.CreateAppParams{}, ctlapi.AppRequest{Name: "hello"})
	if err != nil || resp.JSON201 == nil || resp.JSON201.ID != "app_1" {
		t.Fatalf("got %+v, %v", resp, err)
	}
	if len(keys) != 6 || keys[0] == "" || len(slices.Compact(keys)) != 1 {
		t.Errorf("keys of the tries: %q, want one key six times", keys)
	}
	if first := bodies[0]; !strings.Contains(first, "hello") || len(slices.Compact(bodies)) != 1 {
		t.Errorf("bodies of the tries: %q, want one body each time", bodies)
	}

	// Another call is another deed, and the caller's own key wins.
	for _, own := range []*string{nil, new("mine")} {
		if _, err := c.CreateAppWithResponse(t.Context(), &ctlapi.CreateAppParams{IdempotencyKey: own}, ctlapi.AppRequest{Name: "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	if last := keys[len(keys)-2:]; last[0] == keys[0] || last[1] != "mine" {
		t.Errorf("keys of further calls: %q", last)
	}
}

func TestWhatIsRefusedIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		call   func(*berth.Client) error
		status int
	}{
		{
			name:   "a fault of the service",
			answer: func(w http.ResponseWriter) { reply(w, 500, `{"title":"x","status":500,"code":"internal"}`) },
			status: 500,
		},
		{
			name:   "too many requests, without a time",
			answer: func(w http.ResponseWriter) { reply(w, 429, "") },
			status: 429,
		},
		{
			name: "too many requests for an hour",
			answer: func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "3600")
				reply(w, 429, "")
			},
			status: 429,
		},
		{
			name:   "a conditional change that may have happened",
			answer: func(w http.ResponseWriter) { reply(w, 502, "") },
			call: func(c *berth.Client) error {
				_, err := c.UpdateInstallWithResponse(context.Background(), "acme", &ctlapi.UpdateInstallParams{IfMatch: new(`"1"`)}, ctlapi.InstallUpdate{})
				return err
			},
			status: 502,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := service(t, func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				tc.answer(w)
			})
			call := tc.call
			if call == nil {
				call = func(c *berth.Client) error {
					_, err := c.GetMeWithResponse(context.Background())
					return err
				}
			}
			err := call(client(t, server))
			var problem *berth.Problem
			if !errors.As(err, &problem) || problem.Status != tc.status || asked.Load() != 1 {
				t.Errorf("got %v after %d requests, want status %d after one", err, asked.Load(), tc.status)
			}
		})
	}
}

func TestCallerEndsThePause(t *testing.T) {
	t.Parallel()
	server := service(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "4")
		reply(w, http.StatusServiceUnavailable, "")
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
	began := time.Now()
	_, err := client(t, server).GetMeWithResponse(ctx)
	if took := time.Since(began); !errors.Is(err, enough) || took > 2*time.Second {
		t.Errorf("got %v after %s, want the cause at once", err, took)
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	server := service(t, http.NotFound)
	patient := client(t, server, func(o *berth.Options) { o.Patience = 300 * time.Millisecond })
	impatient := client(t, server, func(o *berth.Options) { o.Impatient = true })
	server.Close()
	var unreachable *berth.Unreachable
	if _, err := patient.GetMeWithResponse(t.Context()); !errors.As(err, &unreachable) || unreachable.URL != server.URL {
		t.Errorf("after its patience: got %v", err)
	}
	began := time.Now()
	if _, err := impatient.GetMeWithResponse(t.Context()); !errors.As(err, &unreachable) || time.Since(began) > time.Second {
		t.Errorf("impatient: got %v after %s", err, time.Since(began))
	}
}

func TestLongWaitIsToldOnce(t *testing.T) {
	t.Parallel()
	server := service(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusServiceUnavailable, `{"title":"Service Unavailable","status":503,"detail":"the database is not available"}`)
	})
	var told []string
	c := client(t, server, func(o *berth.Options) {
		o.Patience, o.Waiting = 4*time.Second, func(why string) { told = append(told, why) }
	})
	if _, err := c.GetMeWithResponse(t.Context()); err == nil {
		t.Error("no error from a service that is away")
	}
	if diff := cmp.Diff([]string{"the database is not available"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// Events have to be there before the answer ends.
func TestStreamsAreNotReadAhead(t *testing.T) {
	t.Parallel()
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	resp, err := client(t, server).StreamWorkflowEvents(t.Context(), "wfl_1", &ctlapi.StreamWorkflowEventsParams{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got := make([]byte, 10)
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "data: {}\n\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Who waits for news is held longer than the patience, and its service may end
// meanwhile.
func TestHeldAnswerBreaksOff(t *testing.T) {
	t.Parallel()
	const patience = 500 * time.Millisecond
	var asked atomic.Int32
	server := service(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(patience + 300*time.Millisecond)
			panic(http.ErrAbortHandler)
		}
		reply(w, http.StatusOK, `{"id":"wfl_1"}`)
	})
	c := client(t, server, func(o *berth.Options) { o.Patience = patience })
	resp, err := c.GetWorkflowWithResponse(t.Context(), "wfl_1", nil)
	if err != nil || resp.JSON200 == nil || asked.Load() != 2 {
		t.Errorf("got %+v, %v after %d requests", resp, err, asked.Load())
	}
}
