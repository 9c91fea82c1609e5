package appconfig_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// TestFormatAndSyncAreTwoQuestions holds that an app of the public format is
// right by its rules, and that what cannot be deployed yet is refused where a
// sync asks.
func TestFormatAndSyncAreTwoQuestions(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../../examples/kitchen-sink")
	app, diags := check.Format(root, appconfig.LoadOptions{})
	if place.HasErrors(place.Strict(diags)) {
		t.Errorf("by the rules of the format:\n%s", appconfigtest.Render(diags))
	}
	var refused []string
	for _, d := range check.Unsupported(app) {
		if d.Code != place.CodeUnsupported || d.File == "" {
			t.Errorf("got %+v", d)
		}
		if d.Severity == place.Error {
			refused = append(refused, d.File)
		}
	}
	want := []string{
		"components/job.toml",
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if _, diags := check.Folder(root, appconfig.LoadOptions{}); !place.HasErrors(diags) {
		t.Error("a sync of the kitchen sink is not refused")
	}
}

// TestEveryTypeIsSyncableOrRefused walks the component types: each is deployed
// today, or refused by Unsupported with its place.
func TestEveryTypeIsSyncableOrRefused(t *testing.T) {
	t.Parallel()
	deployed := []string{"ansible", "terraform_module", "helm_chart", "kubernetes_manifest", "container_image", "external_image", "pulumi", "docker_build"}
	tests := map[string]string{
		"terraform_module": "terraform_version = \"1.11.4\"\npublic_repo = {repo = \"a/b\"}", "helm_chart": "chart_name = \"c\"\npublic_repo = {repo = \"a/b\"}",
		"kubernetes_manifest": "namespace = \"n\"\nmanifest = \"kind: A\"", "container_image": "public = {image_url = \"a/b\", tag = \"1\"}",
		"external_image": "public = {image_url = \"a/b\", tag = \"1\"}", "docker_build": "dockerfile = \"D\"\npublic_repo = {repo = \"a/b\"}",
		"pulumi": "public_repo = {repo = \"a/b\"}", "job": "image_url = \"a/b\"\ntag = \"1\"", "ansible": "playbook = \"x\"\npublic_repo = {repo = \"a/b\"}\nberth = {plugin = {signer = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}}",
	}
	for typeName, keys := range tests {
		files := appconfigtest.Folder(map[string]string{"components/c.toml": "name = \"c\"\ntype = \"" + typeName + "\"\n" + keys})
		app, diags := check.Format(files, appconfig.LoadOptions{})
		if place.HasErrors(diags) {
			t.Errorf("%s is not right by the rules:\n%s", typeName, appconfigtest.Render(diags))
		}
		_, diags = check.Folder(files, appconfig.LoadOptions{})
		syncable := strings.Contains(strings.Join(deployed, " "), typeName)
		if place.HasErrors(diags) == syncable {
			t.Errorf("%s: deployed today is %v, but sync says:\n%s", typeName, syncable, appconfigtest.Render(diags))
		}
		if app.Component("c") == nil {
			t.Errorf("%s: the component is lost", typeName)
		}
	}
}

// ofAPlugin is what every component of a plugin has.
const ofAPlugin = "[public_repo]\nrepo = \"a/b\"\n[berth.plugin]\nsigner = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n"

func TestPluginKeepsItsKeys(t *testing.T) {
	t.Parallel()
	app := correct(t, map[string]string{
		"components/p.toml": "name = \"p\"\ntype = \"ansible\"\nplaybook = \"{{ .nuon.components.a.outputs.x }}\"\nforks = 3\nratio = 1.5\n[hosts]\nweb = [\"a\", true]\n" + ofAPlugin,
		"components/a.toml": appconfigtest.Module("a"),
	})
	want := map[string]any{
		"playbook": "{{ .nuon.components.a.outputs.x }}", "forks": int64(3), "ratio": "1.5", "hosts": map[string]any{"web": []any{"a", true}},
	}
	if diff := cmp.Diff(want, app.Component("p").Plugin); diff != "" {
		t.Errorf("keys of the plugin (-want +got):\n%s", diff)
	}
	if g, _ := graph.New(app); len(g.Edges) != 1 || g.Edges[0].To != "a" {
		t.Errorf("edges: got %+v, want one to a", g.Edges)
	}
}

// Who has signed the plugin and what it may do is said in the app, by name.
func TestPluginGrants(t *testing.T) {
	t.Parallel()
	app := correct(t, map[string]string{"components/p.toml": "name = \"p\"\ntype = \"ansible\"\n" + ofAPlugin + "network = true\ninstall_dir = true\nstate = true\n"})
	want := &appconfig.PluginGrant{Signer: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", Network: true, InstallDir: true, State: true}
	if diff := cmp.Diff(want, app.Component("p").Berth.Plugin); diff != "" {
		t.Errorf("grant (-want +got):\n%s", diff)
	}
	app = correct(t, map[string]string{"components/p.toml": "name = \"p\"\ntype = \"ansible\"\n" + ofAPlugin + "hosts = [\"api.example.com:8443\", \"*.example.com\"]\n"})
	if got := app.Component("p").Berth.Plugin.Hosts; !cmp.Equal(got, []string{"api.example.com:8443", "*.example.com"}) {
		t.Errorf("hosts: %v", got)
	}
	_, diags := check.Format(appconfigtest.Folder(map[string]string{
		"sandbox.toml": "terraform_version = \"1.11.4\"\n[public_repo]\nrepo = \"a/b\"\n" + "[berth.plugin]\nsigner = \"x\"\nnetwork = true\ninstall_dir = true\n",
	}), appconfig.LoadOptions{})
	if !slices.ContainsFunc(diags, func(d place.Diagnostic) bool { return strings.Contains(d.Message, "[berth.plugin] does nothing") }) {
		t.Errorf("a sandbox with a grant: %v", diags)
	}
	for _, tc := range []struct{ text, want string }{
		{"type = \"scripts\"\n" + ofAPlugin, "no plugin can be called"},
		{"type = \"ansible\"\n[public_repo]\nrepo = \"a/b\"\n[berth.plugin]\nsigner = \"c2hvcnQ=\"\n", "signer is not a public key"},
		{"type = \"ansible\"\n" + ofAPlugin + "hosts = [\"https://example.com\"]\n", "is no port"},
		{"type = \"ansible\"\n" + ofAPlugin + "paths = [\"/proc/1:ro\"]\n", "no plugin is shown /proc"},
		{"type = \"ansible\"\n" + ofAPlugin + "paths = [\"/opt/a\", \"/opt/a/b:ro\"]\n", "meets /opt/a"},
		{"type = \"ansible\"\n" + ofAPlugin + "hosts = [\"*\"]\n", "every host is network = true"},
		{"type = \"ansible\"\n" + ofAPlugin + "hosts = [\"a.example.com\", \"A.example.com:443\"]\n", "is said twice"},
		{"type = \"ansible\"\n" + ofAPlugin + "hosts = [\"a.example.com\"]\nnetwork = true\n", "leave one of network and hosts out"},
		{"type = \"ansible\"\n[berth.plugin]\nsigner = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n", "no source is given"},
		{"type = \"ansible\"\n[public_repo]\nrepo = \"a/b\"\n", "there is no [berth.plugin]"},
	} {
		_, diags := check.Format(appconfigtest.Folder(map[string]string{"components/p.toml": "name = \"p\"\n" + tc.text}), appconfig.LoadOptions{})
		if !slices.ContainsFunc(diags, func(d place.Diagnostic) bool {
			return strings.Contains(d.Message, tc.want) && d.Severity == place.Error
		}) {
			t.Errorf("%s: want %q, got %v", tc.text, tc.want, diags)
		}
	}
}

// correct reads a folder that is right by the rules, whatever can be deployed.
func correct(t *testing.T, files map[string]string) *appconfig.App {
	t.Helper()
	app, diags := check.Format(appconfigtest.Folder(files), appconfig.LoadOptions{})
	appconfigtest.Right(t, diags)
	return app
}

// TestMergedFileIsAsIfWritten holds that a block split over two files means
// what it means in one, and that the table's own keys win.
func TestMergedFileIsAsIfWritten(t *testing.T) {
	t.Parallel()
	whole := correct(t, map[string]string{"components/a.toml": appconfigtest.Module("a", `deploy_timeout = "1h"`, "[vars]\nx = \"1\"\ny = \"2\"")})
	split := correct(t, map[string]string{
		"components/a.toml": "name = \"a\"\nsource = \"b.toml\"\n[vars]\nx = \"1\"\n",
		"components/b.toml": "name = \"b\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\nsource = \"./c.toml\"\n[vars]\nx = \"9\"\ny = \"2\"\n",
		"components/c.toml": "deploy_timeout = \"1h\"\n[berth]\nlocal_source = \"src/base\"\n",
	})
	if whole.Digest() != split.Digest() {
		t.Errorf("the split component means something else:\n%+v\n%+v", whole.Components, split.Components)
	}
	if len(split.Components) != 1 {
		t.Errorf("a merged file became a component: got %d", len(split.Components))
	}
	_, diags := check.Format(appconfigtest.Folder(map[string]string{
		"components/a.toml": "name = \"a\"\nsource = \"./b.toml\"\n", "components/b.toml": "type = \"terraform_module\"\n# a line\nterraform_version = \"one\"\npublic_repo = {repo = \"a/b\"}\n",
	}), appconfig.LoadOptions{})
	if len(diags) != 1 || diags[0].File != "components/b.toml" || diags[0].Line != 3 {
		t.Errorf("a mistake in a merged file: got %s", appconfigtest.Render(diags))
	}
}

// TestNothingIsFetched holds that contents from elsewhere are noted where they
// are used, and are neither read nor invented.
func TestNothingIsFetched(t *testing.T) {
	t.Parallel()
	app := correct(t, map[string]string{
		"metadata.toml":     "version = \"v2\"\nreadme = \"https://example.invalid/README.md\"\n",
		"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"git::https://example.invalid/vars.git//a.tfvars\""),
		"components/b.toml": "name = \"b\"\nsource = \"https://example.invalid/b.toml\"\ntype = \"terraform_module\"\n",
		"components/c.toml": "name = \"c\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"\"\"\nhttps: //example.invalid is no address here\nkind: A\n\"\"\"\n",
		"inputs.toml":       "source = \"http://example.invalid/inputs.toml\"\n",
		"components/d.toml": appconfigtest.Module("d", "[vars]\nx = \"{{ .nuon.inputs.inputs.defined_there }}\""),
	})
	want := []fetch.Wanted{
		{At: place.Place{File: "components/a.toml", Key: "var_file[0].contents"}, Address: "git::https://example.invalid/vars.git//a.tfvars"},
		{At: place.Place{File: "components/b.toml", Key: "source"}, Address: "https://example.invalid/b.toml", Include: true},
		{At: place.Place{File: "inputs.toml", Key: "source"}, Address: "http://example.invalid/inputs.toml", Include: true},
		{At: place.Place{File: "metadata.toml", Key: "readme"}, Address: "https://example.invalid/README.md"},
	}
	if diff := cmp.Diff(want, appconfig.Fetches(app)); diff != "" {
		t.Errorf("fetches (-want +got):\n%s", diff)
	}
	if text := app.Component("a").TerraformModule.VarFiles[0].Contents; text.Contents != "" || text.Remote == "" {
		t.Errorf("remote contents: got %+v", text)
	}
}

// TestGetFieldsOfEachKind tries "./x" where each kind looks for it.
func TestGetFieldsOfEachKind(t *testing.T) {
	t.Parallel()
	role := "name = \"r\"\ndescription = \"d\"\npermissions_boundary = \"./b.json\"\n"
	app := correct(t, map[string]string{
		"permissions/deep/r.toml":     "type = \"custom\"\n" + role,
		"permissions/b.json":          `"permissions"`,
		"break_glass.toml":            "[[role]]\n" + strings.Replace(role, "\"r\"", "\"g\"", 1),
		"policies/deep/p.toml":        "type = \"sandbox\"\nengine = \"opa\"\ncontents = \"./p.rego\"\n",
		"policies/deep/p.rego":        "package nuon # next to",
		"runbooks/deep/r.toml":        "name = \"r\"\nreadme = \"./r.md\"\n[[steps]]\nname = \"s\"\ntype = \"action\"\ninline_contents = \"./r.sh\"\n",
		"r.md":                        "root",
		"runbooks/r.sh":               "runbooks",
		"components/deep/er/c.toml":   "name = \"c\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"file://c.yaml\"\n",
		"components/c.yaml":           "kind: A",
		"actions/deep/a.toml":         "name = \"a\"\n[[steps]]\nname = \"s\"\ninline_contents = \"../shared.sh\"\n",
		"shared.sh":                   "shared",
		"sandbox.toml":                appconfigtest.Minimal["sandbox.toml"] + "[[var_file]]\ncontents = \"./base.tfvars\"\n",
		"base.tfvars":                 "# base",
		"components/values/v.yaml":    "v: 1",
		"components/chart/chart.toml": "name = \"h\"\ntype = \"helm_chart\"\nchart_name = \"h\"\n[berth]\nlocal_source = \"src/base\"\n[[values_file]]\nsource = \"values/v.yaml\"\n[[values_file]]\npath = \"./values/v.yaml\"\n",
	})
	h := app.Component("h").HelmChart.ValuesFiles
	got := []string{
		app.Permissions[0].PermissionsBoundary.Contents, app.BreakGlass[0].PermissionsBoundary.Contents, app.Policies[0].Contents.Contents,
		app.Runbooks[0].Readme.Contents, app.Runbooks[0].Steps[0].InlineContents.Contents, app.Component("c").KubernetesManifest.Manifest.Contents,
		app.Action("a").Steps[0].InlineContents.Contents, app.Sandbox.VarFiles[0].Contents.Contents, h[0].Contents.Contents, h[1].Contents.File,
	}
	want := []string{`"permissions"`, `"permissions"`, "package nuon # next to", "root", "runbooks", "kind: A", "shared", "# base", "v: 1", "components/values/v.yaml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
}

// TestKubernetesContextMakesAnEdge holds that what is deployed to a cluster
// comes after the component that makes it.
func TestKubernetesContextMakesAnEdge(t *testing.T) {
	t.Parallel()
	app := correct(t, map[string]string{
		"components/a.toml":        "name = \"a\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"kind: A\"\nkubernetes_context = \"own\"\n",
		"components/z.toml":        appconfigtest.Module("z"),
		"kubernetes_contexts.toml": "[[kubernetes_context]]\nname = \"own\"\ncomponent = \"z\"\n",
	})
	g, _ := graph.New(app)
	want := []graph.Edge{{From: "a", To: "z", Reasons: []graph.Reason{{Context: "own", File: "components/a.toml", Line: 5, Column: 1}}}}
	if diff := cmp.Diff(want, g.Edges); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

// TestOneFileIsTheSameApp holds the older form against the folder form.
func TestOneFileIsTheSameApp(t *testing.T) {
	t.Parallel()
	files := map[string]string{"components/a.toml": appconfigtest.Module("a", "[vars]\nx = \"small\"")}
	one := map[string]string{
		"metadata.toml": "", "sandbox.toml": "", "runner.toml": "", "stack.toml": "",
		"nuon.app.toml": "version = \"v2\"\n[config_vars]\nsize = \"small\"\nplace = \"local\"\n" +
			"[sandbox]\nterraform_version = \"1.11.4\"\nberth = {local_source = \"src/base\"}\nvars = {size = \"{{ .config_vars.size }}\"}\n" +
			"[runner]\nrunner_type = \"{{.config_vars.place}}\"\n[stack]\ntype = \"local\"\n" +
			"[[components]]\nname = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\nberth = {local_source = \"src/base\"}\nvars = {x = \"{{- .config_vars.size -}}\"}\n",
	}
	if a, b := correct(t, files), correct(t, one); a.Digest() != b.Digest() {
		t.Errorf("the one file means something else:\n%+v\n%+v", a, b)
	}
}

// TestOlderPlaceOfHealth holds that both places of a component's health are one.
func TestOlderPlaceOfHealth(t *testing.T) {
	t.Parallel()
	files := map[string]string{"components/a.toml": appconfigtest.Module("a", "[components.a.health]\nblock_deploy = true\nstabilization_window = \"2m\"\nprobes = [{type = \"grpc\"}]")}
	here := correct(t, map[string]string{"components/a.toml": appconfigtest.Module("a", "[health]\nblock_deploy = true\nstabilization_window = \"2m\"\nprobes = [{type = \"grpc\"}]")})
	there := correct(t, files)
	if here.Digest() != there.Digest() || there.Component("a").Health == nil {
		t.Errorf("got %+v, want %+v", there.Component("a").Health, here.Component("a").Health)
	}
	_, diags := check.Folder(appconfigtest.Folder(files), appconfig.LoadOptions{})
	diags = slices.DeleteFunc(diags, func(d place.Diagnostic) bool { return d.Severity == place.Note })
	if len(diags) != 1 || diags[0].Line != 4 || diags[0].Code != place.CodeUnsupported {
		t.Errorf("got %s", appconfigtest.Render(diags))
	}
}

// TestKitchenSinkInABundle holds that merged files, policies and the one file of
// the older form travel: what is uploaded means the same.
func TestKitchenSinkInABundle(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", "/variants/files", "/variants/one-file"} {
		root := os.DirFS("../../examples/kitchen-sink" + dir)
		app, here := check.Folder(root, appconfig.LoadOptions{})
		made, err := bundle.Make(root, nil)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := bundle.Open(appconfigtest.Archives(made)...)
		if err != nil {
			t.Fatal(err)
		}
		again, there := check.Folder(opened, appconfig.LoadOptions{SkipSources: true})
		if app.Digest() != again.Digest() {
			t.Errorf("kitchen-sink%s means something else in a bundle", dir)
		}
		if diff := cmp.Diff(here, there); diff != "" {
			t.Errorf("kitchen-sink%s: diagnostics (-folder +bundle):\n%s", dir, diff)
		}
	}
}

func TestInstallConfig(t *testing.T) {
	t.Parallel()
	inputs := "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n[[input]]\nname = \"n\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"g\"\ntype = \"number\"\n"
	app := correct(t, map[string]string{
		"inputs.toml":     inputs,
		"installs/a.toml": "name = \"a\"\napproval_option = \"auto\"\n[inputs]\nn = 3\n",
		"installs/b.toml": "name = \"b\"\n[[inputs]]\nn = \"1\"\n[[inputs]]\nn = \"2\"\n",
	})
	want := []map[string]string{{"n": "3"}}
	if a := app.Installs[0]; a.ApprovalOption != appconfig.ApproveAll || !cmp.Equal(want, a.Inputs) {
		t.Errorf("install a: got %+v", a)
	}
	if b := app.Installs[1]; len(b.Inputs) != 2 || b.Inputs[1]["n"] != "2" {
		t.Errorf("install b: got %+v", b)
	}
}
