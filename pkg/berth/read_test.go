package berth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestProblem(t *testing.T) {
	t.Parallel()
	server := service(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusConflict, `{"type":"about:blank","title":"Conflict","status":409,"code":"conflict","detail":"install \"acme\" already exists",
			"remedy":"choose another name","request_id":"req_1","errors":[{"pointer":"/name","message":"is taken"}]}`)
	})
	_, err := client(t, server).GetMeWithResponse(t.Context())
	var problem *berth.Problem
	if !errors.As(err, &problem) {
		t.Fatalf("got %v, want a problem", err)
	}
	want := &berth.Problem{
		Status: 409, Code: "conflict", Title: "Conflict", Detail: `install "acme" already exists`, Remedy: "choose another name", RequestID: "req_1",
		Errors: []ctlapi.ProblemItem{{Pointer: new("/name"), Message: "is taken"}},
	}
	if diff := cmp.Diff(want, problem); diff != "" {
		t.Errorf("problem (-want +got):\n%s", diff)
	}
	if got := err.Error(); got != `install "acme" already exists (choose another name)` || berth.CodeOf(err) != "conflict" {
		t.Errorf("it says %q, code %q", got, berth.CodeOf(err))
	}
}

func TestOthersThatAnswer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind, body string
		status           int
		want             string
	}{
		{"a web page", "text/html", "<html>", 200, "answers, but it is not a Berth control plane"},
		{"another service", "text/plain", "404 page not found", 404, "answers, but it is not a Berth control plane"},
		{"a proxy", "text/plain", "who are you?", 407, "GET /me answered 407 Proxy Authentication Required"},
		{"JSON of somebody", "application/json", `{"error":"x"}`, 403, "GET /me answered 403 Forbidden"},
	} {
		server := service(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tc.kind)
			w.WriteHeader(tc.status)
			_, _ = fmt.Fprint(w, tc.body)
		})
		_, err := client(t, server).GetMeWithResponse(t.Context())
		if err == nil || !cmp.Equal(tc.want, after(err.Error(), server.Listener.Addr().String()+" ")) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func after(text, prefix string) string {
	if len(text) > len(prefix) && text[:len(prefix)] == prefix {
		return text[len(prefix):]
	}
	return text
}

