//go:build linux

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// three is a control plane with three installs, of which each deploy removes a
// component; it does that only with the install's own name.
func three(t *testing.T) (url string, deployed func() []string) {
	t.Helper()
	var mu sync.Mutex
	var done []string
	answer := func(w http.ResponseWriter, status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /installs", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, ctlapi.InstallPage{Items: []ctlapi.Install{{ID: "ins_1", Name: "acme"}, {ID: "ins_2", Name: "beta"}, {ID: "ins_3", Name: "cove"}}})
	})
	mux.HandleFunc("GET /installs/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, ctlapi.Install{ID: "ins_1", Name: r.PathValue("name")})
	})
	mux.HandleFunc("POST /installs/{name}/workflows", func(w http.ResponseWriter, r *http.Request) {
		var in ctlapi.WorkflowRequest
		_ = json.NewDecoder(r.Body).Decode(&in)
		name := r.PathValue("name")
		if in.Confirm != name {
			items := []ctlapi.ProblemItem{{Message: "component metrics"}}
			answer(w, http.StatusUnprocessableEntity, ctlapi.Problem{Status: http.StatusUnprocessableEntity, Title: "x", Code: "not_confirmed", Errors: &items})
			return
		}
		mu.Lock()
		done = append(done, name)
		mu.Unlock()
		answer(w, http.StatusAccepted, ctlapi.Workflow{ID: "wfl_" + name, Kind: ctlapi.WorkflowKindDeploy, Install: ctlapi.Ref{Name: name}})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
}

func TestEachInstallIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		args     []string
		code     int
		deployed []string
		says     string
	}{
		{"two of three", []string{"--label", "tier=free", "--confirm", "acme", "--confirm", "cove"}, 64, []string{"acme", "cove"},
			"not confirmed, so nothing was deployed to beta; to deploy there, add --confirm beta\n"},
		{"one of three", []string{"--app", "hello", "--confirm", "beta"}, 64, []string{"beta"}, "add --confirm acme --confirm cove\n"},
		{"all", []string{"--app", "hello", "--confirm", "acme", "--confirm", "beta", "--confirm", "cove"}, 0, []string{"acme", "beta", "cove"}, ""},
		{"none", []string{"--app", "hello"}, 64, nil, "add --confirm acme --confirm beta --confirm cove\n"},
		{"a name that does not match", []string{"--app", "hello", "--confirm", "acme", "--confirm", "acm"}, 64, nil, "--confirm acm names none of the live installs"},
		{"two names for one install", []string{"acme", "--confirm", "acme", "--confirm", "beta"}, 64, nil, "give --confirm once"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url, deployed := three(t)
			code, _, stderr := berth(t, map[string]string{"BERTH_URL": url, "BERTH_TOKEN": "bat_x", "HOME": t.TempDir()}, append([]string{"deploy"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stderr, tc.says) {
				t.Errorf("exit code %d, want %d; says %q, want %q in it", code, tc.code, stderr, tc.says)
			}
			if diff := cmp.Diff(tc.deployed, deployed()); diff != "" {
				t.Errorf("deployed (-want +got):\n%s", diff)
			}
		})
	}
}
