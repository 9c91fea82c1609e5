//go:build linux

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// guarded is a control plane with the install acme of the app hello that removes
// things only when they are confirmed, and keeps what it removed.
type guarded struct {
	*httptest.Server
	mu      sync.Mutex
	asked   int // requests to remove something
	removed []string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{}
	mux := http.NewServeMux()
	answer := func(status int, body any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body)
		}
	}
	remove := func(what, name string, status int, body any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			confirm := r.URL.Query().Get("confirm")
			if r.Method == http.MethodPost {
				var in struct{ Kind, Confirm string }
				_ = json.NewDecoder(r.Body).Decode(&in)
				what, confirm = in.Kind, in.Confirm
			}
			g.mu.Lock()
			g.asked++
			if confirm == name {
				g.removed = append(g.removed, what)
			}
			g.mu.Unlock()
			if confirm == name {
				answer(status, body)(w, r)
				return
			}
			items := []ctlapi.ProblemItem{{Message: "component metrics"}, {Message: "component web"}}
			answer(http.StatusUnprocessableEntity, ctlapi.Problem{Status: http.StatusUnprocessableEntity, Title: "x", Code: "not_confirmed", Errors: &items})(w, r)
		}
	}
	mux.HandleFunc("GET /installs/acme", answer(http.StatusOK, ctlapi.Install{ID: "ins_1", Name: "acme", App: ctlapi.Ref{Name: "hello"}}))
	mux.HandleFunc("GET /installs/acme/resources", answer(http.StatusOK, ctlapi.ResourcePage{Items: []ctlapi.Resource{
		{Kind: ctlapi.ResourceKindStack, Name: "stack"}, {Kind: ctlapi.ResourceKindComponent, Name: "web", State: ctlapi.ResourceStateLive},
		{Kind: ctlapi.ResourceKindComponent, Name: "gone", State: ctlapi.ResourceStateAbsent},
	}}))
	mux.HandleFunc("GET /releases/hello@1", answer(http.StatusOK, ctlapi.Release{ID: "rel_1", Number: 1}))
	mux.HandleFunc("GET /apps/hello", answer(http.StatusOK, ctlapi.App{ID: "app_1", Name: "hello"}))
	mux.HandleFunc("POST /installs/acme/workflows", remove("", "acme", http.StatusAccepted, ctlapi.Workflow{ID: "wfl_1", State: ctlapi.WorkflowStateSucceeded}))
	mux.HandleFunc("GET /workflows/wfl_1", answer(http.StatusOK, ctlapi.Workflow{ID: "wfl_1", State: ctlapi.WorkflowStateSucceeded}))
	mux.HandleFunc("GET /workflows/wfl_1/events", answer(http.StatusOK, struct{}{}))
	mux.HandleFunc("DELETE /installs/ins_1", remove("install", "acme", http.StatusNoContent, nil))
	mux.HandleFunc("DELETE /apps/app_1", remove("app", "hello", http.StatusNoContent, nil))
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	return g
}

// deeds are the commands that remove something, with what a person sees of it
// and the name to type.
var deeds = []struct {
	args    []string
	shows   string
	name    string
	removes string
}{
	{[]string{"installs", "deprovision", "acme"}, "component web (live)", "acme", "deprovision"},
	{[]string{"installs", "teardown", "acme", "metrics"}, "component metrics", "acme", "teardown"},
	{[]string{"installs", "teardown", "acme", "--orphans"}, "component metrics", "acme", "remove_orphans"},
	{[]string{"installs", "deprovision", "acme", "--sandbox"}, "component metrics", "acme", "deprovision_sandbox"},
	{[]string{"deploy", "acme"}, "component metrics", "acme", "deploy"},
	{[]string{"rollback", "acme", "--to", "1"}, "component metrics", "acme", "rollback"},
	{[]string{"installs", "provision", "acme"}, "component metrics", "acme", "provision"},
	{[]string{"installs", "forget", "acme"}, "its inputs, state and history", "acme", "install"},
	{[]string{"apps", "delete", "hello"}, "its configs, releases and variables", "hello", "app"},
}