func TestLists(t *testing.T) {
	t.Parallel()
	var asked []string
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch r.URL.Query().Get("after") {
		case "":
			reply(w, 200, `{"items":[{"name":"a"},{"name":"b"}],"next":"n1"}`)
		case "n1":
			reply(w, 200, `{"items":[],"next":"n2"}`)
		case "n2":
			reply(w, 200, `{"items":[{"name":"c"}]}`)
		case "stuck":
			reply(w, 200, `{"items":[],"next":"stuck"}`)
		case "odd":
			w.Header().Set("Content-Type", "text/plain")
		default:
			reply(w, 404, `{"title":"Not Found","status":404,"code":"not_found"}`)
		}
	})
	c := client(t, server)
	names := func(which ctlapi.ListInstallsParams, most int) (got []string, err error) {
		for install, err := range c.Installs(t.Context(), which) {
			if err != nil {
				return got, err
			}
			if got = append(got, install.Name); len(got) == most {
				break
			}
		}
		return got, nil
	}

	got, err := names(ctlapi.ListInstallsParams{Limit: new(2), App: new("hello")}, 0)
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" || err != nil {
		t.Errorf("all (-want +got): %v\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"app=hello&limit=2", "app=hello&limit=2&after=n1", "app=hello&limit=2&after=n2"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}

	asked = nil
	if got, err := names(ctlapi.ListInstallsParams{}, 1); len(got) != 1 || err != nil || len(asked) != 1 || asked[0] != "limit=500" {
		t.Errorf("one only: got %v, %v; asked %v", got, err, asked)
	}
	if _, err := names(ctlapi.ListInstallsParams{After: new("gone")}, 0); berth.CodeOf(err) != "not_found" {
		t.Errorf("in the middle: got %v", err)
	}
	if _, err := names(ctlapi.ListInstallsParams{After: new("stuck")}, 0); err == nil {
		t.Error("no error of a list that does not continue")
	}
	if _, err := names(ctlapi.ListInstallsParams{After: new("odd")}, 0); !errors.Is(err, berth.ErrNotUnderstood) {
		t.Errorf("an odd answer: got %v", err)
	}

	// A list can be ranged over twice, from its beginning.
	asked = nil
	list := c.Apps(t.Context(), ctlapi.ListAppsParams{})
	for range 2 {
		count := 0
		for _, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			count++
		}
		if count != 3 {
			t.Errorf("%d apps, want 3", count)
		}
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	var asked []string
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		switch len(asked) {
		case 1:
			reply(w, 200, `{"id":"wfl_1","state":"queued","version":0}`)
		case 2:
			reply(w, 200, `{"id":"wfl_1","state":"running","version":3}`)
		case 3:
			reply(w, 200, `{"id":"wfl_1","state":"waiting","version":5}`)
		default:
			reply(w, 200, `{"id":"wfl_1","state":"failed","version":9}`)
		}
	})
	c := client(t, server)
	w, err := c.AwaitWorkflow(t.Context(), "wfl_1", nil)
	if err != nil || w.State != ctlapi.WorkflowStateFailed {
		t.Fatalf("got %+v, %v", w, err)
	}
	want := []string{
		"/workflows/wfl_1?after_version=0",
		"/workflows/wfl_1?wait=30s&after_version=0",
		"/workflows/wfl_1?wait=30s&after_version=3",
		"/workflows/wfl_1?wait=30s&after_version=5",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}

	asked = nil
	w, err = c.AwaitWorkflow(t.Context(), "wfl_1", func(w *ctlapi.Workflow) bool { return w.State == ctlapi.WorkflowStateWaiting })
	if err != nil || w.State != ctlapi.WorkflowStateWaiting || len(asked) != 3 {
		t.Errorf("sooner: got %+v, %v after %d questions", w, err, len(asked))
	}
}

func TestAwaitConfigAndBuild(t *testing.T) {
	t.Parallel()
	var questions atomic.Int32
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		done := questions.Add(1)%2 == 0
		switch {
		case r.URL.Path == "/configs/cfg_1" && done:
			reply(w, 200, `{"id":"cfg_1","state":"released","version":2}`)
		case r.URL.Path == "/configs/cfg_1":
			reply(w, 200, `{"id":"cfg_1","state":"building","version":1}`)
		case done:
			reply(w, 200, `{"id":"bld_1","state":"cancelled","version":2}`)
		default:
			reply(w, 200, `{"id":"bld_1","state":"running","version":1}`)
		}
	})
	c := client(t, server)
	if config, err := c.AwaitConfig(t.Context(), "cfg_1"); err != nil || config.State != ctlapi.ConfigStateReleased {
		t.Errorf("config: got %+v, %v", config, err)
	}
	if build, err := c.AwaitBuild(t.Context(), "bld_1"); err != nil || build.State != ctlapi.BuildStateCancelled {
		t.Errorf("build: got %+v, %v", build, err)
	}
}

// A proxy that answers from its memory holds nothing back.
func TestAwaitDoesNotHammer(t *testing.T) {
	t.Parallel()
	var questions atomic.Int32
	server := service(t, func(w http.ResponseWriter, _ *http.Request) {
		questions.Add(1)
		reply(w, 200, `{"id":"wfl_1","state":"running","version":3}`)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if _, err := client(t, server).AwaitWorkflow(ctx, "wfl_1", nil); err == nil {
		t.Error("no error, though it never ended")
	}
	if n := questions.Load(); n > 4 {
		t.Errorf("%d questions in 1.5 s, want at most 4", n)
	}
}
