package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// The value of a sensitive input cannot be an argument: the request is not even
// sent. From a file it is.
func TestAttackSecretsAsArguments(t *testing.T) {
	t.Parallel()
	var sent []map[string]string
	answer := func(status int, body any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				var in struct{ Inputs, Values map[string]string }
				_ = json.NewDecoder(r.Body).Decode(&in)
				for name, value := range in.Values {
					in.Inputs = map[string]string{name: value}
				}
				sent = append(sent, in.Inputs)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body)
		}
	}
	inputs := ctlapi.Inputs{Items: []ctlapi.InputValue{{Name: "token", Sensitive: true}, {Name: "region"}}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apps/hello", answer(http.StatusOK, ctlapi.App{ID: "app_1", Name: "hello", Config: &ctlapi.NumberRef{ID: "cfg_1"}}))
	mux.HandleFunc("GET /configs/cfg_1", answer(http.StatusOK, ctlapi.Config{ID: "cfg_1", Inputs: []ctlapi.InputDefinition{{Name: "token", Sensitive: true}, {Name: "region"}}}))
	mux.HandleFunc("POST /installs", answer(http.StatusCreated, ctlapi.Install{ID: "ins_1", Name: "acme"}))
	mux.HandleFunc("GET /installs/acme/inputs", answer(http.StatusOK, inputs))
	mux.HandleFunc("PUT /installs/acme/inputs", answer(http.StatusOK, inputs))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "inputs")
	if err := os.WriteFile(file, []byte("token=hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	create := []string{"installs", "create", "acme", "--app", "hello"}
	set := []string{"installs", "inputs", "acme"}
	for _, tc := range []struct {
		args []string
		code int
		says string
		sent []map[string]string
	}{
		{append(create, "--input", "token=hunter2"), command.ExitUsage, "--input token without a value", nil},
		{append(create, "--input", "token"), command.ExitUsage, "this is not a terminal", nil},
		{append(create, "--input-file", file), command.ExitOK, "", []map[string]string{{"token": "hunter2"}}},
		{append(create, "--input", "region=eu"), command.ExitOK, "", []map[string]string{{"region": "eu"}}},
		{append(set, "--set", "token=hunter2"), command.ExitUsage, "--set token without a value", nil},
		{append(set, "--set", "token=hunter2", "--plan"), command.ExitUsage, "--set token without a value", nil},
		{append(set, "--input-file", file), command.ExitOK, "", []map[string]string{{"token": "hunter2"}}},
	} {
		sent = nil
		code, out, errOut := berth(t, map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x"}, tc.args...)
		if code != tc.code || !strings.Contains(errOut, tc.says) || strings.Contains(out+errOut, "hunter2") {
			t.Errorf("%v: exit %d\n%s%s", tc.args, code, out, errOut)
		}
		if diff := cmp.Diff(tc.sent, sent); diff != "" {
			t.Errorf("%v sent (-want +got):\n%s", tc.args, diff)
		}
	}
}
