package main

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/store"
)

// A running service is scraped: what it exports, libraries included, is in the
// reference, and what a caller chooses makes no series.
func TestScrape(t *testing.T) {
	db := pgtest.New(t)
	dir, host, api, scrapes := t.TempDir(), "127.0.0.1", freePort(t), freePort(t)
	dsn := filepath.Join(dir, "ctl.dsn")
	if err := os.WriteFile(dsn, []byte(db.DSN(store.RoleCtl)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST": host, "OTEL_EXPORTER_PROMETHEUS_PORT": scrapes} {
		t.Setenv(name, value)
	}
	env := map[string]string{"BERTH_DSN_FILE": dsn, "BERTH_MASTER_KEY_FILE": filepath.Join(dir, "master.key"), "BERTH_LISTEN": net.JoinHostPort(host, api)}
	config, err := setting.Load[Config](func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bootstrap(t.Context(), config, "initech", filepath.Join(dir, "token")); err != nil {
		t.Fatal(err)
	}
	shutdown, err := telemetry.Setup(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	}()

	for deadline := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		if resp := get(t, "http://"+net.JoinHostPort(host, api)+"/me", "somewhere:4711"); resp != nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the service does not answer")
		}
	}
	families, series := scrape(t, "http://"+net.JoinHostPort(host, scrapes)+"/metrics")
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !strings.Contains(string(reference), "| `"+family+"` |") {
			t.Errorf("%s is exported, and has no row in docs/reference/metrics.md", family)
		}
	}
	for _, want := range []string{
		`^http_server_request_duration_seconds_count\{.*http_response_status_code="401".*http_route="/me".*\} [1-9]`,
		`^db_client_connection_count\{.*state="idle".*\} `, `^wakeup_open\{.*queue="river_ctl".*state="available".*\} 0`, `^wakeup_oldest_seconds\{`,
	} {
		if !regexp.MustCompile(`(?m)` + want).MatchString(series) {
			t.Errorf("no series is like %s:\n%s", want, series)
		}
	}
	if strings.Contains(series, "4711") || strings.Contains(series, "somewhere") {
		t.Errorf("a caller's Host header is in a series:\n%s", series)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// get is nil while nobody answers.
func get(t *testing.T, url, host string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	return resp
}

// scrape returns the names of what is exported, and all series.
func scrape(t *testing.T, url string) (families []string, series string) {
	t.Helper()
	resp := get(t, url, "")
	if resp == nil {
		t.Fatalf("nobody answers at %s", url)
	}
	defer resp.Body.Close()
	var text strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, found := strings.CutPrefix(lines.Text(), "# TYPE "); found {
			families = append(families, strings.Fields(name)[0])
		}
		text.WriteString(lines.Text() + "\n")
	}
	return families, text.String()
}