func TestDestructionInScripts(t *testing.T) {
	t.Parallel()
	for _, deed := range deeds {
		for _, tc := range []struct {
			name string
			more []string
			code int
			does bool
			says string
		}{
			{name: "without the name", code: 64, says: "use --confirm " + deed.name},
			{name: "approving all changes", more: []string{"--auto-approve"}, code: 64, says: "use --confirm " + deed.name},
			{name: "another name", more: []string{"--confirm", "other"}, code: 64, says: "--confirm other is not the name"},
			{name: "yes is not the name", more: []string{"--confirm", "yes"}, code: 64, says: "nothing was done"},
			{name: "the name", more: []string{"--confirm", deed.name}, does: true},
		} {
			if tc.more != nil && tc.more[0] == "--auto-approve" && (deed.removes == "install" || deed.removes == "app") {
				continue // they have no changes to approve
			}
			t.Run(strings.Join(deed.args, " ")+", "+tc.name, func(t *testing.T) {
				t.Parallel()
				g := newGuarded(t)
				code, stdout, stderr := berth(t, map[string]string{"BERTH_URL": g.URL, "BERTH_TOKEN": "bat_x", "HOME": t.TempDir()}, append(append([]string{}, deed.args...), tc.more...)...)
				if code != tc.code || !strings.Contains(stderr, tc.says) {
					t.Errorf("exit code %d, want %d\nstdout %s\nstderr %s, want %q in it", code, tc.code, stdout, stderr, tc.says)
				}
				if !tc.does && len(g.removed) > 0 || tc.does && (len(g.removed) != 1 || g.removed[0] != deed.removes) {
					t.Errorf("removed %q", g.removed)
				}
			})
		}
	}
}

func TestDestructionAtATerminal(t *testing.T) {
	t.Parallel()
	for _, deed := range deeds {
		for _, tc := range []struct {
			name, typed string
			does        bool
		}{
			{"the name", deed.name, true}, {"yes", "yes", false}, {"only Enter", "", false}, {"a part of it", deed.name[:2], false},
		} {
			t.Run(strings.Join(deed.args, " ")+", "+tc.name, func(t *testing.T) {
				t.Parallel()
				g := newGuarded(t)
				env := map[string]string{"BERTH_URL": g.URL, "BERTH_TOKEN": "bat_x", "HOME": t.TempDir(), "NO_COLOR": "1"}
				screen, person := pty(t, 40)
				var seen reading
				go seen.from(person)
				code := make(chan int, 1)
				go func() {
					code <- run(t.Context(), deed.args, command.Streams{In: screen, Out: screen, Err: screen}, func(name string) string { return env[name] })
				}()
				seen.waitFor(t, "Type "+deed.name)
				if !strings.Contains(seen.String(), deed.shows) {
					t.Errorf("what goes (%s) is not on the screen:\n%s", deed.shows, &seen)
				}
				if _, err := person.WriteString(tc.typed + "\n"); err != nil {
					t.Fatal(err)
				}
				if got := <-code; (got == 0) != tc.does {
					t.Errorf("exit code %d\n%s", got, &seen)
				}
				if (len(g.removed) == 1) != tc.does {
					t.Errorf("removed %q", g.removed)
				}
			})
		}
	}
}

// What is never anything but a removal is not even asked for before its name is
// given: no control plane can mistake the question for the order.
func TestRemovalIsNotTriedOut(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"installs", "deprovision", "acme"}, {"installs", "forget", "acme"}, {"apps", "delete", "hello"}} {
		g := newGuarded(t)
		code, _, stderr := berth(t, map[string]string{"BERTH_URL": g.URL, "BERTH_TOKEN": "bat_x", "HOME": t.TempDir()}, args...)
		if code != 64 || g.asked != 0 {
			t.Errorf("%v: exit code %d after %d requests to remove something: %s", args, code, g.asked, stderr)
		}
	}
}
