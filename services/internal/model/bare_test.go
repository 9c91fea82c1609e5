package model_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	services  = "github.com/berth-dev/berth/services/"
	modelPath = services + "internal/model"
)

// No service spells a word of this package: an untyped constant converts to a
// state silently, so the compiler lets "lvie" pass where a state is meant. Tests
// may: they say what the words are.
func TestNobodySpellsAState(t *testing.T) {
	t.Parallel()
	packages := listed(t)
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	seen := 0
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, services) || p.ImportPath == modelPath || !links(p, modelPath) {
			continue
		}
		seen++
		for _, found := range bare(t, p, exports) {
			t.Errorf("%s; take the constant of package model", found)
		}
	}
	if seen < 15 {
		t.Errorf("looked at %d packages only; the search must be wrong", seen)
	}
}

// A listed package of what services are built of.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
}

func listed(t *testing.T) []listedPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,Imports",
		"./ctl-api/...", "./runner-api/...", "./builder/...", "./log-ingest/...", "./bench/...", "./internal/...")
	list.Dir = "../.."
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listedPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
}

// links says whether a package can hold values of another's types: it imports it,
// or a package of rows, which does.
func links(p listedPackage, path string) bool {
	for _, i := range p.Imports {
		if i == path || strings.HasPrefix(i, services+"internal/store/") {
			return true
		}
	}
	return false
}

// bare are the places where a package spells a word where a type of package model
// is meant.
func bare(t *testing.T, p listedPackage, exports map[string]string) []string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		if strings.HasSuffix(name, ".gen.go") || strings.HasSuffix(p.ImportPath, "/apigen") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	if _, err := config.Check(p.ImportPath, fset, files, &info); err != nil {
		t.Fatalf("%s: %v", p.ImportPath, err)
	}
	var found []string
	for expr, is := range info.Types {
		literal, ok := expr.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || literal.Value == `""` {
			continue
		}
		if named, ok := is.Type.(*types.Named); ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == modelPath {
			found = append(found, fset.Position(literal.Pos()).String()+": "+literal.Value+" is a model."+named.Obj().Name())
		}
	}
	return found
}
