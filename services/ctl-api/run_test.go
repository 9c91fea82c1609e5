package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/setting/settingtest"
	"github.com/berth-dev/berth/services/internal/store"
)

func TestConfigReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	env := map[string]string{"BERTH_LISTEN": "nowhere", "BERTH_DB_MAX_CONNS": "many", "BERTH_LOG_URL": "logs", "BERTH_RUNNER_API_URL": "ftp://x", "BERTH_METRICS_EXPORT_HEADERS_FILE": "/h"}
	_, err := setting.Load[Config](func(name string) string { return env[name] })
	if err == nil {
		t.Fatal("a bad configuration was accepted")
	}
	for _, name := range []string{"BERTH_LISTEN", "BERTH_DSN_FILE", "BERTH_MASTER_KEY_FILE", "BERTH_DB_MAX_CONNS", "BERTH_LOG_URL", "BERTH_RUNNER_API_URL", "BERTH_METRICS_EXPORT_ENDPOINT"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s:\n%v", name, err)
		}
	}
	_, err = setting.Load[Config](func(name string) string {
		return map[string]string{"BERTH_DSN_FILE": "/x", "BERTH_MASTER_KEY_FILE": "/y"}[name]
	})
	if err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	settingtest.Documented[Config](t, "../../docs/reference/ctl-api.md")
}

// The whole service: bootstrap, serve, answer the bootstrapped token, end.
func TestServe(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	dir := t.TempDir()
	dsn := filepath.Join(dir, "ctl.dsn")
	if err := os.WriteFile(dsn, []byte(db.DSN(store.RoleCtl)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(logs.Close)
	away := httptest.NewServer(nil)
	away.Close()
	env := map[string]string{
		"BERTH_DSN_FILE": dsn, "BERTH_MASTER_KEY_FILE": filepath.Join(dir, "master.key"), "BERTH_LOG_URL": logs.URL,
		"BERTH_OIDC_ISSUER": away.URL, "BERTH_OIDC_CLIENT_ID": "berth", "BERTH_OIDC_ORG": "initech", "BERTH_OIDC_ROLES": "*=viewer",
	}
	config, err := setting.Load[Config](func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	tokenFile := filepath.Join(dir, "made", "token")
	if done, err := bootstrap(t.Context(), config, "initech", tokenFile); err != nil || !done.Created {
		t.Fatalf("bootstrap: %+v %v", done, err)
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}

	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	st, ring, err := open(t.Context(), config, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, config, listener, st, ring, log) }()

	get := func(path string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for path, want := range map[string]int{
		"/readyz": 200, "/me": 200, "/": 200, "/openapi.json": 200, "/login-methods": 200,
		"/logs/streams/str_1": http.StatusTeapot, "/login/oidc": http.StatusServiceUnavailable, // the provider is away
		"/?token=" + strings.TrimSpace(string(token)): http.StatusUnprocessableEntity,
	} {
		if status := get(path); status != want {
			t.Errorf("%s answered %d, want %d", strings.Split(path, "?")[0], status, want)
		}
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("serve ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("serve does not end")
	}
}
