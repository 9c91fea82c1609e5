package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var code = regexp.MustCompile("`([^`]+)`")

// docs/flows.md names functions by file; each of them is there.
func TestFlows(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "flows.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		file := code.FindStringSubmatch(cells[1])[1]
		there, err := declared(filepath.Join(root, file))
		if err != nil {
			t.Errorf("docs/flows.md: %v", err)
			continue
		}
		for _, name := range code.FindAllStringSubmatch(cells[2], -1) {
			checked++
			if !there[name[1]] {
				t.Errorf("docs/flows.md: %s has no function %s", file, name[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d functions found on the page", checked)
	}
}

// declared returns the functions of a file, methods as Type.Method.
func declared(file string) (map[string]bool, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			receiver := f.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			if ident, ok := receiver.(*ast.Ident); ok {
				name = ident.Name + "." + name
			}
		}
		out[name] = true
	}
	return out, nil
}
