// Package deps_test holds the import rules of the module pkg (ARCHITECTURE.md)
// against what is really linked, also indirectly.
package deps_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const berth = "github.com/berth-dev/berth/"

func TestImports(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		packages string
		never    []string // prefixes of import paths
	}{
		{
			name:     "pkg is what both sides of the wire need",
			packages: "./...",
			never: []string{
				"github.com/jackc/pgx/",
				"github.com/gin-gonic/",
				"github.com/riverqueue/",
				"k8s.io/",
				"helm.sh/",
				"github.com/hashicorp/terraform-",
				"github.com/kyverno/",
				berth + "services/",
				berth + "runner/",
				berth + "cli/",
			},
		},
		{
			name:     "what reads app folders starts no program of theirs",
			packages: "./appconfig/...",
			never:    []string{"os/exec", "plugin"},
		},
		{
			name:     "the clients are free of any server",
			packages: "./berth",
			never: []string{
				"github.com/jackc/pgx/",
				"github.com/gin-gonic/",
				"github.com/riverqueue/",
				"k8s.io/",
				"helm.sh/",
				"github.com/hashicorp/terraform-",
				"github.com/kyverno/",
				"github.com/getkin/",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range list(t, tc.packages) {
				for _, dep := range p.Deps {
					for _, never := range tc.never {
						if dep == strings.TrimSuffix(never, "/") || strings.HasPrefix(dep, never) {
							t.Errorf("%s links %s; go mod why %s says through what", p.ImportPath, dep, dep)
						}
					}
				}
			}
		})
	}
}

// TestRooms holds the arrows between the packages of the app folder language,
// which its doc.go draws: each may import those named here and no others of
// them. What is generated has a package for itself.
func TestRooms(t *testing.T) {
	t.Parallel()
	const rooms = berth + "pkg/appconfig"
	below := map[string][]string{
		"/place":           {},
		"/digest":          {},
		"/folder":          {"/place"},
		"/syntax":          {"/place"},
		"/fetch":           {"/place"},
		"/template":        {"/place"},
		"/bind":            {"/place", "/syntax", "/fetch"},
		"":                 {"/place", "/digest", "/folder", "/syntax", "/fetch", "/template", "/bind"},
		"/graph":           {"", "/place", "/template"},
		"/check":           {"", "/graph", "/place", "/folder", "/syntax", "/template"},
		"/bundle":          {"", "/digest", "/folder", "/fetch"},
		"/schema/fielddoc": {},
		"/schema":          {"", "/schema/fielddoc", "/bind", "/place"},
		"/appconfigtest":   {"", "/check", "/bundle", "/place"},
	}
	for _, p := range list(t, "./appconfig/...") {
		room := strings.TrimPrefix(p.ImportPath, rooms)
		allowed, known := below[room]
		if !known {
			t.Errorf("%s has no row here that says what it may import", p.ImportPath)
		}
		delete(below, room)
		for _, imported := range p.Imports {
			if other, ok := strings.CutPrefix(imported, rooms); ok && !slices.Contains(allowed, other) {
				t.Errorf("%s may not import %s", p.ImportPath, imported)
			}
		}
		generated := 0
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(text, []byte("// Code generated ")) {
				generated++
			}
		}
		if generated > 0 && generated < len(p.GoFiles) {
			t.Errorf("%s has generated files and files that people write", p.ImportPath)
		}
	}
	for room := range below {
		t.Errorf("there is no package %s", rooms+room)
	}
}

// A listed package is a package of ours with everything it links.
type listed struct {
	ImportPath, Dir        string
	GoFiles, Imports, Deps []string
}

// list asks Go about the packages that match a pattern. There must be some: a
// rule for nothing would hold forever.
func list(t *testing.T, pattern string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", pattern)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", pattern, err, stderr.Bytes())
	}
	var found []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list %s: %v", pattern, err)
		}
		found = append(found, p)
	}
	if len(found) == 0 {
		t.Fatalf("no package matches %s: %s", pattern, stderr.Bytes())
	}
	return found
}
