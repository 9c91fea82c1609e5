package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/builder.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "## Settings")
	if !ok {
		t.Fatal("the page has no settings")
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(BERTH_[A-Z_]+)` \\|([^|]*)\\|").FindAllStringSubmatch(table, -1) {
		documented[row[1]] = plain(row[2])
	}
	inCode := map[string]string{}
	for field := range reflect.TypeFor[Config]().Fields() {
		if name := field.Tag.Get("env"); name != "-" {
			inCode[name] = field.Tag.Get("default")
		}
	}
	// What is worked out has a default in words.
	for name, words := range map[string]string{"BERTH_REGISTRY_DIR": "BERTH_DATA/registry", "BERTH_LIBEXEC": "folder of berth-builder"} {
		if documented[name] != words {
			t.Errorf("%s: the page says %q, want %q", name, documented[name], words)
		}
		documented[name] = ""
	}
	if diff := cmp.Diff(inCode, documented); diff != "" {
		t.Errorf("settings (-code +page):\n%s", diff)
	}
}

// plain is a cell without its quotes.
func plain(cell string) string { return strings.ReplaceAll(strings.TrimSpace(cell), "`", "") }

func TestFromEnvTakesDefaultsOfTheTags(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for field := range reflect.TypeFor[Config]().Fields() {
		names[field.Tag.Get("env")] = field.Tag.Get("default")
	}
	bare, err := FromEnv(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	tagged, err := FromEnv(func(name string) string {
		value, known := names[name]
		if !known {
			t.Errorf("%s is read, but is no setting", name)
		}
		return value
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tagged, bare); diff != "" {
		t.Errorf("defaults (-tags +code):\n%s", diff)
	}
}

func TestValidateSaysEverythingAtOnce(t *testing.T) {
	t.Parallel()
	cfg := Config{RegistryListen: "8703", RunnerAPIURL: "runner-api:8701", Workers: 8, DatabaseConnections: 4}
	want := []string{
		"BERTH_DSN_FILE is not set",
		"BERTH_DATA is not set",
		`BERTH_REGISTRY_LISTEN "8703" is not host:port`,
		`BERTH_RUNNER_API_URL "runner-api:8701" is not an http or https URL`,
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
