package suite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/policy/suite"
)

func results(t *testing.T, dir string) []string {
	t.Helper()
	report, err := suite.Run(t.Context(), []string{dir}, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, test := range report.Tests {
		got = append(got, fmt.Sprintf("%s %s/%s %s", test.Result, test.Policy, test.Rule, filepath.Base(test.Resource)))
	}
	return got
}

// Kyverno's own test files get the results that Kyverno's own command gives, and unknown
// where it would ask a registry.
func TestKyverno(t *testing.T) { //nolint:paralleltest // Kyverno's command keeps things for the whole process
	want := []string{
		"pass owned/owner owned", "pass owned/owner nobodys", "fail owned/owner nobodys", "pass sized/ owned", "unknown asks/image owned",
	}
	if diff := cmp.Diff(want, results(t, "testdata/kyverno")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRego(t *testing.T) {
	t.Parallel()
	want := []string{"pass berth/test_database .", "pass berth/test_other .", "fail berth/test_wrong ."}
	if diff := cmp.Diff(want, results(t, "testdata/rego")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A test that cannot be run is an error, never passed or left out.
func TestCannotRun(t *testing.T) { //nolint:paralleltest // as above
	for name, files := range map[string]map[string]string{
		"no such policy":        {"kyverno-test.yaml": "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: a}\npolicies: [nowhere.yaml]\nresources: [nowhere.yaml]\nresults: [{policy: a, kind: Pod, result: pass}]\n"},
		"no YAML":               {"kyverno-test.yaml": "{{{"},
		"Rego that reaches out": {"a_test.rego": "package a\ntest_a if http.send({\"method\": \"get\", \"url\": \"http://127.0.0.1\"}).status_code == 200\n"},
		"no Rego":               {"a_test.rego": "package a\ntest_a if\n"},
	} {
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		report, err := suite.Run(t.Context(), []string{dir}, false)
		if err != nil || report.Errors == 0 || report.Passed > 0 || !report.Bad() {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}
