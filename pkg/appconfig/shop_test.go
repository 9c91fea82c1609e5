package appconfig_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// TestShopIsClean reads examples/shop, which has a component of each type that
// needs a cluster.
func TestShopIsClean(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(os.DirFS("../../examples/shop"), appconfig.LoadOptions{})
	notYet := []string{"inputs.toml:9 note", "stack.toml:4 note"} // its headings, its stack's text
	if diff := cmp.Diff(notYet, unsupported(diags)); diff != "" {
		t.Fatalf("what is said (-want +got):\n%s\n%s", diff, appconfigtest.Render(diags))
	}
	g, _ := graph.New(app)
	if diff := cmp.Diff([][]string{{"web_image", "catalogue", "notices"}, {"web"}, {"extras"}}, g.Layers()); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	var sources []string
	for _, s := range appconfig.Sources(app) {
		sources = append(sources, s.Name+" "+string(s.Kind)+" "+s.Directory+s.File+s.Repo)
	}
	want := []string{
		" local src/base", "catalogue local src/catalogue", "extras text manifest.yaml", "notices text manifest.yaml", "web local src/chart",
		"web_image image 127.0.0.1:16452/shop/web",
	}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if _, ok := app.Action("shop_answers").HealthCheck(); !ok {
		t.Error("shop_answers is no health check")
	}
}

// unsupported lists where something is said that has no effect yet, and everything
// else as it is.
func unsupported(diags []place.Diagnostic) []string {
	var all []string
	for _, d := range diags {
		if d.Code == place.CodeUnsupported {
			all = append(all, fmt.Sprintf("%s:%d %s", d.File, d.Line, d.Severity))
			continue
		}
		all = append(all, d.String())
	}
	return all
}
