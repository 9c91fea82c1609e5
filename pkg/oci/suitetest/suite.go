// Package suitetest runs the official conformance suite of the OCI distribution
// specification against a registry of ours. The suite is a program of its own
// (github.com/opencontainers/distribution-spec/conformance), which dev/scripts/oci.sh
// builds.
package suitetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Program finds the suite in the folder that BERTH_OCI_TOOLS names, and skips the test
// where it is not.
func Program(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BERTH_OCI_TOOLS")
	program := filepath.Join(dir, "conformance")
	if _, err := os.Stat(program); dir == "" || err != nil {
		t.Skip("the official conformance suite is not built: dev/scripts/oci.sh build, and BERTH_OCI_TOOLS")
	}
	return program
}

// Run runs the suite of version 1.1 with settings, "OCI_NAME=value" each, and returns
// what it says in the end: a line per API and per kind of data. The error names the
// first cases that failed.
func Run(ctx context.Context, program, dir string, settings ...string) (summary string, err error) {
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "OCI_TLS=disabled", "OCI_VERSION=1.1", "OCI_RESULTS_DIR="+dir), settings...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	ended := cmd.Run()
	said := out.String() + errOut.String()
	_, summary, found := strings.Cut(said, "OCI Conformance Result:")
	if !found {
		return "", fmt.Errorf("the suite did not end: %w\n%s", ended, said)
	}
	summary, _, _ = strings.Cut("Result:"+summary, "*** ")
	// Reports are written after the summary, which the suite dies of when it was given
	// contents that it did not push: so the summary counts, not how it ended.
	summary, _, _ = strings.Cut(summary, "panic: ")
	if len(none.FindAllString(summary, -1)) != 2 || !strings.HasPrefix(summary, "Result: Pass\n") {
		var cases []string
		for line := range strings.Lines(said) {
			if line = strings.TrimSpace(line); strings.HasSuffix(line, ": FAIL") || strings.HasSuffix(line, ": Error") {
				cases = append(cases, line)
			}
		}
		return summary, fmt.Errorf("%s\n%s", strings.Join(cases[max(0, len(cases)-shownCases):], "\n"), summary)
	}
	return strings.TrimSpace(summary) + "\n", nil
}

// shownCases is how many cases an error names: the last, which are leaves.
const shownCases = 10

// none are the counts that must be zero.
var none = regexp.MustCompile(`(?m)^  (?:FAIL|Error)\.+: +0$`)

// Report keeps a summary in the folder that BERTH_CONFORMANCE_REPORT names, if it does.
func Report(name, summary string) error {
	dir := os.Getenv("BERTH_CONFORMANCE_REPORT")
	if dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(summary), 0o644)
}
