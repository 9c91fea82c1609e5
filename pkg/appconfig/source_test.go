package appconfig_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
)

// TestSources reads every way in which a block says where its files are: that is
// what a sync hands to the builder.
func TestSources(t *testing.T) {
	t.Parallel()
	component := func(typeName, more string) string { return "name = \"a\"\ntype = \"" + typeName + "\"\n" + more }
	module := "terraform_version = \"1.11.4\"\n"
	tests := []struct {
		name  string
		files map[string]string
		want  appconfig.Source
	}{
		{
			name: "a sandbox in a public repository", files: map[string]string{"sandbox.toml": module + "[public_repo]\nrepo = \"acme/base\"\ndirectory = \"./aws/\"\nbranch = \"v3\"\n"},
			want: appconfig.Source{Block: "sandbox", Kind: appconfig.SourceGit, Repo: "acme/base", Ref: "v3", Directory: "aws"},
		},
		{
			name: "a sandbox in a connected repository", files: map[string]string{"sandbox.toml": module + "[connected_repo]\nrepo = \"acme/base\"\ndirectory = \"aws\"\nbranch = \"v3\"\n"},
			want: appconfig.Source{Block: "sandbox", Kind: appconfig.SourceGit, Repo: "acme/base", Ref: "v3", Directory: "aws", Connected: true},
		},
		{
			name: "a sandbox in the app folder", files: map[string]string{"sandbox.toml": module + "[berth]\nlocal_source = \"./src/base\"\n"},
			want: appconfig.Source{Block: "sandbox", Kind: appconfig.SourceLocal, Directory: "src/base"},
		},
		{
			name: "a module in a public repository", files: map[string]string{"components/a.toml": component("terraform_module", module+"[public_repo]\nrepo = \"acme/mods\"\ndirectory = \"db\"\nbranch = \"main\"\n")},
			want: appconfig.Source{Block: "component", Name: "a", Kind: appconfig.SourceGit, Repo: "acme/mods", Ref: "main", Directory: "db"},
		},
		{
			name: "a chart in a connected repository", files: map[string]string{"components/a.toml": component("helm_chart", "chart_name = \"a\"\n[connected_repo]\nrepo = \"acme/charts\"\ndirectory = \"a\"\nbranch = \"main\"\n")},
			want: appconfig.Source{Block: "component", Name: "a", Kind: appconfig.SourceGit, Repo: "acme/charts", Ref: "main", Directory: "a", Connected: true},
		},
		{
			name: "a chart in a chart repository", files: map[string]string{"components/a.toml": component("helm_chart", "chart_name = \"a\"\n[helm_repo]\nrepo_url = \"oci://registry.example.com/charts\"\nchart = \"redis\"\nversion = \"^20\"\n")},
			want: appconfig.Source{Block: "component", Name: "a", Kind: appconfig.SourceChart, Repo: "oci://registry.example.com/charts", Ref: "^20", Directory: "redis"},
		},
		{
			name: "a module in the app folder", files: map[string]string{"components/a.toml": component("terraform_module", module+"[berth]\nlocal_source = \"src/base\"\n")},
			want: appconfig.Source{Block: "component", Name: "a", Kind: appconfig.SourceLocal, Directory: "src/base"},
		},
		{
			name: "a manifest", files: map[string]string{"components/a.toml": component("kubernetes_manifest", "namespace = \"x\"\nmanifest = \"kind: A\"\n")},
			want: appconfig.Source{Block: "component", Name: "a", Kind: appconfig.SourceText, File: "manifest.yaml", Text: "kind: A"},
		},
		{
			name: "an image", files: map[string]string{"components/a.toml": component("container_image", "public = {image_url = \"registry.example.com/team/web\", tag = \"1.2\"}\n")},
			want: appconfig.Source{Block: "component", Name: "a", Kind: appconfig.SourceImage, Repo: "registry.example.com/team/web", Ref: "1.2"},
		},
		{
			name:  "an image in a registry of AWS",
			files: map[string]string{"components/a.toml": component("container_image", "[aws_ecr]\nimage_url = \"registry.example.com/team/web\"\ntag = \"1.2\"\nregion = \"eu-central-1\"\niam_role_arn = \"arn:aws:iam::123456789012:role/read\"\nupdate_policy = \"~1.2\"\n")},
			want: appconfig.Source{Block: "component", Name: "a", Kind: appconfig.SourceImage, Repo: "registry.example.com/team/web", Ref: "~1.2", Range: true,
				ECR: &appconfig.SourceECR{Region: "eu-central-1", IAMRoleARN: "arn:aws:iam::123456789012:role/read"}},
		},
		{
			name: "an image by the older type", files: map[string]string{"components/a.toml": component("external_image", "public = {image_url = \"registry.example.com/team/web\", tag = \"1.2\"}\n")},
			want: appconfig.Source{Block: "component", Name: "a", Kind: appconfig.SourceImage, Repo: "registry.example.com/team/web", Ref: "1.2"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sources := appconfig.Sources(correct(t, tt.files))
			got := sources[len(sources)-1]
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("source (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScriptSources reads the directories that steps run in, each once.
func TestScriptSources(t *testing.T) {
	t.Parallel()
	action := func(name string, steps ...string) string {
		text := "name = \"" + name + "\"\n"
		for _, step := range steps {
			text += "[[steps]]\nname = \"" + string(rune('a'+strings.Count(text, "[[steps]]"))) + "\"\n" + step
		}
		return text
	}
	public := func(keys string) string { return "command = \"./x.sh\"\n[steps.public_repo]\n" + keys }
	app := correct(t, map[string]string{
		"actions/a.toml": action("a", "command = \"true\"\n", public("repo = \"acme/ops\"\ndirectory = \"./scripts/\"\nbranch = \"main\"\n"), public("repo = \"acme/ops\"\nbranch = \"main\"\n")),
		"actions/b.toml": action("b", public("repo = \"acme/ops\"\ndirectory = \"scripts\"\nbranch = \"main\"\n"),
			"command = \"./x.sh\"\n[steps.connected_repo]\nrepo = \"https://git.example.com/ops.git\"\n"),
	})
	want := []appconfig.Source{
		{Block: "scripts", Name: "acme/ops//scripts@main", Kind: appconfig.SourceGit, Repo: "acme/ops", Ref: "main", Directory: "scripts"},
		{Block: "scripts", Name: "acme/ops@main", Kind: appconfig.SourceGit, Repo: "acme/ops", Ref: "main", Directory: "."},
		{Block: "scripts", Name: "https://git.example.com/ops.git", Kind: appconfig.SourceGit, Repo: "https://git.example.com/ops.git", Directory: ".", Connected: true},
	}
	if diff := cmp.Diff(want, appconfig.ScriptSources(app)); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	all := appconfig.Sources(app)
	if diff := cmp.Diff(want, all[len(all)-len(want):]); diff != "" {
		t.Errorf("they are built after all else (-want +got):\n%s", diff)
	}
}

// TestEveryBlockMergesFiles moves all that a file says into another one, which
// `source` names: the folder means the same.
func TestEveryBlockMergesFiles(t *testing.T) {
	t.Parallel()
	plain := map[string]string{
		"metadata.toml":            "version = \"v2\"\ndisplay_name = \"Shop\"\n",
		"kubernetes_contexts.toml": "[[kubernetes_context]]\nname = \"west\"\ncomponent = \"a\"\n",
		"runner.toml":              "runner_type = \"local\"\nhelm_driver = \"configmap\"\n",
		"stack.toml":               "type = \"kubernetes\"\nname = \"n\"\ndescription = \"d\"\n",
		"sandbox.toml":             "terraform_version = \"1.11.4\"\nberth = {local_source = \"src/base\"}\nvars = {x = \"1\"}\n",
		"input_groups/g.toml":      "name = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n",
		"inputs/g/size.toml":       "name = \"size\"\ndisplay_name = \"Size\"\ndescription = \"d\"\n",
		"components/a.toml":        appconfigtest.Module("a", "vars = {x = \"1\"}"),
		"actions/look.toml":        "name = \"look\"\ntimeout = \"30s\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n",
		"installs/acme.toml":       "name = \"acme\"\n[labels]\nring = \"canary\"\n",
		"permissions/audit.toml":   "type = \"custom\"\nname = \"audit\"\ndescription = \"d\"\npolicies = [{managed_policy_name = \"ReadOnlyAccess\"}]\n",
		"break_glass.toml":         "[[role]]\nname = \"repair\"\ndescription = \"d\"\npolicies = [{managed_policy_name = \"ReadOnlyAccess\"}]\n",
	}
	inOneFile := map[string]string{
		"inputs.toml": "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n[[input]]\nname = \"size\"\ndisplay_name = \"Size\"\ndescription = \"d\"\ngroup = \"g\"\n",
	}
	for _, tt := range []struct {
		file, source string // "./x" is relative to the folder of the kind
		files        map[string]string
	}{
		{"metadata.toml", "./rest.toml.d/rest", plain},
		{"runner.toml", "./rest.toml.d/rest", plain},
		{"stack.toml", "./rest.toml.d/rest", plain},
		{"sandbox.toml", "./rest.toml.d/rest", plain},
		{"input_groups/g.toml", "./rest.toml.d/rest", plain},
		{"inputs/g/size.toml", "./rest.toml.d/rest", plain},
		{"inputs.toml", "./rest.toml.d/rest", inOneFile},
		{"components/a.toml", "./../rest.toml.d/rest", plain},
		{"actions/look.toml", "./../rest.toml.d/rest", plain},
		{"installs/acme.toml", "./../rest.toml.d/rest", plain},
		{"permissions/audit.toml", "./../rest.toml.d/rest", plain},
		{"break_glass.toml", "./../rest.toml.d/rest", plain},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			whole, split := correct(t, tt.files), maps.Clone(tt.files)
			split["rest.toml.d/rest"], split[tt.file] = split[tt.file], "source = \""+tt.source+"\"\n"
			got := correct(t, split)
			if got.Digest() != whole.Digest() || len(got.Installs) != len(whole.Installs) {
				t.Errorf("merged in, it means something else")
			}
			for i := range got.Installs {
				if diff := cmp.Diff(whole.Installs[i].Labels, got.Installs[i].Labels); diff != "" || got.Installs[i].Name != whole.Installs[i].Name {
					t.Errorf("install %q, want %q (-want +got):\n%s", got.Installs[i].Name, whole.Installs[i].Name, diff)
				}
			}
		})
	}
}

// TestOneFileHasEveryBlock holds that each key of the older form is read: the
// example has one of each.
func TestOneFileHasEveryBlock(t *testing.T) {
	t.Parallel()
	app, diags := appconfig.Load(os.DirFS("../../examples/kitchen-sink/variants/one-file"), appconfig.LoadOptions{})
	if len(app.Includes) > 0 {
		t.Fatalf("the example is not whole:\n%s", appconfigtest.Render(diags))
	}
	got := map[string]int{
		"inputs": len(app.Inputs), "secrets": len(app.Secrets), "permissions": len(app.Permissions), "break_glass": len(app.BreakGlass),
		"policies": len(app.Policies), "components": len(app.Components), "actions": len(app.Actions), "runbooks": len(app.Runbooks),
		"installs": len(app.Installs), "branch and branches": len(app.Branches), "kubernetes_contexts": len(app.KubernetesContexts), "triggers": len(app.EventTriggers),
	}
	want := map[string]int{
		"inputs": 1, "secrets": 1, "permissions": 1, "break_glass": 1, "policies": 1, "components": 3, "actions": 1, "runbooks": 1,
		"installs": 1, "branch and branches": 2, "kubernetes_contexts": 1, "triggers": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	if app.Sandbox == nil || app.Runner == nil || app.Stack == nil || app.OperationRoles == nil || app.Installer == nil {
		t.Errorf("sandbox %v, runner %v, stack %v, operation roles %v, installer %v", app.Sandbox, app.Runner, app.Stack, app.OperationRoles, app.Installer)
	}
}

// TestInputTypes tells which values fit an input. A string, and JSON, which may
// also be YAML or HCL, take any text.
func TestInputTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		of          appconfig.InputType
		value, want string
	}{
		{appconfig.InputString, "{", ""},
		{appconfig.InputNumber, "1.5", ""},
		{appconfig.InputNumber, "many", "must be a number"},
		{appconfig.InputNumber, "{{ .nuon.install.id }}", ""},
		{appconfig.InputBool, "true", ""},
		{appconfig.InputBool, "yes", `must be "true" or "false"`},
		{appconfig.InputList, `["a"]`, ""},
		{appconfig.InputList, `{"a": 1}`, "must be a list, not an object"},
		{appconfig.InputJSON, `{"a": 1}`, ""},
		{appconfig.InputJSON, "a: 1", ""},
	} {
		if got := tt.of.Check(tt.value); got != tt.want {
			t.Errorf("%s %q: got %q, want %q", tt.of, tt.value, got, tt.want)
		}
	}
}
