package appconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// An image that is a component has the digest that the release has of that; no
// other image has one.
func TestPinImages(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{Components: []appconfig.Component{{Name: "web-tools", VarName: "tools"}, {Name: "web"}}}
	want := []string{}
	for image, digest := range map[string]string{
		"{{ .nuon.components.web.outputs.image.ref }}":            "sha256:web",
		"{{- .berth.components.tools.outputs.image.ref -}}":       "sha256:tools",
		"{{ .nuon.components.gone.outputs.image.ref }}":           "",
		"{{ .nuon.components.web.outputs.image.repository }}":     "",
		"{{ .nuon.components.web.outputs.image.ref | lower }}":    "",
		"evil.test/x{{ .nuon.components.web.outputs.image.ref }}": "",
		"{{ .nuon.inputs.inputs.image }}":                         "",
		"registry.test/tools@sha256:00":                           "",
		"":                                                        "",
	} {
		app.Actions = append(app.Actions, appconfig.Action{Name: image, Image: image})
		want = append(want, digest)
	}
	app.PinImages(map[string]string{"web": "sha256:web", "web-tools": "sha256:tools"})
	var got []string
	for _, a := range app.Actions {
		got = append(got, a.ImageDigest)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("digests (-want +got):\n%s", diff)
	}
}
