package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/httpserver"
)

// defaults are the settings without an environment.
func defaults() Config {
	cfg, err := FromEnv(func(string) string { return "" })
	if err != nil {
		panic(err) // the defaults are ours
	}
	return cfg
}

func TestConfigNamesEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	if err := cfg.Validate(); err == nil || err.Error() != "BERTH_DSN_FILE is not set" {
		t.Errorf("the defaults are refused with %v, want only the missing DSN file", err)
	}
	_, err := FromEnv(func(name string) string {
		return map[string]string{"BERTH_LEASE_TTL": "soon", "BERTH_DATABASE_CONNECTIONS": "many"}[name]
	})
	want := "BERTH_LEASE_TTL is not a duration such as 60s\nBERTH_DATABASE_CONNECTIONS is not a whole number"
	if err == nil {
		t.Fatal("nonsense was read")
	}
	got := strings.Split(err.Error(), "\n")
	wanted := strings.Split(want, "\n")
	slices.Sort(got)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("unreadable (-want +got):\n%s", diff)
	}
	bad := Config{
		Listen: "here", RegistryURL: "ftp://x", LogURL: "", Lease: 1, MinRunnerVersion: "new", DatabaseConnections: 1,
		Limits: httpserver.Limits{MaxConnections: 1, BodyMemoryMiB: 1, BodyGrace: 1}, Rates: httpserver.Rates{RequestsPerMinute: 1},
	}
	err = bad.Validate()
	if err == nil {
		t.Fatal("nonsense was accepted")
	}
	for _, name := range settings() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}

// settings are the names in the struct.
func settings() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if name := field.Tag.Get("env"); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// The page lists the settings of the struct with their defaults, which are
// those that FromEnv gives.
func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/runner-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(BERTH_[A-Z_]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1)
	documented := map[string]string{}
	for _, row := range rows {
		documented[row[1]] = strings.Trim(strings.TrimSpace(row[2]), "`")
	}
	known := map[string]string{}
	values := reflect.ValueOf(defaults())
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		name, tag := field.Tag.Get("env"), field.Tag.Get("default")
		if name == "" || name == "-" {
			continue
		}
		known[name] = tag
		if field.Name == "Lease" {
			continue // written 60s, printed 1m0s
		}
		if got := fmt.Sprint(values.FieldByIndex(field.Index).Interface()); got != tag {
			t.Errorf("%s is %q without an environment, its tag says %q", name, got, tag)
		}
	}
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("settings (-struct +docs):\n%s", diff)
	}
}
