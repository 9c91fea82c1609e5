package check_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestEveryCodeHasAGolden walks the codes of diagnostics. Each has a file in
// testdata/diagnostics: changes to the minimal folder, and what is said of them.
// The file's last part, "expected", is rewritten by -update.
func TestEveryCodeHasAGolden(t *testing.T) {
	t.Parallel()
	codes := declaredCodes(t)
	for _, code := range codes {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "diagnostics", code+".txt")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("the code has no golden file: %v", err)
			}
			files, before, want := goldenFolder(t, string(data))
			_, diags := check.Folder(appconfigtest.Folder(files), appconfig.LoadOptions{})
			var got strings.Builder
			found := false
			for _, d := range diags {
				found = found || string(d.Code) == code
				fmt.Fprintf(&got, "[%s] %s\n", d.Code, d)
			}
			if !found {
				t.Errorf("nothing in this folder has the code %s:\n%s", code, got.String())
			}
			if *update {
				if err := os.WriteFile(path, []byte(before+got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != want {
				t.Errorf("got:\n%swant:\n%s", got.String(), want)
			}
		})
	}
	entries, err := os.ReadDir(filepath.Join("testdata", "diagnostics"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(codes) {
		t.Errorf("%d golden files for %d codes", len(entries), len(codes))
	}
}

// goldenFolder splits a file at its "-- name --" lines; before is everything up
// to what is expected.
func goldenFolder(t *testing.T, text string) (files map[string]string, before, want string) {
	t.Helper()
	const last = "-- expected --\n"
	before, want, ok := strings.Cut(text, last)
	if !ok {
		t.Fatal("the file has no expected part")
	}
	files = map[string]string{}
	name := ""
	for line := range strings.Lines(before) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(rest, " --\n") {
			name = strings.TrimSuffix(rest, " --\n")
			files[name] = ""
		} else if name != "" {
			files[name] += line
		}
	}
	return files, before + last, want
}

// declaredCodes reads the constants of type Code, so that none can be left out.
func declaredCodes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../place/diagnostic.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typeName, ok := spec.Type.(*ast.Ident); !ok || typeName.Name != "Code" {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, code)
		return true
	})
	if len(codes) < 16 {
		t.Fatalf("only %d codes are found: %v", len(codes), codes)
	}
	return codes
}
