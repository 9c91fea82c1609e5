package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// TestDiagnostics changes the minimal folder in one way per case and keeps
// every line that is said about it in one golden file.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	step := "\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n"
	tests := []struct {
		name  string
		files map[string]string
	}{
		{"no app folder", map[string]string{"metadata.toml": "", "sandbox.toml": "", "runner.toml": "", "stack.toml": ""}},
		{"no metadata", map[string]string{"metadata.toml": ""}},
		{"metadata without a version", map[string]string{"metadata.toml": "display_name = \"Shop\"\n"}},
		{"metadata of an unknown version", map[string]string{"metadata.toml": "version = \"v3\"\n"}},
		{"empty sandbox", map[string]string{"sandbox.toml": "# nothing\n"}},
		{"not TOML", map[string]string{"runner.toml": "runner_type = local\n"}},
		{"key twice", map[string]string{"runner.toml": "runner_type = \"local\"\nrunner_type = \"aws\"\n"}},
		{"misspelt key", map[string]string{"components/api.toml": appconfigtest.Module("api", `dependancies = []`)}},
		{"misspelt required key", map[string]string{"stack.toml": "tipe = \"local\"\nname = \"n\"\ndescription = \"d\"\n"}},
		{"misspelt nested key", map[string]string{"sandbox.toml": "terraform_version = \"1.11.4\"\n[public_repo]\nrepo = \"a/b\"\ndir = \"x\"\n"}},
		{"wrong types, all at once", map[string]string{"components/api.toml": "name = 3\ntype = \"terraform_module\"\nterraform_version = 1.11\n" +
			"max_auto_retries = \"two\"\ntoggleable = \"yes\"\ndependencies = \"db\"\ndeploy_timeout = \"soon\"\npublic_repo = \"a/b\"\n[vars]\nlist = [1]\n"}},
		{"keys of images", map[string]string{
			"components/i.toml": "name = \"i\"\ntype = \"container_image\"\n[public]\nimage_url = \"a.test/b\"\ntag = \"1\"\n[berth]\nimage_key = \"cosign.pub\"\n",
			"components/m.toml": "name = \"m\"\ntype = \"kubernetes_manifest\"\nmanifest = \"kind: Pod\"\n[berth]\nimage_key = \"cosign.pub\"\n",
			"sandbox.toml":      "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\nimage_key = \"cosign.pub\"\n",
		}},
		{"misspelt file", map[string]string{"sandbx.toml": "x = 1\n"}},
		{"whole file next to others", map[string]string{"nuon.shop.toml": "version = \"v1\"\n"}},
		{"whole file", map[string]string{"metadata.toml": "", "sandbox.toml": "", "runner.toml": "", "stack.toml": "",
			"nuon.shop.toml": "version = \"v1\"\ndescription = \"{{ .config_vars.titel }}\"\nrunnr = 1\n[config_vars]\ntitle = \"x\"\n[runner]\nrunner_typ = \"local\"\n" +
				"[[actions]]\nname = \"x\"\nstps = []\n[stack]\nsource = \"./stack.toml\"\n"}},
		{"two whole files", map[string]string{"metadata.toml": "", "sandbox.toml": "", "runner.toml": "", "stack.toml": "",
			"nuon.a.toml": "version = \"v1\"\n", "nuon.b.toml": "version = \"v1\"\n"}},
		{"plugin type", map[string]string{"components/p.toml": "name = \"p\"\ntype = \"ansible\"\nplaybook = \"x\"\ninventory = {hosts = [1, nan]}\n[vars]\nx = \"{{ .nuon.components.gone.outputs.x }}\"\n"}},
		{"merged files", map[string]string{"components/a.toml": "name = \"a\"\nsource = \"./b.toml\"\n", "components/b.toml": "typ = \"x\"\nsource = \"./c.toml\"\n",
			"components/c.toml": "terraform_version = 3\n[berth]\nlocal_source = \"src/base\"\n[vars]\nx = \"{{ .nuon.components.gone.outputs.y }}\"\n",
			"components/d.toml": appconfigtest.Module("d", `source = "./d.toml"`), "components/e.toml": appconfigtest.Module("e", `source = "https://x.test/e.toml"`),
			"components/f.toml": "source = \"git::https://x.test/f\"\n"}},
		{"roles", map[string]string{"runner.toml": "runner_type = \"aws\"\n", "permissions.toml": "[provision_role]\ntype = \"custom\"\nname = \"p\"\ndescription = \"d\"\ncloud_platform = \"gcp\"\n" +
			"[[provision_role.policies]]\n[[provision_role.policies]]\nmanaged_policy_name = \"A\"\ncontents = \"{}\"\n[[provision_role.policies]]\nazure_actions = [\"x\"]\n[[provision_role.policies]]\ncontents = \"./gone.json\"\n",
			"break_glass.toml": "[[role]]\nname = \"p\"\ndescription = \"d\"\ntype = \"custom\"\n[[role.policies]]\ncontents = \"{}\"\n"}},
		{"role files", map[string]string{"permissions/a.toml": "name = \"a\"\ndescription = \"d\"\n", "permissions/b.toml": "type = \"provision\"\nname = \"b\"\ndescription = \"d\"\n",
			"permissions/c.toml": "type = \"provision\"\nname = \"c\"\ndescription = \"d\"\n", "permissions/d.toml": "type = \"provison\"\nname = \"d\"\ndescription = \"d\"\n"}},
		{"policies", map[string]string{"policies/a.toml": "type = \"helm_chat\"\nengine = \"rego\"\ncomponents = [\"*\", \"gone\"]\ncontents = \"./a.yaml\"\n", "policies/b/a.toml": "type = \"sandbox\"\ncontents = \"x\"\n"}},
		{"image of an action by tag", map[string]string{
			"actions/a.toml": "name = \"a\"\nimage = \"r.test/tools:1\"\n" + step, "actions/b.toml": "name = \"b\"\nimage = \"tools@sha256:" + strings.Repeat("0f", 32) + "\"\n" + step,
			"actions/d.toml": "name = \"d\"\nimage = \"{{ .nuon.install.id }}\"\n" + step + "[labels]\ntype = \"health-check\"\n",
			"actions/c.toml": "name = \"c\"\nimage = \"r.test/tools:1@sha256:" + strings.Repeat("0f", 32) + "\"\n" + step,
		}},
		{"runbooks", map[string]string{"runbooks/a.toml": "name = \"a\"\n[[steps]]\nname = \"x\"\ntype = \"component_deploy\"\n[[steps]]\nname = \"x\"\ntype = \"action\"\n" +
			"[[steps]]\nname = \"y\"\ntype = \"action\"\naction_name = \"gone\"\ncommand = \"x\"\ntimeout = \"3h\"\n[[steps]]\nname = \"z\"\ntype = \"deploy\"\ncomponent_name = \"gone\"\n[[steps]]\nname = \"v\"\ntype = \"sandbox_provision\"\ncommand = \"x\"\n"}},
		{"installs", map[string]string{"inputs.toml": "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n[[input]]\nname = \"n\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"g\"\ntype = \"number\"\n",
			"components/c.toml": appconfigtest.Module("c"), "installs.toml": "x = 1\n",
			"installs/a.toml": "name = \"a\"\napproval_option = \"never\"\naws_account = {region = \"x\"}\ngcp_account = {region = \"x\"}\n[inputs]\nn = \"many\"\nm = 1\n[component_toggles]\nc = true\nd = false\n[components.c]\nhelm_values = \"x\"\n[components.d]\nhelm_vals = 1\n"}},
		{"branches", map[string]string{"branches/a.toml": "name = \"a\"\npublic_repo = {repo = \"x/y\"}\n[[install_groups]]\nname = \"g\"\nlabel_selector = {a = \"b\"}\n[[install_groups]]\nname = \"g\"\norder = 1\n[[install_groups]]\nname = \"h\"\norder = 1\ninstall_ids = [\"i\"]\ninstall_names = [\"i\"]\n",
			"branches/b.toml": "name = \"a\"\npublic_repo = {repo = \"x/z\"}\ninstall_groups = {name = \"g\", label_selector = {a = \"b\"}}\n", "branches/c.toml": "name = \"c\"\n"}},
		{"operation roles in a matrix", map[string]string{"operation_roles.toml": "type = \"matrix\"\n[[rules]]\nprincipal = \"nuon::sandbx\"\noperation = \"deploy\"\nrole = \"r\"\n[[rules]]\nprincipal = \"nuon::component:gone\"\noperation = \"provision\"\nrole = \"r\"\n" +
			"[[rules]]\nprincipal = \"nuon::sandbox\"\noperation = \"provision\"\nrole = \"r\"\n[[rules]]\nprincipal = \"nuon::sandbox\"\noperation = \"provision\"\nrole = \"q\"\n"}},
		{"kubernetes contexts", map[string]string{"components/a.toml": appconfigtest.Module("a", `kubernetes_context = "own"`), "components/b.toml": appconfigtest.Module("b", `kubernetes_context = "owm"`),
			"components/c.toml":        "name = \"c\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"kind: A\"\nkubernetes_context = \"own\"\n",
			"kubernetes_contexts.toml": "[[kubernetes_context]]\nname = \"own\"\ncomponent = \"a\"\n[[kubernetes_context]]\nname = \"sandbox\"\ncomponent = \"gone\"\n[[kubernetes_context]]\nname = \"third\"\ncomponent = \"c\"\n"}},
		{"events", map[string]string{"triggers.toml": "[[triggers]]\nname = \"a\"\nevent_source = \"x\"\nfilters = {op = \"neq\", path = \"a\"}\ntarget = {type = \"app_branch_run\"}\n[[triggers]]\nname = \"a\"\nevent_source = \"x\"\ntarget = {type = \"install_runbook\", runbook = \"gone\"}\n"}},
		{"customer managed twice", map[string]string{"metadata.toml": "version = \"v2\"\n[customer_managed]\nrunner_image_url = \"x\"\n", "customer_managed.toml": "runner_image_url = \"x\"\n"}},
		{"docker build and job", map[string]string{"components/b.toml": "name = \"b\"\ntype = \"docker_build\"\ndockerfile = \"../Dockerfile\"\nplatforms = [\"amd64\"]\npublic_repo = {repo = \"a/b\"}\n", "components/j.toml": "name = \"j\"\ntype = \"job\"\n"}},
		{"kinds of later versions", map[string]string{"permissions/p.toml": "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\n",
			"policies.toml": "[[policy]]\ntype = \"sandbox\"\ncontents = \"package nuon\"\n[[policy]]\ntype = \"sandbox\"\ncontents = \"package nuon\"\n", "lint.toml": "x = 1\n"}},
		{"component types of later versions", map[string]string{"components/c.toml": "name = \"chart\"\ntype = \"pulumi\"\n",
			"components/a.toml": appconfigtest.Module("a", `dependencies = ["chart"]`)}},
		{"chart without its keys", map[string]string{"components/c.toml": "name = \"c\"\ntype = \"helm_chart\"\n"}},
		{"chart", map[string]string{"components/c.toml": "name = \"c\"\ntype = \"helm_chart\"\nchart_name = \"My_chart\"\nstorage_driver = \"secrets\"\nhelm_repo = {repo_url = \"https://example.com\", chart = \"c\"}\n"}},
		{"chart of a repository", map[string]string{"components/c.toml": "name = \"c\"\ntype = \"helm_chart\"\nchart_name = \"c\"\ncrds = \"always\"\nhistory_limit = 0\n[helm_repo]\nrepo_url = \"charts.example.com\"\nchart = \"team/c\"\nversion = \"latest\"\n"}},
		{"manifest", map[string]string{"components/c.toml": "name = \"c\"\ntype = \"kubernetes_manifest\"\n",
			"components/d.toml": "name = \"d\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"kind: A\"\nkustomize = {path = \"x\"}\n",
			"components/e.toml": "name = \"e\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nkustomize = {path = \"x\"}\n"}},
		{"image", map[string]string{"components/c.toml": "name = \"c\"\ntype = \"container_image\"\n",
			"components/d.toml": "name = \"d\"\ntype = \"container_image\"\npublic = {image_url = \"https://example.com/a\"}\n",
			"components/e.toml": "name = \"e\"\ntype = \"external_image\"\npublic = {image_url = \"https://example.com/a\", tag = \"1\"}\n",
			"components/f.toml": "name = \"f\"\ntype = \"container_image\"\naws_ecr = {image_url = \"example.com/a\"}\n",
			"components/g.toml": "name = \"g\"\ntype = \"container_image\"\naws_ecr = {image_url = \"example.com/a\", tag = \"1\", region = \"Frankfurt\", iam_role_arn = \"arn:aws:iam::123456789012:user/me\"}\n"}},
		{"no such component type", map[string]string{"components/c.toml": "name = \"c\"\ntype = \"terraform\"\n"}},
		{"sandbox type of later versions", map[string]string{"sandbox.toml": "type = \"pulumi\"\n"}},
		{"merged file", map[string]string{"components/a.toml": appconfigtest.Module("a", `source = "./other.toml"`)}},
		{"file and folder", map[string]string{
			"secrets.toml": "[[secret]]\nname = \"a\"\ndescription = \"d\"\n", "secrets/b.toml": "name = \"b\"\ndescription = \"d\"\n"}},
		{"names", map[string]string{"components/a.toml": appconfigtest.Module("my api"), "actions/a.toml": "name = \"-x\"" + step}},
		{"duplicate names", map[string]string{"components/a.toml": appconfigtest.Module("api"), "components/b.toml": appconfigtest.Module("api"),
			"actions/a.toml": "name = \"x\"" + step, "actions/b.toml": "name = \"x\"" + step}},
		{"var_name taken", map[string]string{"components/a.toml": appconfigtest.Module("api"), "components/b.toml": appconfigtest.Module("b", `var_name = "api"`)}},
		{"unknown dependency", map[string]string{"components/a.toml": appconfigtest.Module("api"), "components/b.toml": appconfigtest.Module("b", "dependencies = [\n  \"api\",\n  \"apj\",\n  \"api\",\n]")}},
		{"depends on itself", map[string]string{"components/a.toml": appconfigtest.Module("a", `dependencies = ["a"]`)}},
		{"cycle", map[string]string{"components/a.toml": appconfigtest.Module("a", `dependencies = ["b"]`),
			"components/b.toml": appconfigtest.Module("b", "[vars]\nx = \"{{ .nuon.components.c.outputs.y }}\""),
			"components/c.toml": appconfigtest.Module("c", "[[var_file]]\ncontents = \"./c.tfvars\""), "components/c.tfvars": "# c\nx = \"{{ .nuon.components.a.outputs.y }}\"\n"}},
		{"references", map[string]string{"components/a.toml": appconfigtest.Module("a", "[vars]\nx = \"\"\"\n\n{{ .nuon.components.gone.outputs.y }}\n{{ .nuon.inputs.inputs.gone }}\"\"\"\n"+
			"y = \"{{ .nuon.secrets.gone.arn }} {{ .nuon.actions.workflows.gone.outputs.x }}\"\nz = \"{{ .nuon.inputs.domain }} {{ .nuon.instal.id }}\"\n"+
			"self = \"{{ .nuon.components.a.outputs.x }}\"\naction = \"{{ .action.inputs.x }}\"\nroot = \"{{ .Values.x }}{{ .nuon.id }}\"\n"+
			"dotless = \"{{nuon.install.id}}\"\nany = \"{{ toJson .nuon.components }}\"")}},
		{"template syntax", map[string]string{"components/a.toml": appconfigtest.Module("a", "[vars]\nx = \"{{ .nuon.id \"\ny = \"{{ env .nuon.id }}\"")}},
		{"readme is forgiven", map[string]string{"metadata.toml": "version = \"v2\"\nreadme = \"./README.md\"\n", "README.md": "a\n{{ .nuon.components.gone.outputs.x }}\n"}},
		{"sandbox before components", map[string]string{"components/a.toml": appconfigtest.Module("a"), "sandbox.toml": appconfigtest.Minimal["sandbox.toml"] + "x = \"{{ .nuon.components.a.outputs.y }}\"\n"}},
		{"stack before everything", map[string]string{"stack.toml": appconfigtest.Minimal["stack.toml"] + "[[custom_nested_stacks]]\nname = \"x\"\nindex = 1\ntemplate_url = \"u\"\n[custom_nested_stacks.parameters]\nP = \"{{ .nuon.sandbox.outputs.x }}\"\n"}},
		{"action inputs", map[string]string{"actions/x.toml": "name = \"x\"\n[[inputs]]\nname = \"version\"\n[[steps]]\nname = \"s\"\ncommand = \"echo {{ .action.inputs.version }} {{ .action.inputs.versoin }}\"\n"}},
		{"tools of an action", map[string]string{"actions/x.toml": "name = \"x\"\n" + step + "[berth]\ntools = [\"jq>=1.6\", \"/bin/jq\", \"jq\"]\n"}},
		{"a schedule of a break-glass action", map[string]string{"actions/x.toml": "name = \"x\"\nbreak_glass_role = \"r\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"0 3 * * *\"\n" + step}},
		{"a check under a break-glass role", map[string]string{"actions/x.toml": "name = \"x\"\nbreak_glass_role = \"r\"\n[labels]\ntype = \"health-check\"\n" + step}},
		{"crons", map[string]string{"components/a.toml": appconfigtest.Module("a", `drift_schedule = "every day"`),
			"actions/x.toml": "name = \"x\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"61 * * * *\"\n[[triggers]]\ntype = \"cron\"\n[[triggers]]\ntype = \"manual\"\ncron_schedule = \"* * * * *\"\n" + step}},
		{"looks for drift", map[string]string{"components/a.toml": "name = \"a\"\ntype = \"kubernetes_manifest\"\ndrift_schedule = \"*/2 * * * *\"\nnamespace = \"n\"\nmanifest = \"x\"\n" +
			"[[berth.drift.accept]]\nkind = \"Deployment\"\npath = \"spec.replicas\"\nreason = \"r\"\nby = \"b\"\nuntil = \"soon\"\n[[berth.drift.accept]]\nkind = \"*\"\npath = \"*\"\n",
			"components/b.toml": appconfigtest.Module("b", `drift_schedule = "58-59 * * * *"`, "[[berth.drift.accept]]")}},
		{"triggers", map[string]string{"actions/x.toml": "name = \"x\"\nbreak_glass_role = \"r\"\n[[triggers]]\ntype = \"post-provison\"\n[[triggers]]\ntype = \"pre-deploy-component\"\ncomponent_name = \"gone\"\n" + step}},
		{"steps", map[string]string{"actions/x.toml": "name = \"x\"\ntimeout = \"2h\"\n[[steps]]\nname = \"a\"\n[[steps]]\nname = \"a\"\ncommand = \"x\"\ninline_contents = \"y\"\n"}},
		{"no steps", map[string]string{"actions/x.toml": "name = \"x\"\n"}},
		{"terraform versions", map[string]string{"components/a.toml": strings.Replace(appconfigtest.Module("a"), "1.11.4", ">= one", 1),
			"sandbox.toml": strings.Replace(appconfigtest.Minimal["sandbox.toml"], "1.11.4", "1.11", 1)}},
		{"negative numbers", map[string]string{"components/a.toml": appconfigtest.Module("a", "max_auto_retries = -1", "deploy_timeout = \"-5m\"", "default_enabled = false")}},
		{"operation roles", map[string]string{"components/a.toml": appconfigtest.Module("a", "[[operation_roles]]\noperation = \"provision\"\nrole = \"r\"\n[[operation_roles]]\noperation = \"deploy\"\nrole = \"r\"\n[[operation_roles]]\noperation = \"deploy\"\nrole = \"q\"")}},
		{"no source", map[string]string{"components/a.toml": "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n"}},
		{"two sources", map[string]string{"components/a.toml": appconfigtest.Module("a", "[public_repo]\nrepo = \"x/y\"")}},
		{"local source is not there", map[string]string{"components/a.toml": strings.Replace(appconfigtest.Module("a"), "src/base", "src/bsae", 1)}},
		{"local source leaves the folder", map[string]string{"components/a.toml": strings.Replace(appconfigtest.Module("a"), "src/base", "../elsewhere", 1),
			"components/b.toml": strings.Replace(appconfigtest.Module("b"), "src/base", "/etc", 1)}},
		{"loaded files", map[string]string{"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./gone.tfvars\"\n[[var_file]]\ncontents = \"../../../etc/passwd\"\n[[var_file]]\ncontents = \"https://x.test/a.tfvars\"")}},
		{"inputs", map[string]string{"inputs.toml": "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n" +
			"[[input]]\nname = \"a\"\ndisplay_name = \"A\"\ndescription = \"d\"\ngroup = \"h\"\ntype = \"number\"\ndefault = \"many\"\n" +
			"[[input]]\nname = \"a\"\ndisplay_name = \"A\"\ndescription = \"d\"\ngroup = \"g\"\ntype = \"int\"\n"}},
		{"secrets", map[string]string{"secrets.toml": "[[secret]]\nname = \"a\"\ndescription = \"d\"\nrequired = true\nauto_generate = true\n[[secret]]\nname = \"b\"\ndescription = \"d\"\nkubernetes_sync = true\nformat = \"hex\"\n"}},
		{"an unreadable component is not unknown too", map[string]string{"components/a.toml": "name = \n", "components/b.toml": appconfigtest.Module("b", `dependencies = ["a"]`)}},
	}
	var b strings.Builder
	for _, tt := range tests {
		_, diags := check.Folder(appconfigtest.Folder(tt.files), appconfig.LoadOptions{})
		if len(diags) == 0 {
			t.Errorf("%s: nothing was reported", tt.name)
		}
		fmt.Fprintf(&b, "# %s\n%s\n", tt.name, appconfigtest.Render(diags))
	}
	appconfigtest.Golden(t, "diagnostics.txt", b.String(), *update)
}

