package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func TestGraph(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"components/web.toml": appconfigtest.Module("web", `dependencies = ["db"]`, "[vars]", "# line 6",
			`api = "{{ (index .nuon.components \"api\").outputs.url }}"`, `db = "{{ .nuon.components.db.outputs.host }}"`),
		"components/api.toml":   appconfigtest.Module("api", "[[var_file]]", `contents = "./api.tfvars"`),
		"components/api.tfvars": "a = 1\nhost = \"{{ with .nuon.components.postgres }}{{ .outputs.host }}{{ end }}\"\n",
		"components/db.toml":    appconfigtest.Module("db", `var_name = "postgres"`),
		"components/cron.toml":  appconfigtest.Module("cron", "[vars]", `seeded = "{{ .nuon.actions.workflows.seed.outputs.ok }}"`),
		"components/alone.toml": appconfigtest.Module("alone"),
		"actions/seed.toml":     "name = \"seed\"\ndependencies = [\"db\"]\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n",
	}))
	g, diags := graph.New(app)
	if len(diags) > 0 {
		t.Fatalf("diagnostics: %s", appconfigtest.Render(diags))
	}
	want := &graph.Graph{
		Nodes: []string{"alone", "api", "cron", "db", "web"},
		Edges: []graph.Edge{
			{From: "api", To: "db", Reasons: []graph.Reason{
				{Reference: ".nuon.components.postgres", File: "components/api.tfvars", Line: 2, Column: 17},
				{Reference: ".nuon.components.postgres.outputs.host", File: "components/api.tfvars", Line: 2, Column: 48},
			}},
			{From: "cron", To: "db", Reasons: []graph.Reason{
				{Reference: ".nuon.actions.workflows.seed.outputs.ok", File: "components/cron.toml", Line: 5, Column: 1},
			}},
			{From: "web", To: "api", Reasons: []graph.Reason{
				{Reference: ".nuon.components.api.outputs.url", File: "components/web.toml", Line: 7, Column: 1},
			}},
			{From: "web", To: "db", Reasons: []graph.Reason{
				{Explicit: true, File: "components/web.toml", Line: 4, Column: 17},
				{Reference: ".nuon.components.db.outputs.host", File: "components/web.toml", Line: 8, Column: 1},
			}},
		},
	}
	if diff := cmp.Diff(want, g, cmpopts.IgnoreUnexported(graph.Graph{})); diff != "" {
		t.Errorf("graph (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"alone", "db"}, {"api", "cron"}, {"web"}}, g.Layers()); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"alone", "db", "api", "cron", "web"}, g.Order()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"api", "db"}, g.Needs("web")); diff != "" {
		t.Errorf("needs of web (-want +got):\n%s", diff)
	}
}

func TestOrderByTypeThenName(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{Components: []appconfig.Component{
		{Name: "a-chart", Type: "helm_chart"}, {Name: "b-module", Type: appconfig.TypeTerraformModule},
		{Name: "c-manifest", Type: "kubernetes_manifest"}, {Name: "d-build", Type: "docker_build"},
		{Name: "e-image", Type: "container_image"}, {Name: "a-image", Type: "external_image", Dependencies: []string{"c-manifest"}},
	}}
	g, _ := graph.New(app)
	want := []string{"e-image", "d-build", "b-module", "a-chart", "c-manifest", "a-image"}
	if diff := cmp.Diff(want, g.Order()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestCyclesStayOutOfTheOrder(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{Components: []appconfig.Component{
		{Name: "a", Dependencies: []string{"b"}}, {Name: "b", Dependencies: []string{"a"}},
		{Name: "c"}, {Name: "d", Dependencies: []string{"a"}},
	}}
	g, diags := graph.New(app)
	if len(diags) != 1 || diags[0].Code != place.CodeCycle {
		t.Errorf("diagnostics: got %v, want one cycle", diags)
	}
	if diff := cmp.Diff([]string{"c"}, g.Order()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
