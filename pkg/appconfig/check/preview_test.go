package check_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
)

func TestPreviewsOfARecordedState(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"inputs.toml": "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n" +
			"[[input]]\nname = \"size\"\ndisplay_name = \"Size\"\ndescription = \"d\"\ngroup = \"g\"\n",
		"components/db.toml": "var_name = \"postgres\"\n" + repo("db", "main"),
		"components/web.toml": appconfigtest.Module("web", "[vars]", `host = "{{ .nuon.components.postgres.outputs.host }}"`, `plain = "x {{ not.ours }}"`,
			`size = "{{ .berth.install.inputs.size }}"`, "[[var_file]]", `contents = "./web.tfvars"`),
		"components/web.tfvars": "a = 1\nport = {{ .nuon.components.db.outputs.prot }}\n",
	}))
	state := interpolate.NewState(interpolate.NewTree(interpolate.Parts{
		Inputs:     map[string]any{"size": "2"},
		Components: map[string]interpolate.Component{"db": {Populated: true, VarName: "postgres", Outputs: map[string]any{"host": "db.internal", "port": 5432}}},
	}))
	got, diags := check.Previews(app, block(t, app, appconfig.BlockComponent, "web"), state, check.PreviewOptions{})
	want := []check.Preview{
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
		t.Errorf("diagnostics:\n%s\nwant %s", appconfigtest.Render(diags), wantDiag)
	}
}

func TestPreviewsOfAMadeUpState(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"components/db.toml": "var_name = \"postgres\"\n" + repo("db", "main"),
		"components/web.toml": appconfigtest.Module("web", `dependencies = ["db"]`, "[vars]",
			`a_host = "{{ .nuon.components.postgres.outputs.host }}"`,
			`b_all = "{{ range $k, $v := .nuon.components.db.outputs.zones }}{{ $k }}={{ $v }}{{ end }}"`,
			`c_install = "{{ .nuon.install.id }}/{{ .nuon.name }}/{{ .nuon.cloud_account.aws.region }}"`,
			`d_json = "{{ .nuon.install_stack.outputs.vpc | toJson }}"`,
			`e_any = "{{ range $n, $c := .nuon.components }}{{ $n }}={{ $c.outputs.x }};{{ end }}"`,
			`f_whole = "{{ .nuon.sandbox.outputs | toJson }}"`,
			`f_xtop = "{{ range $k, $v := .nuon }}{{ if eq $k \"org\" }}{{ $v.name }}{{ end }}{{ end }} {{ .nuon.id }}"`,
			`g_parsed = "{{ (.nuon.install_stack.outputs.doc | fromJson).a }}"`),
	}))
	got, diags := check.Previews(app, block(t, app, appconfig.BlockComponent, "web"), check.MadeUpState(app), check.PreviewOptions{})
	values := map[string]string{}
	for _, p := range got {
		values[p.Key] = check.WithoutEscapes(p.Value)
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
	if len(diags) != 1 || diags[0].Line != 13 || diags[0].Code != place.CodeReference {
		t.Errorf("diagnostics:\n%s\nwant one, of line 13", appconfigtest.Render(diags))
	}
}

func block(t *testing.T, app *appconfig.App, kind, name string) check.Block {
	t.Helper()
	for _, b := range check.Blocks(app) {
		if b.Kind == kind && b.Name == name {
			return b
		}
	}
	t.Fatalf("there is no %s %q", kind, name)
	return check.Block{}
}

