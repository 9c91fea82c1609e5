// Package suite runs the tests that come with policies: Kyverno's own test files, by the code
// of Kyverno's own command, and the test rules of Rego, by OPA's.
//
// What a test expects and only a cluster, a registry or a network can answer is unknown, not
// passed. The process should be sealed off from the network before (package seal).
package suite

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/berth-dev/berth/runner/policy/engine"
)

// Result is how a test went.
type Result string

// All results.
const (
	Pass    Result = "pass"
	Fail    Result = "fail"
	Error   Result = "error"   // it could not be run
	Unknown Result = "unknown" // only a cluster could say
)

// Test is one expectation.
type Test struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Policy   string `json:"policy,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Resource string `json:"resource,omitempty"`
	Result   Result `json:"result"`
	Message  string `json:"message,omitempty"`
}

// Report is what all tests gave.
type Report struct {
	Engine  string `json:"engine"`
	Tests   []Test `json:"tests"`
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Errors  int    `json:"errors"`
	Unknown int    `json:"unknown"`
}

// Bad says that a test failed, or could not be run.
func (r *Report) Bad() bool { return r.Failed+r.Errors > 0 }

// kyvernoFile is how Kyverno calls its test files.
const kyvernoFile = "kyverno-test.yaml"

// Run runs the tests in folders.
func Run(ctx context.Context, dirs []string, regoV0 bool) (Report, error) {
	report := Report{Engine: engine.Name(), Tests: []Test{}}
	for _, dir := range dirs {
		var kyverno []string
		rego := map[string]bool{} // folders
		err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || entry.IsDir():
			case entry.Name() == kyvernoFile:
				kyverno = append(kyverno, file)
			case filepath.Ext(file) == ".rego":
				rego[filepath.Dir(file)] = true
			}
			return err
		})
		if err != nil {
			return report, err
		}
		for _, file := range kyverno {
			report.Tests = append(report.Tests, runKyverno(file)...)
		}
		if len(rego) > 0 {
			report.Tests = append(report.Tests, runRego(ctx, dir, regoV0)...)
		}
	}
	slices.SortStableFunc(report.Tests, func(a, b Test) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, t := range report.Tests {
		switch t.Result {
		case Pass:
			report.Passed++
		case Fail:
			report.Failed++
		case Unknown:
			report.Unknown++
		default:
			report.Errors++
		}
	}
	return report, nil
}
