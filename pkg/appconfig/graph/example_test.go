package graph_test

import (
	"fmt"
	"testing/fstest"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
)

func ExampleNew() {
	folder := fstest.MapFS{
		"metadata.toml":       {Data: []byte("version = \"v2\"\n")},
		"components/db.toml":  {Data: []byte("name = \"db\"\ntype = \"terraform_module\"\n")},
		"components/web.toml": {Data: []byte("name = \"web\"\ntype = \"helm_chart\"\ndependencies = [\"db\"]\n")},
	}
	app, _ := appconfig.Load(folder, appconfig.LoadOptions{})
	g, _ := graph.New(app)
	fmt.Println(g.Order())
	fmt.Println(g.Needs("web"))
	// Output:
	// [db web]
	// [db]
}
