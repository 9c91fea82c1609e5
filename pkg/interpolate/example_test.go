package interpolate_test

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/interpolate"
)

func ExampleRender() {
	tree := interpolate.NewState(interpolate.NewTree(interpolate.Parts{
		Install: interpolate.Install{ID: "ins_1", Name: "acme"},
		Inputs:  map[string]any{"greeting": "Ahoy"},
	}))
	fmt.Println(interpolate.Render("{{ .nuon.inputs.inputs.greeting }}, {{ .berth.install.name | upper }}", tree, interpolate.Options{}))
	fmt.Println(interpolate.Render("{{ request.object.kind }} is not ours", tree, interpolate.Options{}))
	// Output:
	// Ahoy, ACME <nil>
	// {{ request.object.kind }} is not ours <nil>
}
