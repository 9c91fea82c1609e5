package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestConfigReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	env := map[string]string{"BERTH_LISTEN": "nowhere", "BERTH_DB_MAX_CONNS": "1", "BERTH_LOG_KEEP_DAYS": "many"}
	err := configFromEnv(func(name string) string { return env[name] }).Validate()
	if err == nil {
		t.Fatal("a bad configuration was accepted")
	}
	for _, name := range []string{"BERTH_LISTEN", "BERTH_DSN_FILE", "BERTH_DB_MAX_CONNS", "BERTH_LOG_KEEP_DAYS"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s:\n%v", name, err)
		}
	}
	good := configFromEnv(func(name string) string { return map[string]string{"BERTH_DSN_FILE": "/x"}[name] })
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// What can be set and what the reference page lists are the same.
func TestReferenceListsEverySetting(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(BERTH_[A-Z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = true
	}
	read := map[string]bool{}
	configFromEnv(func(name string) string { read[name] = true; return "" })
	for name := range read {
		if !listed[name] {
			t.Errorf("%s is read and not in the table of docs/reference/logs.md", name)
		}
	}
	for name := range listed {
		if !read[name] {
			t.Errorf("%s is in the table of docs/reference/logs.md and not read", name)
		}
	}
}
