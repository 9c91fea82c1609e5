package foresight_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/services/ctl-api/internal/foresight"
)

// An input is found wherever a block reads it: at a key, in a file that a key loads, in
// what the install says itself; and its place is told.
func TestInputs(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(appconfigtest.Folder(map[string]string{
		"metadata.toml": "version = \"v2\"\ndisplay_name = \"Shop\"\n",
		"runner.toml":   "runner_type = \"local\"\n",
		"stack.toml":    "type = \"local\"\nname = \"x\"\ndescription = \"x\"\n",
		"inputs.toml":   "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"g\"\n" + input("size") + input("zone") + input("colour") + input("unread"),
		"sandbox.toml":  "terraform_version = \">= 1.5.0\"\n[berth]\nlocal_source = \"src\"\n[vars]\nzone = \"{{ .nuon.inputs.inputs.zone }}\"\n",
		"src/main.tf":   "variable \"zone\" { type = string }\n",
		"components/web.toml": "name = \"web\"\ntype = \"helm_chart\"\nchart_name = \"web\"\n[berth]\nlocal_source = \"chart\"\n" +
			"[[values_file]]\ncontents = \"./values/web.yaml\"\n[values]\nsize = \"{{ .nuon.install.inputs.size }}\"\n",
		"components/values/web.yaml":    "colour: {{ .nuon.inputs.inputs.colour }}\nsize: {{ .nuon.inputs.inputs.size }}\n",
		"chart/Chart.yaml":              "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"components/job.toml":           "name = \"job\"\ntype = \"kubernetes_manifest\"\nnamespace = \"shop\"\nmanifest = \"./manifests/job.yaml\"\n",
		"components/manifests/job.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: job}\ndata: {size: '{{ .nuon.inputs.inputs.size }}'}\n",
		"components/vars.toml":          "name = \"vars\"\ntype = \"terraform_module\"\nterraform_version = \">= 1.5.0\"\n[berth]\nlocal_source = \"src\"\n[[var_file]]\ncontents = \"./env/prod.tfvars\"\n",
		"components/env/prod.tfvars":    "zone = \"{{ .nuon.inputs.inputs.zone }}\"\n",
		"components/all.toml":           "name = \"all\"\ntype = \"terraform_module\"\nterraform_version = \">= 1.5.0\"\n[berth]\nlocal_source = \"src\"\n[vars]\nzone = \"{{ range $k, $v := .nuon.inputs.inputs }}{{ $k }}{{ end }}\"\n",
		"components/none.toml":          "name = \"none\"\ntype = \"terraform_module\"\nterraform_version = \">= 1.5.0\"\n[berth]\nlocal_source = \"src\"\n[vars]\nzone = \"eu\"\n",
	}), appconfig.LoadOptions{})
	appconfigtest.Right(t, diags)
	for _, tc := range []struct {
		of       foresight.Source
		override appconfig.InstallComponent
		want     []string
	}{
		{of: foresight.Source{Kind: foresight.SourceSandbox}, want: []string{"zone (sandbox.toml: vars.zone)"}},
		{of: component("web"), want: []string{"colour (components/values/web.yaml)", "size (components/web.toml: values.size)"}},
		{of: component("job"), want: []string{"size (components/manifests/job.yaml)"}},
		{of: component("vars"), want: []string{"zone (components/env/prod.tfvars)"}},
		{of: component("none")},
		{of: component("none"), override: appconfig.InstallComponent{TFVars: `zone = "{{ .nuon.inputs.inputs.zone }}"`}, want: []string{"zone (the install's own values)"}},
		{of: component("all"), want: []string{
			"colour (components/all.toml: vars.zone)", "size (components/all.toml: vars.zone)", "unread (components/all.toml: vars.zone)", "zone (components/all.toml: vars.zone)",
		}},
	} {
		var got []string
		for _, r := range foresight.Inputs(foresight.Block{App: app, Source: tc.of, Override: tc.override}) {
			got = append(got, r.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.of, diff)
		}
	}
}

func input(name string) string {
	return "[[input]]\nname = \"" + name + "\"\ndisplay_name = \"X\"\ndescription = \"x\"\ngroup = \"g\"\n"
}