func TestDiagnosticFormat(t *testing.T) {
	t.Parallel()
	_, diags := check.Folder(appconfigtest.Folder(map[string]string{
		"components/api.toml": appconfigtest.Module("api", "# a line", `dependancies = []`),
	}), appconfig.LoadOptions{})
	want := `components/api.toml:5:1 warning unknown key "dependancies": did you mean "dependencies"?` + "\n"
	if got := appconfigtest.Render(diags); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	if place.HasErrors(diags) || !place.HasErrors(place.Strict(diags)) {
		t.Error("an unknown key is a warning, and an error when strict")
	}
}

func TestSymlinksStayInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := filepath.Join(dir, "app")
	for name, contents := range appconfigtest.Minimal {
		appconfigtest.WriteFile(t, filepath.Join(app, name), contents)
	}
	appconfigtest.WriteFile(t, filepath.Join(dir, "secret.tfvars"), "outside")
	appconfigtest.WriteFile(t, filepath.Join(app, "outside.tfvars"), "# inside")
	appconfigtest.WriteFile(t, filepath.Join(app, "components/a.toml"), appconfigtest.Module("a",
		"[[var_file]]\ncontents = \"./in.tfvars\"\n[[var_file]]\ncontents = \"./out.tfvars\"\n[[var_file]]\ncontents = \"./up/secret.tfvars\""))
	appconfigtest.Symlink(t, "../outside.tfvars", filepath.Join(app, "components/in.tfvars"))
	appconfigtest.Symlink(t, "../../secret.tfvars", filepath.Join(app, "components/out.tfvars"))
	appconfigtest.Symlink(t, "../..", filepath.Join(app, "components/up"))

	_, diags := check.Folder(os.DirFS(app), appconfig.LoadOptions{})
	want := `components/a.toml:7:1 error contents: file "./out.tfvars": leaves the app folder
components/a.toml:9:1 error contents: file "./up/secret.tfvars": leaves the app folder
`
	if got := appconfigtest.Render(diags); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	large := appconfigtest.Folder(map[string]string{"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./a.tfvars\"")})
	large["components/a.tfvars"] = &fstest.MapFile{Data: make([]byte, folder.MaxFileBytes+1)}

	many := appconfigtest.Folder()
	for i := range folder.MaxFiles + 1 {
		many[fmt.Sprintf("components/%d.txt", i)] = &fstest.MapFile{}
	}

	together := appconfigtest.Folder()
	filler := []byte("# " + strings.Repeat("x", folder.MaxFileBytes-2))
	for i := range folder.MaxBytes/folder.MaxFileBytes + 1 {
		together[fmt.Sprintf("components/%02d.toml", i)] = &fstest.MapFile{Data: filler}
	}
	named := appconfigtest.Folder(map[string]string{"components/a.toml": appconfigtest.Module("a", strings.Repeat("[[var_file]]\ncontents = \"./a.tfvars\"\n", 20))})
	named["components/a.tfvars"] = &fstest.MapFile{Data: make([]byte, folder.MaxFileBytes)}
	shaped := func(contents string) fstest.MapFS {
		return appconfigtest.Folder(map[string]string{"components/a.toml": contents})
	}
	for name, tt := range map[string]struct {
		fsys fstest.MapFS
		want string
	}{
		"one file":      {large, "is larger than 4 MiB"},
		"files":         {many, "has more than 10000 files"},
		"together":      {together, "together larger than 64 MiB"},
		"named often":   {named, "each counted as often as it is named"},
		"long key":      {shaped(strings.Repeat("a", 1<<20) + " = 1\nname = 1"), "name must be a string"},
		"dotted keys":   {shaped("x" + strings.Repeat(".a", 100_000) + " = 1"), "nests them deeper than 32"},
		"dotted tables": {shaped("[x" + strings.Repeat(".a", 100_000) + "]"), "nests them deeper than 32"},
		"arrays":        {shaped("x = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), "nests them deeper than 32"},
		"headers":       {shaped(strings.Repeat("[[a]]\n", 100_000)), "more than 10000 keys"},
	} {
		_, diags := appconfig.Load(tt.fsys, appconfig.LoadOptions{})
		if got := appconfigtest.Render(diags); !place.HasErrors(diags) || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
