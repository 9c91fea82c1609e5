package appconfig_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
)

// TestShopIsClean reads examples/shop, which has a component of each type that
// needs a cluster.
func TestShopIsClean(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(os.DirFS("../../examples/shop"), appconfig.LoadOptions{})
	if len(diags) > 0 {
		t.Fatalf("diagnostics:\n%s", appconfigtest.Render(diags))
	}
	g, _ := graph.New(app)
	if diff := cmp.Diff([][]string{{"web_image", "catalogue"}, {"web"}, {"extras"}}, g.Layers()); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	var sources []string
	for _, s := range appconfig.Sources(app) {
		sources = append(sources, s.Name+" "+string(s.Kind)+" "+s.Directory+s.File+s.Repo)
	}
	want := []string{
		" local src/base", "catalogue local src/catalogue", "extras text manifest.yaml", "web local src/chart",
		"web_image image 127.0.0.1:16452/shop/web",
	}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if _, ok := app.Action("shop_answers").HealthCheck(); !ok {
		t.Error("shop_answers is no health check")
	}
}
