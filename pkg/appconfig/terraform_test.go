package appconfig_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
)

// TestVariablesOfMappedModules holds that modules of git repositories are looked
// into where a source map sends them, and nowhere else.
func TestVariablesOfMappedModules(t *testing.T) {
	t.Parallel()
	here := fstest.MapFS{
		"base/main.tf":  {Data: []byte("variable \"vpc_id\" {}\nvariable \"provision_iam_role_arn\" {}\nvariable \"size\" {}\n")},
		"infra/main.tf": {Data: []byte("variable \"zone\" {}\n")},
	}
	repo := "\n[public_repo]\nrepo = \"acme/infra\"\ndirectory = \"%s\"\n"
	fsys := appconfigtest.Folder(map[string]string{
		"stack.toml":        "type = \"aws-cloudformation\"\nname = \"n\"\ndescription = \"d\"\n",
		"runner.toml":       "runner_type = \"aws\"\n",
		"sandbox.toml":      "terraform_version = \"1.11.4\"" + fmt.Sprintf(repo, "base"),
		"components/a.toml": "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"" + fmt.Sprintf(repo, "infra") + "[vars]\nzome = \"1\"\n",
		"components/b.toml": "name = \"b\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"" + fmt.Sprintf(repo, "elsewhere"),
	})
	_, diags := appconfig.Load(fsys, appconfig.LoadOptions{Mapped: func(src appconfig.Source) (fs.FS, string, bool) {
		return here, src.Directory, src.Repo == "acme/infra" && src.Directory != "elsewhere"
	}})
	want := `components/a.toml:7:2 error the module in acme/infra//infra requires the variable "zone", and nothing gives it a value: set it in vars, for example from an input, or give it a default there
components/a.toml:8:1 warning the module in acme/infra//infra has no variable "zome", so the value does nothing: did you mean "zone"?
sandbox.toml warning the module in acme/infra//base requires the variable "size", and nothing gives it a value: the sandbox of a cloud gets some from its stack; if nothing does, set it in vars
`
	if got := appconfigtest.Render(diags); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if _, diags := appconfig.Load(fsys, appconfig.LoadOptions{}); len(diags) > 0 {
		t.Errorf("without a map it says\n%s", appconfigtest.Render(diags))
	}
}

// TestManyMissingVariables holds that a module cannot make a report without end.
func TestManyMissingVariables(t *testing.T) {
	t.Parallel()
	var main, values strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&main, "variable \"v%d\" {}\n", i)
		fmt.Fprintf(&values, "w%d = 1\n", i)
	}
	files := map[string]string{"src/m/main.tf": main.String(), "components/v.tfvars": values.String()}
	for i := range 50 {
		files[fmt.Sprintf("components/c%d.toml", i)] = strings.Replace(appconfigtest.Module(fmt.Sprintf("c%d", i), "[[var_file]]\ncontents = \"./v.tfvars\""), "src/base", "src/m", 1)
	}
	_, diags := appconfig.Load(appconfigtest.Folder(files), appconfig.LoadOptions{})
	if len(diags) == 0 || len(diags) > 50*40 {
		t.Errorf("%d diagnostics", len(diags))
	}
	if got := appconfigtest.Render(diags); !strings.Contains(got, "requires 4990 more variables that nothing gives") {
		t.Errorf("it does not say how many there are:\n%.2000s", got)
	}
}
