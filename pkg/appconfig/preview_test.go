package appconfig_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
)

func TestPreviewsOfARecordedState(t *testing.T) {
	t.Parallel()
	app := load(t, folder(map[string]string{
		"inputs.toml": "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n" +
			"[[input]]\nname = \"size\"\ndisplay_name = \"Size\"\ndescription = \"d\"\ngroup = \"g\"\n",
		"components/db.toml": module("db", `var_name = "postgres"`),
		"components/web.toml": module("web", "[vars]", `host = "{{ .nuon.components.postgres.outputs.host }}"`, `plain = "x {{ not.ours }}"`,
			`size = "{{ .berth.install.inputs.size }}"`, "[[var_file]]", `contents = "./web.tfvars"`),
		"components/web.tfvars": "a = 1\nport = {{ .nuon.components.db.outputs.prot }}\n",
	}))
	state := interpolate.NewState(interpolate.NewTree(interpolate.Parts{
		Inputs:     map[string]any{"size": "2"},
		Components: map[string]interpolate.Component{"db": {Populated: true, VarName: "postgres", Outputs: map[string]any{"host": "db.internal", "port": 5432}}},
	}))
	got, diags := appconfig.Previews(app, "web", state, time.Time{})
	want := []appconfig.Preview{
		{Key: "vars.host", File: "components/web.toml", Line: 5, Template: true, Value: "db.internal"},
		{Key: "vars.plain", File: "components/web.toml", Line: 6, Value: "x {{ not.ours }}"},
		{Key: "vars.size", File: "components/web.toml", Line: 7, Template: true, Value: "2"},
		{Key: "var_file[0].contents", File: "components/web.tfvars", Line: 1, Template: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("previews (-want +got):\n%s", diff)
	}
	wantDiag := `components/web.tfvars:2:11 error var_file[0].contents: .nuon.components.db.outputs.prot: there is no "prot"; the nearest is "port"`
	if len(diags) != 1 || diags[0].String() != wantDiag {
		t.Errorf("diagnostics:\n%s\nwant %s", render(diags), wantDiag)
	}
}

func TestPreviewsOfAMadeUpState(t *testing.T) {
	t.Parallel()
	app := load(t, folder(map[string]string{
		"components/db.toml": module("db", `var_name = "postgres"`),
		"components/web.toml": module("web", `dependencies = ["db"]`, "[vars]",
			`a_host = "{{ .nuon.components.postgres.outputs.host }}"`,
			`b_all = "{{ range $k, $v := .nuon.components.db.outputs.zones }}{{ $k }}={{ $v }}{{ end }}"`,
			`c_install = "{{ .nuon.install.id }}/{{ .nuon.name }}/{{ .nuon.cloud_account.aws.region }}"`,
			`d_json = "{{ .nuon.install_stack.outputs.vpc | toJson }}"`,
			`e_any = "{{ range $n, $c := .nuon.components }}{{ $n }}={{ $c.outputs.x }};{{ end }}"`,
			`f_whole = "{{ .nuon.sandbox.outputs | toJson }}"`,
			`f_xtop = "{{ range $k, $v := .nuon }}{{ if eq $k \"org\" }}{{ $v.name }}{{ end }}{{ end }} {{ .nuon.id }}"`,
			`g_parsed = "{{ (.nuon.install_stack.outputs.doc | fromJson).a }}"`),
	}))
	got, diags := appconfig.Previews(app, "web", appconfig.MadeUpState(app), time.Time{})
	values := map[string]string{}
	for _, p := range got {
		values[p.Key] = appconfig.WithoutEscapes(p.Value)
	}
	want := map[string]string{
		"vars.a_host":    "<components.db.outputs.host>",
		"vars.b_all":     "*=<components.db.outputs.zones.*>",
		"vars.c_install": "<id>/<name>/<cloud_account.aws.region>",
		"vars.d_json":    `"<install_stack.outputs.vpc>"`,
		"vars.e_any":     "db=<components.db.outputs.x>;postgres=<components.db.outputs.x>;web=<components.web.outputs.x>;",
		"vars.f_whole":   `{"*":"<sandbox.outputs.*>"}`,
		"vars.f_xtop":    "<org.name> <id>",
		"vars.g_parsed":  "",
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if len(diags) != 1 || diags[0].Line != 13 || diags[0].Code != appconfig.CodeReference {
		t.Errorf("diagnostics:\n%s\nwant one, of line 13", render(diags))
	}
	if none, _ := appconfig.Previews(app, "nobody", appconfig.MadeUpState(app), time.Time{}); none != nil {
		t.Errorf("values of a component that is not there: %v", none)
	}
}

// TestExamplesRenderWithAMadeUpState holds that the made-up state has
// everything that the examples' templates read.
func TestExamplesRenderWithAMadeUpState(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hello", "shop", "kitchen-sink"} {
		app, _ := appconfig.Load(os.DirFS("../../examples/"+name), appconfig.LoadOptions{})
		state, rendered := appconfig.MadeUpState(app), 0
		for _, c := range app.Components {
			previews, diags := appconfig.Previews(app, c.Name, state, time.Time{})
			if len(diags) > 0 {
				t.Errorf("%s of %s:\n%s", c.Name, name, render(diags))
			}
			for _, p := range previews {
				if p.Template {
					rendered++
				}
			}
		}
		if rendered == 0 {
			t.Errorf("%s has no template", name)
		}
	}
}
