package check_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
)

// twins are folders of testdata/twins, each for one rule that public apps rely
// on. A folder holds what the rule accepts next to what it refuses, and want.txt
// has all that is said about it by the rules of the format.
var twins = []struct{ folder, rule string }{
	{"empty-policies", "a role with an empty policy, or with none, is accepted with a warning; one with two in one is not"},
	{"azure-without-stack", "an app whose runner is in Azure needs no stack.toml"},
	{"aws-without-stack", "every other app needs one"},
	{"break-glass-triggers", "an action under a break-glass role may start by hand and when a role is switched; any other trigger is a warning"},
	{"roles-nobody-declares", "a role that an entity names and nothing declares is a warning with the nearest name, and an error in operation_roles.toml"},
	{"newer-triggers", "the newer triggers exist, and nothing that is only like them"},
	{"wildcard-principals", "a principal may be all components or all actions, and no other pattern"},
	{"contexts-folder", "kubernetes_contexts/ is a folder, with one context or an array of them in a file"},
	{"health-labels", "the label is_health_check makes a health check, as type = \"health-check\" does"},
	{"keys-of-roles", "named_policies and enabled_in_stack are keys of a role"},
	{"undeclared-variables", "a value for a variable that the module does not declare is a warning"},
	{"inputs-without-value", "an input without value and default may be read; one that is not declared may not"},
	{"two-versions-of-terraform", "modules of one app may pin two exact versions"},
	{"two-tools", "a module for OpenTofu is read as OpenTofu reads it; nothing else has a tool"},
	{"misspelt-required-key", "a required key that is misspelt, or stands below a table, is one error at that key"},
	{"misspelt-list", "a list of definitions that is misspelt is one error, and not one of each use"},
	{"rules-not-run", "that policies are not run is reported where a deploy is asked for, and not here"},
	{"scripts-of-repositories", "a script of a step's repository is looked for where the repository is at hand"},
	{"fixed-parts", "the fixed parts of the template tree are checked at every level; outputs, inputs and other free maps are open"},
	{"known-outputs", "the outputs of local modules are known"},
	{"values-of-inputs", "defaults and values of installs fit the type, the bounds and the pattern of their input"},
	{"texts-of-terraform", "HCL that does not parse is reported"},
}

func TestTwinsOfPublicApps(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("testdata/twins")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.ContainsFunc(twins, func(twin struct{ folder, rule string }) bool { return twin.folder == entry.Name() }) {
			t.Errorf("no rule is named for the folder %s", entry.Name())
		}
	}
	for _, twin := range twins {
		t.Run(twin.folder, func(t *testing.T) {
			t.Parallel()
			app, diags := check.Format(appconfigtest.Folder(twinFiles(t, twin.folder)), appconfig.LoadOptions{Mapped: atHand(twin.folder)})
			var said strings.Builder
			said.WriteString("# " + twin.rule + "\n")
			for _, d := range diags {
				said.WriteString(d.String() + "\n")
			}
			if twin.folder == "health-labels" {
				for i := range app.Actions {
					if _, is := app.Actions[i].HealthCheck(); is {
						said.WriteString("health check: " + app.Actions[i].Name + "\n")
					}
				}
			}
			file := filepath.Join("testdata/twins", twin.folder, "want.txt")
			if *update {
				if err := os.WriteFile(file, []byte(said.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), said.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", twin.rule, diff)
			}
		})
	}
}

// twinFiles reads what a folder adds to the minimal app.
func twinFiles(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(path.Join("testdata/twins", folder))
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "want.txt" || strings.HasPrefix(name, "repositories/") {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// atHand finds public repositories in the twin's own folder of them.
func atHand(folder string) func(appconfig.Source) (fs.FS, string, bool) {
	return func(src appconfig.Source) (fs.FS, string, bool) {
		return os.DirFS(path.Join("testdata/twins", folder, "repositories")), src.Directory, !src.Connected
	}
}
