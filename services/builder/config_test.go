package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/setting/settingtest"
)

func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	settingtest.Documented[Config](t, "../../docs/reference/builder.md")
}

func TestValidateSaysEverythingAtOnce(t *testing.T) {
	t.Parallel()
	cfg := Config{BuildRunners: "process", Storage: Storage{Kind: storageFile}, RegistryListen: "8703", RunnerAPIURL: "runner-api:8701", Workers: 8, DatabaseConnections: 4}
	want := []string{
		"BERTH_DSN_FILE is not set: name the file that `berth-ctl-api migrate` wrote for this service",
		"BERTH_RUNNER_API_URL is not an http or https address",
		"BERTH_DATA is not set",
		`BERTH_REGISTRY_LISTEN is "8703", want HOST:PORT`,
		"BERTH_BUILD_ENGINE_UID is 0, want at least 1",
		"BERTH_DATABASE_CONNECTIONS is 4, want at least 12 (BERTH_BUILD_WORKERS + 4)",
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("it is valid")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestRunnersGetNoSecretOfOurs(t *testing.T) {
	t.Parallel()
	got := runnerEnv([]string{
		"PATH=/bin", "BERTH_DSN_FILE=/dsn", "BERTH_MASTER_KEY_FILE=/key", "PGPASSWORD=x", "BERTH_TERRAFORM=/tf",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS=authorization=x", "HTTPS_PROXY=http://proxy",
	})
	slices.Sort(got)
	want := []string{"BERTH_TERRAFORM=/tf", "HTTPS_PROXY=http://proxy", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "PATH=/bin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
