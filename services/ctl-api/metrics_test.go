package main

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/store"
)

const asService = "CTL_API_TEST_SERVE"

// Instruments are global to a process, so a process is what is scraped: with the
// variable set, this binary is the service.
func TestMain(m *testing.M) {
	if os.Getenv(asService) == "" {
		os.Exit(m.Run())
	}
	os.Args = []string{name, "serve"}
	main()
}

// A running service is scraped: what it exports, libraries included, is in the
// reference, and what a caller chooses makes no series.
func TestScrape(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	dir, host, api, scrapes := t.TempDir(), "127.0.0.1", freePort(t), freePort(t)
	dsn := filepath.Join(dir, "ctl.dsn")
	if err := os.WriteFile(dsn, []byte(db.DSN(store.RoleCtl)), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"BERTH_DSN_FILE": dsn, "BERTH_MASTER_KEY_FILE": filepath.Join(dir, "master.key"), "BERTH_LISTEN": net.JoinHostPort(host, api),
		"BERTH_METRICS_EXPORT_ENDPOINT": "http://" + net.JoinHostPort(host, "1") + "/v1/metrics"}
	config, err := setting.Load[Config](func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bootstrap(t.Context(), config, "initech", filepath.Join(dir, "token")); err != nil {
		t.Fatal(err)
	}
	service := exec.CommandContext(t.Context(), os.Args[0])
	service.Env = []string{asService + "=1", "OTEL_METRICS_EXPORTER=prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST=" + host, "OTEL_EXPORTER_PROMETHEUS_PORT=" + scrapes}
	for name, value := range env {
		service.Env = append(service.Env, name+"="+value)
	}
	service.Stdout, service.Stderr = t.Output(), t.Output()
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(service.Process.Signal(os.Interrupt), service.Wait()); err != nil {
			t.Errorf("the service ended with %v", err)
		}
	}()

	wanted := []string{
		`^http_server_request_duration_seconds_count\{.*http_response_status_code="401".*http_route="/me".*\} [1-9]`,
		`^db_client_connection_count\{.*state="idle".*\} `, `^wakeup_open\{.*queue="river_ctl".*state="available".*\} `, `^wakeup_oldest_seconds\{`,
		`^install_count\{.*state="live".*\} 0`, `^metric_export_lag_seconds(\{.*\})? 0`,
	}
	var families []string
	var series string
	for deadline := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		if resp := get(t, "http://"+net.JoinHostPort(host, api)+"/me", "somewhere:4711"); resp != nil {
			resp.Body.Close()
			families, series = scrape(t, "http://"+net.JoinHostPort(host, scrapes)+"/metrics")
		}
		missing := slices.DeleteFunc(slices.Clone(wanted), func(like string) bool { return regexp.MustCompile(`(?m)` + like).MatchString(series) })
		if len(missing) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no series are like %q:\n%s", missing, series)
		}
	}
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !strings.Contains(string(reference), "| `"+family+"` |") {
			t.Errorf("%s is exported, and has no row in docs/reference/metrics.md", family)
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
