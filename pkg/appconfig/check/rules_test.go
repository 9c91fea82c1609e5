package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// TestRulesOfRealApps has one test for each rule that apps in the public format
// rely on beyond the lists of keys: what each says, in its name.
func TestRulesOfRealApps(t *testing.T) {
	t.Parallel()
	step := "[[steps]]\nname = \"s\"\ncommand = \"true\"\n"
	chart := "type = \"helm_chart\"\nchart_name = \"h\"\n[berth]\nlocal_source = \"src/base\"\n"
	tests := []struct {
		name  string
		files map[string]string
		// diags is everything that is said by the rules of the format, notes
		// apart; a line may be left short.
		diags []string
		// allowPolicies is the switch of the sync.
		allowPolicies bool
		check         func(t *testing.T, app *appconfig.App)
	}{
		{name: "folders are walked at any depth and only TOML counts",
			files: map[string]string{"components/x/y/a.toml": appconfigtest.Module("a"), "components/x/values.yaml": "]", "components/x/main.go": "package", "permissions/p.json": "{", "policies/x.rego": "?", "inputs/README": "x"},
			check: func(t *testing.T, app *appconfig.App) { equal(t, "components", []string{"a"}, names(app)) }},
		{name: "a file without definitions may stand next to a folder with them",
			files: map[string]string{"secrets.toml": "# all in secrets/\n", "secrets/a.toml": "name = \"a\"\ndescription = \"d\"\n"},
			check: func(t *testing.T, app *appconfig.App) { equal(t, "secrets", 1, len(app.Secrets)) }},
		{name: "a folder without definitions may stand next to a file with them",
			files: map[string]string{"secrets.toml": "[[secret]]\nname = \"a\"\ndescription = \"d\"\n", "secrets/none.toml": "# none\n"},
			check: func(t *testing.T, app *appconfig.App) { equal(t, "secrets", 1, len(app.Secrets)) }},
		{name: "a file and a folder that both have definitions are an error",
			files: map[string]string{"secrets.toml": "[[secret]]\nname = \"a\"\ndescription = \"d\"\n", "secrets/b.toml": "name = \"b\"\ndescription = \"d\"\n"},
			diags: []string{"secrets.toml error secrets.toml and secrets/b.toml both have definitions"}},
		{name: "empty documents mean none",
			files: map[string]string{"inputs.toml": "# none\n", "components/a.toml": "\n# later\n", "break_glass.toml": "\n", "policies.toml": "#\n", "operation_roles.toml": "\n"},
			check: func(t *testing.T, app *appconfig.App) {
				if app.OperationRoles != nil || len(app.Components)+len(app.Inputs)+len(app.BreakGlass)+len(app.Policies) > 0 {
					t.Errorf("got %+v", app)
				}
			}},
		{name: "an unknown key is a warning with its line and the nearest key",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", "drift_shedule = \"x\"")},
			diags: []string{`components/a.toml:4:1 warning unknown key "drift_shedule": did you mean "drift_schedule"?`}},
		{name: "a misspelt required key is an error, since the right one is missing",
			files: map[string]string{"runner.toml": "runner_typ = \"local\"\n"},
			diags: []string{`runner.toml:1:1 error unknown key "runner_typ", and runner_type is missing: did you mean "runner_type"?`}},
		{name: "steps in an image need a runner whose engines are pods",
			files: map[string]string{"stack.toml": "type = \"local\"\nname = \"n\"\ndescription = \"d\"\n", "actions/a.toml": "name = \"a\"\nimage = \"registry.example.com/a@sha256:" + strings.Repeat("0", 64) + "\"\n[[triggers]]\ntype = \"manual\"\n" + step},
			diags: []string{`actions/a.toml:2:1 warning action "a" runs its steps in an image, which takes a runner whose engines are pods: the runner of a local stack refuses it`}},
		{name: "a stack of pods runs steps in an image",
			files: map[string]string{"stack.toml": "type = \"kubernetes\"\nname = \"n\"\ndescription = \"d\"\n", "actions/a.toml": "name = \"a\"\nimage = \"registry.example.com/a@sha256:" + strings.Repeat("0", 64) + "\"\n[[triggers]]\ntype = \"manual\"\n" + step}},
		{name: "a missing Terraform version comes with an example",
			files: map[string]string{
				"components/a.toml": "name = \"a\"\ntype = \"terraform_module\"\n[public_repo]\nrepo = \"acme/a\"\ndirectory = \".\"\nbranch = \"main\"\n",
				"sandbox.toml":      "[public_repo]\nrepo = \"acme/a\"\ndirectory = \".\"\nbranch = \"main\"\n",
			},
			diags: []string{
				`components/a.toml error terraform_version is missing: for example terraform_version = ">= 1.5.0, < 2.0.0"`,
				`sandbox.toml error terraform_version is missing: for example terraform_version = ">= 1.5.0, < 2.0.0"`,
			}},
		{name: "a relative path is relative to the folder of the kind",
			files: map[string]string{"components/deep/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./a.tfvars\""), "components/a.tfvars": "# kind", "components/deep/a.tfvars": "# file"},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "var file", "# kind", app.Component("a").TerraformModule.VarFiles[0].Contents.Contents)
			}},
		{name: "a relative path in policies/ is relative to its file",
			files: map[string]string{"policies/deep/p.toml": "type = \"sandbox\"\nengine = \"opa\"\ncontents = \"./p.rego\"\n", "policies/deep/p.rego": "package nuon", "policies/p.rego": "package wrong"},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "policy", "package nuon", app.Policies[0].Contents.Contents)
			}},
		{name: "a relative path of readme, sandbox and policies.toml is relative to the app",
			files: map[string]string{"metadata.toml": "version = \"v1\"\nreadme = \"./docs/R.md\"\n", "docs/R.md": "r", "sandbox.toml": appconfigtest.Minimal["sandbox.toml"] + "[[var_file]]\ncontents = \"./b.tfvars\"\n", "b.tfvars": "# b",
				"policies.toml": "[[policy]]\ntype = \"sandbox\"\nengine = \"opa\"\ncontents = \"./policies/p.rego\"\n", "policies/p.rego": "package nuon"},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "files", []string{"docs/R.md", "b.tfvars", "policies/p.rego"}, []string{app.Metadata.Readme.File, app.Sandbox.VarFiles[0].Contents.File, app.Policies[0].Contents.File})
			}},
		{name: "what does not begin as a path or an address is the contents",
			files: map[string]string{"actions/a.toml": "name = \"a\"\n[[steps]]\nname = \"s\"\ninline_contents = \"a/b.sh\"\n"},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "script", place.Text{Contents: "a/b.sh"}, *app.Actions[0].Steps[0].InlineContents)
			}},
		{name: "permissions_boundary is empty, JSON or a path",
			files: map[string]string{"permissions/a.toml": role("a", `permissions_boundary = ""`), "permissions/b.toml": role("b", `permissions_boundary = '{"Version": "1"}'`),
				"permissions/c.toml": role("c", `permissions_boundary = "./c.json"`), "permissions/c.json": "{}"},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "boundary", "{}", app.Permissions[2].PermissionsBoundary.Contents)
			}},
		{name: "nothing is fetched while a folder is read",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"https://example.invalid/a\"\n[[var_file]]\ncontents = \"git::https://example.invalid/a//b\"")},
			check: func(t *testing.T, app *appconfig.App) { equal(t, "fetches", 2, len(appconfig.Fetches(app))) }},
		{name: "free-form maps take native scalars",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", "[vars]\nx = true\ny = 3\nz = 1.5")},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "vars", map[string]string{"x": "true", "y": "3", "z": "1.5"}, app.Component("a").TerraformModule.Vars)
			}},
		{name: "keys of a chart's values are paths",
			files: map[string]string{"components/h.toml": "name = \"h\"\n" + chart + "[values]\n\"image.tag\" = \"1\"\n\"hosts[0].name\" = \"x\"\n\"a=b\" = \"x\"\n"},
			diags: []string{`components/h.toml:9:1 error "a=b" is no path of one value`}},
		{name: "keys of Pulumi's config have colons",
			files: map[string]string{"components/p.toml": "name = \"p\"\ntype = \"pulumi\"\nruntime = \"go\"\npublic_repo = {repo = \"a/b\"}\n[config]\n\"aws:region\" = \"x\"\n"},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "config", map[string]string{"aws:region": "x"}, app.Component("p").Pulumi.Config)
			}},
		{name: "the default of an input is a string for every type",
			files: map[string]string{"inputs.toml": "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n" + input("a", "number", `"3"`) + input("b", "bool", `true`) + input("c", "list", `'["x"]'`) + input("d", "json", `"{}"`)},
			check: func(t *testing.T, app *appconfig.App) {
				var got []string
				for _, in := range app.Inputs {
					got = append(got, *in.Default)
				}
				equal(t, "defaults", []string{"3", "true", `["x"]`, "{}"}, got)
			}},
		{name: "the version of the metadata says nothing about the layout",
			files: map[string]string{"metadata.toml": "version = \"v1\"\n", "components/x/a.toml": appconfigtest.Module("a"), "secrets/s.toml": "name = \"s\"\ndescription = \"d\"\n"},
			check: func(t *testing.T, app *appconfig.App) { equal(t, "components", []string{"a"}, names(app)) }},
		{name: "exact versions of Terraform from 1.11 to 1.14",
			files: map[string]string{"components/a.toml": strings.Replace(appconfigtest.Module("a"), "1.11.4", "1.14.0", 1), "components/b.toml": strings.Replace(appconfigtest.Module("b"), "1.11.4", "1.13", 1)},
			diags: []string{`components/b.toml:3:1 error terraform_version "1.13" is neither`}},
		{name: "branch holds a branch, a tag or a commit",
			files: map[string]string{"components/a.toml": repo("a", "main"), "components/b.toml": repo("b", "v1.2.3"), "components/c.toml": repo("c", "0123456789abcdef0123456789abcdef01234567")},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "refs", []string{"main", "v1.2.3", "0123456789abcdef0123456789abcdef01234567"},
					[]string{app.Components[0].PublicRepo.Branch, app.Components[1].PublicRepo.Branch, app.Components[2].PublicRepo.Branch})
			}},
		{name: "older names of triggers",
			files: map[string]string{"components/c.toml": appconfigtest.Module("c"), "actions/a.toml": "name = \"a\"\n[[triggers]]\ntype = \"pre-component-deploy\"\ncomponent_name = \"c\"\n[[triggers]]\ntype = \"post-component-deploy\"\ncomponent_name = \"c\"\n" + step},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "triggers", []appconfig.TriggerType{"pre-deploy-component", "post-deploy-component"}, []appconfig.TriggerType{app.Actions[0].Triggers[0].Type, app.Actions[0].Triggers[1].Type})
			}},
		{name: "roles that are switched on or off are triggers",
			files: map[string]string{"actions/a.toml": "name = \"a\"\n[[triggers]]\ntype = \"role-enabled\"\n[[triggers]]\ntype = \"role-disabled\"\n" + step}},
		{name: "schedule is another name of cron_schedule",
			files: map[string]string{"actions/a.toml": "name = \"a\"\n[[triggers]]\ntype = \"cron\"\nschedule = \"*/5 * * * *\"\n[[triggers]]\ntype = \"cron\"\nschedule = \"5 minutes\"\n" + step},
			diags: []string{`actions/a.toml:7:1 error "5 minutes" is not a cron expression`},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "schedule", "*/5 * * * *", app.Actions[0].Triggers[0].CronSchedule)
			}},
		{name: "enable_kube_config stands on the action or on the step",
			files: map[string]string{"actions/a.toml": "name = \"a\"\nenable_kube_config = false\n" + step + "enable_kube_config = true\n"},
			check: func(t *testing.T, app *appconfig.App) {
				equal(t, "action and step", []bool{false, true}, []bool{app.Actions[0].EnableKubeConfig, *app.Actions[0].Steps[0].EnableKubeConfig})
			}},
		{name: "a string that does not mention the tree is no template",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", "[vars]\nx = \"{{ .Values.x }} ${{ github.sha }} {{\"")}},
		{name: "a README always is a template",
			files: map[string]string{"metadata.toml": "version = \"v2\"\nreadme = \"\"\"\n{{ .Values.x }}\"\"\"\n"},
			diags: []string{"metadata.toml:3:4 warning .Values.x does not exist"}},
		{name: "braces of Kyverno survive next to a template",
			files: map[string]string{"policies/k.toml": "type = \"helm_chart\"\ncontents = \"\"\"\napiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: '{{ .nuon.id }}'}\nmessage: '{{ request.object.kind }} {{ element.name }}'\n\"\"\"\n"}},
		{name: "a root without its dot stays literal, with a warning",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", "[vars]\nx = \"{{nuon.install.id}}\"")},
			diags: []string{"components/a.toml:5:1 warning {{nuon.install.id}} has no dot in front of the root"}},
		{name: "the inputs of an action are a second root inside of it",
			files: map[string]string{"actions/a.toml": "name = \"a\"\n[[inputs]]\nname = \"n\"\n[[steps]]\nname = \"s\"\ncommand = \"echo {{ .action.inputs.n }}\"\n", "components/a.toml": appconfigtest.Module("a", "[vars]\nx = \"{{ .action.inputs.n }}\"")},
			diags: []string{"components/a.toml:5:1 error .action.inputs.n can only be read inside actions"}},
		{name: "the functions that configs use are there",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", `[vars]`, `x = '''{{ with .nuon.inputs.inputs }}{{ printf "%d" (len .) }}{{ end }}{{ if and (gt 2 1) (eq .nuon.id "x") }}{{ join "," (values (dict "a" 1)) }}{{ else }}{{ ternary "a" "b" true }}{{ end }}{{ index .nuon.org "id" }}'''`)}},
		{name: "the functions that READMEs use are there",
			files: map[string]string{"metadata.toml": "version = \"v2\"\nreadme = '''{{ range list 1 2 }}{{ . }}{{ end }}{{ dig \"a\" \"\" (dict) | default \"x\" }}{{ toPrettyJson (fromJson \"{}\") }}{{ if or (not true) (ne 1 2) (lt 1 2) }}{{ now }}{{ end }}'''\n"}},
		{name: "functions that reach out are not there",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", "[vars]", "x = '{{ expandenv .nuon.id }}'", "y = '{{ getHostByName .nuon.id }}'", "z = '{{ env .nuon.id }}'")},
			diags: []string{"components/a.toml:5:1 error template does not parse: function \"expandenv\"", "components/a.toml:6:1 error template does not parse: function \"getHostByName\"", "components/a.toml:7:1 error template does not parse: function \"env\""}},
		{name: "what loaded files read makes a dependency",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./a.tfvars\""), "components/a.tfvars": "x = \"{{ if .nuon.id }}{{ .berth.components.b.outputs.x }}{{ end }}\"\n", "components/b.toml": appconfigtest.Module("b")},
			check: func(t *testing.T, app *appconfig.App) {
				g, _ := graph.New(app)
				equal(t, "needs of a", []string{"b"}, g.Needs("a"))
			}},
		{name: "a kubernetes context makes a dependency on its cluster",
			files: map[string]string{"components/a.toml": appconfigtest.Module("a", "kubernetes_context = \"own\""), "components/b.toml": appconfigtest.Module("b"), "kubernetes_contexts.toml": "[[kubernetes_context]]\nname = \"own\"\ncomponent = \"b\"\n"},
			check: func(t *testing.T, app *appconfig.App) {
				g, _ := graph.New(app)
				equal(t, "needs of a", []string{"b"}, g.Needs("a"))
			}},
		{name: "Rego has the package nuon",
			files: map[string]string{"policies/p.toml": "type = \"sandbox\"\nengine = \"opa\"\ncontents = \"package main\"\n"},
			diags: []string{`policies/p.toml:3:1 error contents has the package "main"`}},
		{name: "a key of a rule that Kyverno does not know",
			files: map[string]string{"policies/p.toml": "type = \"helm_chart\"\ncontents = \"./p.yaml\"\n", "policies/p.yaml": kyvernoRule("validte: {}")},
			diags: []string{`policies/p.yaml:7:1 error contents has the key "validte" in rule "r", for which Kyverno refuses the policy`}},
		{name: "one that is allowed is a warning", allowPolicies: true,
			files: map[string]string{"policies/p.toml": "type = \"helm_chart\"\ncontents = \"./p.yaml\"\n", "policies/p.yaml": kyvernoRule("messages: x")},
			diags: []string{`policies/p.yaml:7:1 warning contents has the key "messages" in rule "r"`}},
		{name: "the keys of rules that Kyverno knows",
			files: map[string]string{"policies/p.toml": "type = \"helm_chart\"\ncontents = \"./p.yaml\"\n", "policies/p.yaml": kyvernoRule("validate: {pattern: {messages: x}}", "exclude: {}", "skipBackgroundRequests: false")}},
		{name: "a file that is no policy of Kyverno is told with its name",
			files: map[string]string{"policies/p.toml": "type = \"helm_chart\"\ncontents = \"./p.yaml\"\n", "policies/p.yaml": "kind: ClusterPolicy\n"},
			diags: []string{"policies/p.yaml:1:1 error contents is YAML, but no policy of Kyverno"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			app, diags := check.Format(appconfigtest.Folder(tt.files), appconfig.LoadOptions{AllowInvalidPolicies: tt.allowPolicies})
			diags = slices.DeleteFunc(diags, func(d place.Diagnostic) bool { return d.Severity == place.Note })
			if len(diags) != len(tt.diags) {
				t.Fatalf("got:\n%swant:\n%s", appconfigtest.Render(diags), strings.Join(tt.diags, "\n"))
			}
			for i, d := range diags {
				if !strings.HasPrefix(d.String(), tt.diags[i]) {
					t.Errorf("got %s, want %s", d, tt.diags[i])
				}
			}
			if tt.check != nil {
				tt.check(t, app)
			}
		})
	}
}

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func names(app *appconfig.App) []string {
	var all []string
	for _, c := range app.Components {
		all = append(all, c.Name)
	}
	return all
}

// kyvernoRule is a policy with one rule; the first of the keys stands in line 7.
func kyvernoRule(keys ...string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nspec:\n  rules:\n  - name: r\n    match: {any: []}\n    " + strings.Join(keys, "\n    ") + "\n"
}

func role(name string, more string) string {
	return "type = \"custom\"\nname = \"" + name + "\"\ndescription = \"d\"\n" + more + "\n[[policies]]\nmanaged_policy_name = \"ReadOnlyAccess\"\n"
}

func input(name, typeName, value string) string {
	return "[[input]]\nname = \"" + name + "\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"g\"\ntype = \"" + typeName + "\"\ndefault = " + value + "\n"
}

func repo(name, branch string) string {
	return "name = \"" + name + "\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n[public_repo]\nrepo = \"a/b\"\nbranch = \"" + branch + "\"\n"
}
