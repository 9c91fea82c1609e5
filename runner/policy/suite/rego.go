package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/berth-dev/berth/runner/policy/rego"
)

// runRego runs the test rules of all modules below a folder, with the data that stands next to
// them, as `opa test` does.
func runRego(ctx context.Context, dir string, v0 bool) []Test {
	failed := func(err error) []Test {
		var all ast.Errors
		if !errors.As(err, &all) {
			return []Test{{File: dir, Result: Error, Message: err.Error()}}
		}
		var out []Test
		for _, e := range all {
			t := Test{File: dir, Result: Error, Message: e.Message}
			if e.Location != nil && e.Location.File != "" {
				t.File, t.Line = e.Location.File, e.Location.Row
			}
			out = append(out, t)
		}
		return out
	}
	version := ast.RegoV1
	if v0 {
		version = ast.RegoV0
	}
	capabilities := rego.Capabilities()
	modules, store, err := tester.LoadWithParserOptions([]string{dir}, others, ast.ParserOptions{Capabilities: capabilities, RegoVersion: version})
	if err != nil {
		return failed(err)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(modules)), hasTest) {
		return nil // modules without tests are for check
	}
	compiler := ast.NewCompiler().WithCapabilities(capabilities).WithDefaultRegoVersion(version)
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	if err != nil {
		return failed(err)
	}
	defer store.Abort(ctx, txn)
	results, err := tester.NewRunner().SetDefaultRegoVersion(version).SetCompiler(compiler).SetStore(store).SetModules(modules).RaiseBuiltinErrors(true).
		RunTests(ctx, txn)
	if err != nil {
		return failed(err)
	}
	var out []Test
	for r := range results {
		t := Test{File: dir, Policy: strings.TrimPrefix(r.Package, "data."), Rule: r.Name, Result: Pass}
		if r.Location != nil {
			t.File, t.Line = r.Location.File, r.Location.Row
		}
		switch {
		case r.Error != nil:
			t.Result, t.Message = Error, r.Error.Error()
		case r.Skip:
			t.Result, t.Message = Unknown, "the test says todo"
		case r.Fail:
			t.Result, t.Message = Fail, "the test is not true"
			if r.FailedAt != nil && r.FailedAt.Location != nil {
				t.Message = fmt.Sprintf("not true in line %d: %s", r.FailedAt.Location.Row, strings.TrimSpace(string(r.FailedAt.Location.Text)))
			}
		}
		out = append(out, t)
	}
	return out
}

// hasTest: a module has a rule that is a test.
func hasTest(m *ast.Module) bool {
	return slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool {
		name := strings.TrimPrefix(r.Head.Name.String(), "todo_")
		return strings.HasPrefix(name, "test_")
	})
}

// others leaves out YAML and JSON that are not data of Rego: policies of Kyverno, resources.
func others(path string, info fs.FileInfo, _ int) bool {
	switch {
	case info.IsDir(), filepath.Ext(path) == ".rego", info.Name() == "data.json", info.Name() == "data.yaml":
		return false
	}
	return true
}