// TestPreviewsOfOtherBlocks holds that actions, roles, the stack and pages are
// rendered too, with what is asked when an action is run.
func TestPreviewsOfOtherBlocks(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"metadata.toml":        "version = \"v2\"\nreadme = \"./README.md\"\n[default_labels]\nteam = \"{{ .nuon.name }}\"\n",
		"README.md":            "# {{ \"always\" | upper }} {{ .nuon.id }}\n",
		"stack.toml":           "type = \"local\"\nname = \"berth-{{ .nuon.id }}\"\ndescription = \"d\"\n[[custom_nested_stacks]]\nname = \"x\"\nindex = 1\ntemplate_url = \"u\"\n[custom_nested_stacks.parameters]\nP = \"{{ .nuon.name }}\"\n",
		"permissions.toml":     "[provision_role]\nname = \"p-{{ .nuon.id }}\"\ndescription = \"d\"\n[[provision_role.policies]]\nname = \"q\"\ncontents = \"./q.json\"\n",
		"permissions/q.json":   "{\"Resource\": \"{{ .nuon.name }}\"}",
		"actions/restart.toml": "name = \"restart\"\n[[inputs]]\nname = \"version\"\n[[inputs]]\nname = \"why\"\n[[steps]]\nname = \"s\"\ncommand = \"go {{ .action.inputs.version }}\"\n[steps.env_vars]\nWHY = \"{{ .action.inputs.why }}\"\n[[steps]]\nname = \"t\"\ninline_contents = \"./t.sh\"\n",
		"actions/t.sh":         "echo {{ .nuon.name }}\n",
		"runbooks/r.toml":      "name = \"r\"\nreadme = \"./R.md\"\n[[steps]]\nname = \"s\"\ntype = \"action\"\ncommand = \"c\"\n",
		"R.md":                 "{{ .nuon.components.none.outputs.x }}{{ 1 }}",
	}))
	state := interpolate.NewState(interpolate.NewTree(interpolate.Parts{Install: interpolate.Install{ID: "ins_1", Name: "acme"}}))
	opts := check.PreviewOptions{Inputs: map[string]string{"version": "2"}}
	got := map[string]string{}
	var diags []place.Diagnostic
	for _, b := range check.Blocks(app) {
		previews, found := check.Previews(app, b, state, opts)
		diags = append(diags, found...)
		for _, p := range previews {
			if p.Template {
				got[b.Kind+" "+b.Name+" "+p.Key] = p.Value
			}
		}
	}
	want := map[string]string{
		"metadata  readme": "# ALWAYS ins_1\n", "metadata  default_labels.team": "acme",
		"stack  name": "berth-ins_1", "stack  custom_nested_stacks[0].parameters.P": "acme",
		"role p-{{ .nuon.id }} name": "p-ins_1", "role p-{{ .nuon.id }} policies[0].contents": `{"Resource": "acme"}`,
		"action restart steps[0].command": "go 2", "action restart steps[0].env_vars.WHY": "<action.inputs.why>", "action restart steps[1].inline_contents": "echo acme\n",
		"runbook r readme": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if len(diags) != 1 || diags[0].Severity != place.Warning || diags[0].File != "R.md" {
		t.Errorf("diagnostics:\n%s\nwant one warning of R.md", appconfigtest.Render(diags))
	}
}

// TestPreviewsOfSealedValues holds that what only the install can open is marked
// as such, whatever a template makes of it, and that nothing else hides behind
// it.
func TestPreviewsOfSealedValues(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"components/db.toml": repo("db", "main"), // whose outputs are not known here
		"components/web.toml": appconfigtest.Module("web", `dependencies = ["db"]`, "[vars]",
			`a_plain = "x-{{ .nuon.components.db.outputs.token }}"`,
			`b_parsed = "{{ (.nuon.components.db.outputs.token | fromJson).key }}"`,
			`c_below = "{{ .nuon.components.db.outputs.token.key }}"`,
			`d_number = "{{ .nuon.components.db.outputs.port }}"`,
			`e_missing = "{{ .nuon.components.db.outputs.tokne }}{{ .nuon.components.db.outputs.token }}"`,
			`f_whole = "{{ .nuon.components.db.outputs | toJson }}"`),
	}))
	state := interpolate.NewState(interpolate.NewTree(interpolate.Parts{
		Components: map[string]interpolate.Component{"db": {Populated: true, Outputs: map[string]any{"token": "(sealed)", "port": 5432}}},
	}))
	got, diags := check.Previews(app, block(t, app, appconfig.BlockComponent, "web"), state, check.PreviewOptions{Sealed: "(sealed)"})
	type shown struct {
		value  string
		sealed bool
	}
	values := map[string]shown{}
	for _, p := range got {
		values[p.Key] = shown{p.Value, p.Sealed}
	}
	want := map[string]shown{
		"vars.a_plain": {"x-(sealed)", true}, "vars.b_parsed": {"(sealed)", true}, "vars.c_below": {"(sealed)", true}, "vars.d_number": {"5432", false},
		"vars.e_missing": {"", true}, "vars.f_whole": {`{"port":5432,"token":"(sealed)"}`, true},
	}
	if diff := cmp.Diff(want, values, cmp.AllowUnexported(shown{})); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if len(diags) != 1 || !strings.Contains(diags[0].Message, `the nearest is "token"`) {
		t.Errorf("diagnostics:\n%s\nwant one, of the missing output", appconfigtest.Render(diags))
	}
}

// TestExamplesRenderWithAMadeUpState holds that the made-up state has
// everything that the examples' templates read.
func TestExamplesRenderWithAMadeUpState(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hello", "shop", "kitchen-sink"} {
		app, _ := appconfig.Load(os.DirFS("../../../examples/"+name), appconfig.LoadOptions{})
		state, rendered := check.MadeUpState(app), 0
		for _, b := range check.Blocks(app) {
			previews, diags := check.Previews(app, b, state, check.PreviewOptions{})
			if len(diags) > 0 {
				t.Errorf("%s %s of %s:\n%s", b.Kind, b.Name, name, appconfigtest.Render(diags))
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
