package check_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// FuzzLint holds that no lint.toml makes an error or a panic.
func FuzzLint(f *testing.F) {
	f.Add("[rules.undeclared]\nenabled = false\nseverity = \"note\"\n[[custom]]\nname = \"x\"\ncommand = \"src/base/main.tf\"\n")
	f.Add("custom = [1, {name = \"x\"}]\nrules = {syntax = 1, \"a.b\" = {}}\n")
	f.Fuzz(func(t *testing.T, contents string) {
		lint, about := check.ReadLint(appconfigtest.Folder(map[string]string{"lint.toml": contents}))
		if place.HasErrors(about) {
			t.Fatalf("lint.toml is an error: %v", about)
		}
		lint.Apply(about)
	})
}

// FuzzLoad holds that no TOML file makes the loader panic, and that what it
// accepts survives a bundle.
func FuzzLoad(f *testing.F) {
	f.Add(appconfigtest.Module("a", "dependencies = [\"a\"]\n[vars]\nx = \"{{ .nuon.components.b.outputs.c }}\"\n[[var_file]]\ncontents = \"./a\""))
	f.Add("name = 'x'\nsteps = [{name = \"a\", command = '''\nx\n''', env_vars = {a = 1, b.c = 2}}]\n[berth]\nhealth_check.healthy_after = 3\n")
	f.Add("[[triggers]]\ntype = 'cron'\n[[triggers]]\n[[steps]]\n[steps.env_vars]\n\"a.b\" = 1979-05-27T07:32:00Z\n[[steps]]\n")
	f.Add("name = \"x\"\ntype = \"ansible\"\nsource = \"./x.toml\"\nx = [nan, {a = 1}]\n[[rules]]\nprincipal = \"nuon::component:\"\n")
	f.Add("[[components]]\nsource = \"nuon.x.toml\"\n[config_vars]\na = 1\n[triggers.target]\ntype = \"{{ .config_vars.a }}\"\n[[role]]\npolicies = [{contents = \"./x\"}]\n")
	f.Fuzz(func(t *testing.T, contents string) {
		fsys := appconfigtest.Folder(map[string]string{"components/x.toml": contents, "actions/x.toml": contents, "inputs.toml": contents, "secrets/x.toml": contents,
			"permissions/x.toml": contents, "break_glass.toml": contents, "policies/x.toml": contents, "runbooks/x.toml": contents, "installs/x.toml": contents,
			"branches/x.toml": contents, "operation_roles.toml": contents, "kubernetes_contexts.toml": contents, "triggers.toml": contents})
		whole := appconfigtest.Folder(map[string]string{"metadata.toml": "", "sandbox.toml": "", "runner.toml": "", "stack.toml": "", "nuon.x.toml": contents})
		_, _ = check.Folder(whole, appconfig.LoadOptions{})
		app, diags := check.Folder(fsys, appconfig.LoadOptions{})
		for _, d := range diags {
			if d.File == "" || d.Message == "" {
				t.Fatalf("diagnostic without a place or a message: %+v", d)
			}
		}
		if place.HasErrors(diags) {
			return
		}
		made, err := bundle.Make(fsys, nil)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := bundle.Open(appconfigtest.Archives(made)...)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := appconfig.Load(opened, appconfig.LoadOptions{SkipSources: true})
		if app.Digest() != again.Digest() {
			t.Fatal("the bundle means something else")
		}
	})
}
