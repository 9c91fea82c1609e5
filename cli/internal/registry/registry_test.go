package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/registry"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// person types `berth registry …` with a home of their own.
type person struct {
	t    *testing.T
	home string
	host string
	now  time.Time
}

func (p *person) types(args ...string) (stdout, stderr string, err error) {
	p.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in ctlapi.RegistryTokenRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			p.t.Error(err)
		}
		out := ctlapi.RegistryToken{Host: p.host, Username: "ada", Secret: "brg_one", Repositories: "org_1", ExpiresAt: p.now.Add(time.Duration(*in.Minutes) * time.Minute)}
		if in.App != nil {
			out.Repositories += "/" + *in.App
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(out)
	}))
	defer server.Close()
	var out, errOut bytes.Buffer
	doors := registry.Doors{
		Call: func(fn func(context.Context, *api.Client, []string) error) func(*cobra.Command, []string) error {
			return func(cmd *cobra.Command, args []string) error {
				client, err := api.New(api.Options{URL: server.URL, Token: "brt_x"})
				if err != nil {
					return err
				}
				return fn(cmd.Context(), client, args)
			}
		},
		Args: cobra.NoArgs, Out: &out, Err: &errOut, Now: func() time.Time { return p.now },
		Getenv: func(name string) string { return map[string]string{"HOME": p.home}[name] },
		Print:  func(ctlapi.RegistryToken) (bool, error) { return false, nil },
	}
	root := &cobra.Command{Use: "registry", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(registry.Commands(doors, func(registry.Login) (bool, error) { return false, nil })...)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	err = root.ExecuteContext(p.t.Context())
	return out.String(), errOut.String(), err
}

func (p *person) auths() map[string]string {
	p.t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.home, ".docker", "config.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	var config struct {
		Auths       map[string]struct{ Auth string }
		HTTPHeaders map[string]string
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		p.t.Fatal(err)
	}
	found := map[string]string{}
	for host, a := range config.Auths {
		found[host] = a.Auth
	}
	for name, value := range config.HTTPHeaders {
		found["header "+name] = value
	}
	return found
}

func TestLogin(t *testing.T) {
	t.Parallel()
	p := &person{t: t, home: t.TempDir(), host: "berth.example.com", now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	if err := os.Mkdir(filepath.Join(p.home, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	// What is there already stays.
	before := `{"HttpHeaders":{"X":"y"},"auths":{"registry.example.com":{"auth":"b3RoZXI6c2VjcmV0"}}}`
	if err := os.WriteFile(filepath.Join(p.home, ".docker", "config.json"), []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	const ours, others = "YWRhOmJyZ19vbmU=", "b3RoZXI6c2VjcmV0"
	for range 2 { // a second time replaces the token
		stdout, stderr, err := p.types("login", "--app", "shop", "--minutes", "10")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stdout, "berth.example.com as ada for 10m") || !strings.Contains(stdout, "berth.example.com/org_1/shop\n") || strings.Contains(stdout+stderr, "brg_") {
			t.Errorf("login says %q, %q", stdout, stderr)
		}
	}
	want := map[string]string{"berth.example.com": ours, "registry.example.com": others, "header X": "y"}
	if diff := cmp.Diff(want, p.auths()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(p.home, ".docker", "config.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if stdout, stderr, err := p.types("token"); err != nil || stdout != "brg_one\n" || !strings.Contains(stderr, "2026-01-01T13:00:00Z") {
		t.Errorf("token: %q, %q, %v", stdout, stderr, err)
	}

	// A control plane that names somebody else's host does not push their credentials out.
	p.host = "registry.example.com"
	if _, _, err := p.types("login"); err == nil || !strings.Contains(err.Error(), "not Berth's") {
		t.Errorf("login to a host with other credentials: %v", err)
	}
	if _, _, err := p.types("logout", "berth.example.com"); err != nil {
		t.Error(err)
	}
	if _, _, err := p.types("logout", "berth.example.com"); err == nil || !strings.Contains(err.Error(), "no credentials") {
		t.Errorf("a second logout: %v", err)
	}
	delete(want, "berth.example.com")
	if diff := cmp.Diff(want, p.auths()); diff != "" {
		t.Errorf("after logout (-want +got):\n%s", diff)
	}
}
