// Command measure counts what makes a repository hard to find one's way in:
// packages with many lines or files, functions with many parameters or many
// ways through them. Tests and generated files do not count.
//
//	cd dev && GOWORK=off go run ./measure ..
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is too much.
const (
	maxLines      = 5000 // of a package
	maxFiles      = 40   // of a package
	maxParameters = 4    // of a function
	maxCyclomatic = 20   // of a function
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, err := measure(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	found.write(os.Stdout)
}

// A measured is a package or a function.
type measured struct {
	name  string
	count int
}

type findings struct {
	lines, files           []measured // of packages
	parameters, cyclomatic []measured // of functions that have too many
}

// measure reads every Go file below root.
func measure(root fs.FS) (findings, error) {
	var out findings
	lines, files := map[string]int{}, map[string]int{}
	set := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		dir := filepath.Dir(name)
		lines[dir] += strings.Count(string(text), "\n")
		files[dir]++
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			where := set.Position(f.Pos()).String() + " " + f.Name.Name
			if n := f.Type.Params.NumFields(); n > maxParameters {
				out.parameters = append(out.parameters, measured{where, n})
			}
			if n := cyclomatic(f); n > maxCyclomatic {
				out.cyclomatic = append(out.cyclomatic, measured{where, n})
			}
		}
		return nil
	})
	out.lines, out.files = sorted(lines), sorted(files)
	return out, err
}

// cyclomatic counts the ways through a function: one, and one more for each
// condition, loop, case and logical operator.
func cyclomatic(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func sorted(counts map[string]int) []measured {
	var out []measured
	for name, count := range counts {
		out = append(out, measured{name, count})
	}
	slices.SortFunc(out, func(a, b measured) int { return cmp.Or(b.count-a.count, cmp.Compare(a.name, b.name)) })
	return out
}

// write prints what is too much, and the largest packages in any case.
func (f findings) write(w io.Writer) {
	const shown = 10
	packages := func(title string, of []measured, limit int) {
		n := len(of) - len(slices.DeleteFunc(slices.Clone(of), func(m measured) bool { return m.count > limit }))
		fmt.Fprintf(w, "%d packages with more than %d %s; the largest:\n", n, limit, title)
		for _, m := range of[:min(len(of), max(shown, n))] {
			fmt.Fprintf(w, "  %5d  %s\n", m.count, m.name)
		}
	}
	functions := func(title string, of []measured, limit int) {
		fmt.Fprintf(w, "%d functions with more than %d %s\n", len(of), limit, title)
		for _, m := range of {
			fmt.Fprintf(w, "  %5d  %s\n", m.count, m.name)
		}
	}
	packages("lines", f.lines, maxLines)
	packages("files", f.files, maxFiles)
	functions("parameters", f.parameters, maxParameters)
	functions("ways through them (cyclomatic)", f.cyclomatic, maxCyclomatic)
}
