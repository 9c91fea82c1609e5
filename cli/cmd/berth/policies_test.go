package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/command"
)

// withEngine is an environment in which berth finds berth-policy, as `make build` made it.
func withEngine(t *testing.T) map[string]string {
	t.Helper()
	dir := os.Getenv("BERTH_LIBEXEC")
	if dir == "" {
		dir = "../../../.bin"
	}
	if _, err := os.Stat(filepath.Join(dir, "berth-policy")); err != nil {
		t.Skip("there is no berth-policy: run `make build`")
	}
	return map[string]string{"BERTH_LIBEXEC": dir}
}

// policyFiles writes files below policies/ of an app folder.
func policyFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "policies"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "policies", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	regoThatReaches = "package berth\n\ndeny contains x if { x := http.send({}) }\n"
	celThatIsNone   = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata:\n  name: a\nspec:\n  matchConstraints:\n    resourceRules:\n" +
		"    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}\n  validations:\n  - expression: object.(\n"
)

// The engine's mistakes are the folder's, at their lines: in a file, and in the policy's own.
func TestValidateLoadsPolicies(t *testing.T) {
	t.Parallel()
	env := withEngine(t)
	dir := appCopy(t, "hello")
	policyFiles(t, dir, map[string]string{
		"cel.toml": "type = \"helm_chart\"\ncontents = \"./cel.yaml\"\n", "cel.yaml": celThatIsNone,
		"net.toml": "type = \"terraform_module\"\nengine = \"opa\"\ncontents = \"\"\"\n" + regoThatReaches + "\"\"\"\n",
	})
	code, stdout, _ := berth(t, env, "apps", "validate", dir)
	for _, want := range []string{"cel.yaml:10:1: error contents is refused by its engine: spec.validations[0].expression", "net.toml:6:1: error contents is refused by its engine: http.send", "2 errors in 2 files"} {
		if code != command.ExitFailed || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, want %q in\n%s", code, want, stdout)
		}
	}
	if code, stdout, _ = berth(t, env, "apps", "validate", dir, "--allow-invalid-policies"); code != command.ExitOK || !strings.HasSuffix(stdout, "\n2 warnings in 2 files\n") {
		t.Errorf("allowed: exit %d\n%s", code, stdout)
	}
	// Without the engine there is one note, whatever the policies say.
	code, stdout, _ = berth(t, nil, "apps", "validate", dir)
	if code != command.ExitOK || strings.Count(stdout, "are not loaded") != 1 || !strings.Contains(stdout, "BERTH_LIBEXEC") {
		t.Errorf("without the engine: exit %d\n%s", code, stdout)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	env := withEngine(t)
	dir := t.TempDir()
	policyFiles(t, dir, map[string]string{
		"net.rego": regoThatReaches, "cel.yaml": celThatIsNone, "values.yaml": "a: b\n",
	})
	code, stdout, stderr := berth(t, env, "policies", "check", dir, "-o", "name")
	want := filepath.Join(dir, "policies/cel.yaml") + ":10\n" + filepath.Join(dir, "policies/net.rego") + ":3\n"
	if code != command.ExitFailed || stdout != want || stderr != "2 files, 2 problems\n" {
		t.Errorf("check: exit %d\n%s%swant\n%s", code, stdout, stderr, want)
	}
	code, stdout, stderr = berth(t, env, "policies", "test", "../../../runner/policy/suite/testdata/kyverno", "--failed", "-o", "json")
	if code != command.ExitFailed || !strings.Contains(stdout, `"result": "unknown"`) || strings.Contains(stdout, `"result": "pass"`) || stderr != "3 passed, 1 failed, 0 errors, 1 unknown\n" {
		t.Errorf("test: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr = berth(t, env, "policies", "test", "../../../runner/policy/suite/testdata/rego"); code != command.ExitFailed || stderr != "2 passed, 1 failed, 0 errors, 0 unknown\n" {
		t.Errorf("test of Rego: exit %d\n%s", code, stderr)
	}
	if code, _, stderr = berth(t, env, "policies", "test", t.TempDir()); code != command.ExitFailed || !strings.Contains(stderr, "there are no tests here") {
		t.Errorf("no tests: exit %d\n%s", code, stderr)
	}
	for _, verb := range []string{"check", "test"} {
		if code, _, stderr = berth(t, nil, "policies", verb, dir); code != command.ExitFailed || !strings.Contains(stderr, "try: unpack the whole archive") {
			t.Errorf("%s without the engine: exit %d\n%s", verb, code, stderr)
		}
	}
}
