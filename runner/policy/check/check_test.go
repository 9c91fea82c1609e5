package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/runner/policy/check"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.rego":     "package berth\ndeny contains \"x\" if false\n",
		"bad.rego":      "package berth\n\ndeny contains x if { x := opa.runtime() }\n",
		"bad_test.rego": "package berth\ntest_a if nothing(1)\n",
		"values.yaml":   "kind: Deployment\n",
		"cluster.yaml":  "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n  rules:\n  - name: r\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    validate: {patern: {}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := check.Files(t.Context(), []string{dir}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []check.Finding{{File: filepath.Join(dir, "bad.rego"), Line: 3}, {File: filepath.Join(dir, "cluster.yaml"), Line: 8}}
	if diff := cmp.Diff(want, report.Findings, cmpopts.IgnoreFields(check.Finding{}, "Message")); diff != "" || report.Files != 3 {
		t.Errorf("%d files (-want +got):\n%s", report.Files, diff)
	}
	if _, err := check.Files(t.Context(), []string{filepath.Join(dir, "nowhere")}, false); err == nil {
		t.Error("a file that is not there is no error")
	}
}
