package graph_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGraphOfExamples compares the drawings of the examples' graphs with golden
// files: every edge has its reasons, and every reason its place.
func TestGraphOfExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hello", "shop", "kitchen-sink"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, diags := appconfig.Load(os.DirFS("../../../examples/"+name), appconfig.LoadOptions{})
			if place.HasErrors(diags) {
				t.Fatalf("diagnostics:\n%s", appconfigtest.Render(diags))
			}
			g, _ := graph.New(app)
			for _, e := range g.Edges {
				for _, r := range e.Reasons {
					if r.File == "" || r.Line == 0 || r.Column == 0 {
						t.Errorf("%s needs %s: a reason has no place: %+v", e.From, e.To, r)
					}
				}
			}
			compareDrawings(t, name, g)
		})
	}
}

func TestGraphWithCycles(t *testing.T) {
	t.Parallel()
	app, _ := appconfig.Load(appconfigtest.Folder(map[string]string{
		"components/a.toml":   appconfigtest.Module("a", `dependencies = ["b", "d"]`),
		"components/b.toml":   appconfigtest.Module("b", "[vars]", `c = "{{ .nuon.components.c.outputs.x }}"`),
		"components/c.toml":   appconfigtest.Module("c", "[[var_file]]", `contents = "./c.tfvars"`),
		"components/c.tfvars": "x = 1\na = \"{{ .nuon.components.a.outputs.x }}\"\n",
		"components/d.toml":   appconfigtest.Module("d"),
		"components/top.toml": appconfigtest.Module("top", `dependencies = ["a"]`),
		"components/e.toml":   appconfigtest.Module("e", `dependencies = ["f"]`),
		"components/f.toml":   appconfigtest.Module("f", `dependencies = ["e"]`),
	}), appconfig.LoadOptions{})
	g, diags := graph.New(app)
	if len(diags) != 2 || len(g.Cycles()) != 2 {
		t.Errorf("got %d diagnostics and %d cycles, want 2 of each", len(diags), len(g.Cycles()))
	}
	compareDrawings(t, "cycles", g)
}

func compareDrawings(t *testing.T, name string, g *graph.Graph) {
	t.Helper()
	encoded, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for ending, got := range map[string]string{"txt": g.Tree(), "dot": g.DOT(), "mmd": g.Mermaid(), "json": string(encoded) + "\n"} {
		golden := filepath.Join("testdata", name+"."+ending)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", golden, diff)
		}
	}
}

func TestNamesCannotBreakADrawing(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{Components: []appconfig.Component{{Name: `a"] end <b>#1`, Type: "x\ny", Dependencies: []string{"end"}}, {Name: "end"}}}
	g, _ := graph.New(app)
	if want := `  c0["a#quot;] end #lt;b#gt;#35;1<br>x y"]` + "\n"; !strings.Contains(g.Mermaid(), want) {
		t.Errorf("mermaid: got\n%s", g.Mermaid())
	}
	if want := `"a\"] end <b>#1" [label = "a\"] end <b>#1\nx\ny"]`; !strings.Contains(g.DOT(), want) {
		t.Errorf("dot: got\n%s", g.DOT())
	}
}
