package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
)

// lintedCopy is an example with a check that leaves a mark when it runs.
func lintedCopy(t *testing.T) (dir, mark string) {
	t.Helper()
	dir = appCopy(t, "hello")
	mark = filepath.Join(t.TempDir(), "ran")
	put := func(name, text string, mode os.FileMode) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("checks/mine", "#!/bin/sh\ncat > "+mark+"\necho '{\"file\": \"stack.toml\", \"line\": 1, \"col\": 2, \"severity\": \"error\", \"message\": \"not so\"}'\n", 0o700)
	put("lint.toml", "[[custom]]\nname = \"mine\"\ncommand = \"checks/mine\"\n[rules.unknown_file]\nseverity = \"error\"\n", 0o600)
	return dir, mark
}

func TestLint(t *testing.T) {
	t.Parallel()
	dir, mark := lintedCopy(t)
	code, stdout, _ := berth(t, nil, "apps", "lint", dir)
	if want := filepath.Join(dir, "stack.toml") + ":1:2: error not so [custom/mine]\n"; code != command.ExitFailed || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, stdout\n%s\nwant %s", code, stdout, want)
	}
	config, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	var app appconfig.App
	if err := json.Unmarshal(config, &app); err != nil || app.Component("card") == nil {
		t.Errorf("the check gets %.200s: %v", config, err)
	}
	replace(t, filepath.Join(dir, "lint.toml"), "[rules.unknown_file]", "[rules.mine]\nseverity = \"note\"\n[rules.unknown_file]")
	if got := succeeds(t, "apps", "lint", dir); !strings.Contains(got, "note not so") {
		t.Errorf("its rule does nothing:\n%s", got)
	}
}

// TestChecksRunForNobodyElse holds that no command but lint runs what a folder
// brings along.
func TestChecksRunForNobodyElse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"apps", "validate"}, {"apps", "validate", "--strict", "--deployable", "-o", "json"}, {"apps", "graph"}, {"apps", "render"}, {"apps", "fmt"},
		{"sync"}, {"sync", "--plan"}, {"installs", "sync"},
	} {
		dir, mark := lintedCopy(t)
		_, stdout, stderr := berth(t, map[string]string{"BERTH_URL": "http://127.0.0.1:1", "BERTH_TOKEN": "brt_x"}, append(args, dir)...)
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("%v runs the check", args)
		}
		if strings.Contains(stdout+stderr, "unknown command") || strings.Contains(stdout+stderr, "usage") {
			t.Errorf("%v is no command: %s", args, stderr)
		}
	}
}

// TestRulesOfValidateAndSync holds that lint.toml counts where warnings do.
func TestRulesOfValidateAndSync(t *testing.T) {
	t.Parallel()
	dir, _ := lintedCopy(t)
	if err := os.WriteFile(filepath.Join(dir, "odd.toml"), []byte("x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"BERTH_URL": "http://127.0.0.1:1", "BERTH_TOKEN": "brt_x"}
	for _, args := range [][]string{{"apps", "validate", dir}, {"sync", dir}} {
		if code, stdout, stderr := berth(t, env, args...); code != command.ExitFailed || !strings.Contains(stdout+stderr, "error is not part of the app folder format") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	replace(t, filepath.Join(dir, "lint.toml"), `severity = "error"`, "enabled = false")
	if got := succeeds(t, "apps", "validate", dir, "--strict"); got != "no errors, no warnings\n" {
		t.Errorf("validate says\n%s", got)
	}
	if _, stdout, stderr := berth(t, env, "sync", dir); strings.Contains(stdout+stderr, "odd.toml") {
		t.Errorf("sync says\n%s%s", stdout, stderr)
	}
}

// TestDeployableIsOneList holds that lint and validate say the same of what this
// version cannot deploy, each line once, and that it is what an install's page
// lists.
func TestDeployableIsOneList(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(examples, "kitchen-sink")
	lines := func(args ...string) (found []string) {
		_, stdout, _ := berth(t, nil, args...)
		for line := range strings.Lines(stdout) {
			if strings.Contains(line, "[unsupported]") || strings.Contains(line, "[unchecked]") {
				found = append(found, strings.TrimSpace(line))
			}
		}
		return found
	}
	validated := lines("apps", "validate", dir, "--deployable")
	// Its checks say things of their own, which are not of this list.
	if linted := lines("apps", "lint", dir, "--deployable"); !slices.Equal(validated, linted) {
		t.Errorf("lint says\n%s\nvalidate says\n%s", strings.Join(linted, "\n"), strings.Join(validated, "\n"))
	}
	app, _ := check.Format(os.DirFS(dir), appconfig.LoadOptions{})
	listed := check.Unsupported(app)
	if len(listed) < 30 {
		t.Errorf("only %d things are listed: the test looks at the wrong folder", len(listed))
	}
	for _, d := range listed {
		n := 0
		for _, line := range validated {
			if strings.Contains(line, d.Message) && strings.Contains(line, filepath.Join(dir, d.File)+":") && strings.Contains(line, fmt.Sprintf(":%d:%d:", d.Line, d.Column)) == (d.Line > 0) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q is said %d times", d, n)
		}
	}
	if without := lines("apps", "validate", dir); len(without) > 5 {
		t.Errorf("without --deployable it says\n%s", strings.Join(without, "\n"))
	}
}
