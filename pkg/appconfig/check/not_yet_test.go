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
)

// TestWhatIsActedOnIsNotTold uses the keys of which some uses have no effect, each
// in a way that has one: the table must not name them.
func TestWhatIsActedOnIsNotTold(t *testing.T) {
	t.Parallel()
	steps := "[[steps]]\nname = \"s\"\ncommand = \"true\"\n"
	app, diags := appconfig.Load(appconfigtest.Folder(map[string]string{
		"runner.toml":       "runner_type = \"local\"\nhelm_driver = \"configmap\"\n",
		"stack.toml":        "type = \"kubernetes\"\nname = \"n\"\ndescription = \"d\"\n",
		"sandbox.toml":      "type = \"terraform\"\nskip_noops = true\ndrift_schedule = \"0 5 * * *\"\nterraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n",
		"components/a.toml": appconfigtest.Module("a", "drift_schedule = \"0 5 * * *\"", "kubernetes_context = \"sandbox\"", "skip_noops = true", "toggleable = true", "default_enabled = false"),
		"components/h.toml": "name = \"h\"\ntype = \"helm_chart\"\nchart_name = \"h\"\nstorage_driver = \"secret\"\n[berth]\nlocal_source = \"src/base\"\n",
		"components/i.toml": "name = \"i\"\ntype = \"external_image\"\n[public]\nimage_url = \"a/b\"\ntag = \"1\"\n",
		"actions/a.toml": "name = \"a\"\nkubernetes_context = \"sandbox\"\n[labels]\ntype = \"health-check\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"0 3 * * *\"\n" +
			"[[triggers]]\ntype = \"post-deploy-component\"\ncomponent_name = \"a\"\n[[triggers]]\ntype = \"manual\"\n" + steps,
		"actions/b.toml": "name = \"b\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"0 3 * * *\"\n[berth.health_check]\nunhealthy_after = 1\n" + steps,
	}), appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatal(appconfigtest.Render(diags))
	}
	want := "stack.toml:2:1 note the text of the stack, in \"name\" and \"description\", is not supported yet by this version and has no effect; it waits for cloud stacks\n"
	if diff := cmp.Diff(want, appconfigtest.Render(check.Unsupported(app))); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestBreakGlassRolesAreOfOneType refuses any other type in break_glass.toml.
func TestBreakGlassRolesAreOfOneType(t *testing.T) {
	t.Parallel()
	for _, kind := range []appconfig.RoleType{appconfig.RoleBreakGlass, appconfig.RoleCustom, appconfig.RoleProvision, appconfig.RoleMaintenance, appconfig.RoleDeprovision} {
		_, diags := appconfig.Load(appconfigtest.Folder(map[string]string{
			"break_glass.toml": "[[role]]\nname = \"r\"\ndescription = \"d\"\ntype = \"" + string(kind) + "\"\npolicies = [{managed_policy_name = \"ReadOnlyAccess\"}]\n",
		}), appconfig.LoadOptions{})
		if refused := place.HasErrors(diags); refused != (kind != appconfig.RoleBreakGlass) {
			t.Errorf("%s: refused: %t\n%s", kind, refused, appconfigtest.Render(diags))
		}
	}
}

// TestEveryNotYetIsTold holds that each row of the table is found in a folder that
// uses it, in its own words, and that nothing but errors is told twice.
func TestEveryNotYetIsTold(t *testing.T) {
	t.Parallel()
	action := "name = \"a\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"0 3 * * *\"\n[[triggers]]\ntype = \"post-deploy-component\"\n" +
		"[[triggers]]\ntype = \"role-enabled\"\n[[steps]]\nname = \"s\"\ncommand = \"./x\"\n[steps.connected_repo]\nrepo = \"a/b\"\n"
	cloud := appconfigtest.Folder(map[string]string{
		"runner.toml":    "runner_type = \"aws\"\ninit_script_url = \"https://example.com/x\"\ninstance_type = \"t3\"\nenv_vars = {A = \"b\"}\n",
		"stack.toml":     "type = \"aws-cloudformation\"\nname = \"n\"\ndescription = \"d\"\n",
		"actions/a.toml": action,
		"installer.toml": "name = \"old\"\n",
		"secrets.toml": "[[secret]]\nname = \"s\"\ndescription = \"d\"\nkubernetes_sync = true\nkubernetes_secret_name = \"n\"\nkubernetes_secret_namespace = \"n\"\n" +
			"[[secret]]\nname = \"t\"\ndescription = \"d\"\n[[secret.kubernetes_sync_targets]]\nnamespaces = [\"a\"]\nname = \"t\"\n",
		"components/a.toml": "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\nlabels = {x = \"y\"}\nskip_noops = true\nconnected_repo = {repo = \"a/b\"}\n[berth.drift]\n",
		"sandbox.toml":      "type = \"pulumi\"\nskip_noops = true\ndrift_schedule = \"0 5 * * *\"\nconnected_repo = {repo = \"a/b\"}\n[berth.drift]\n",
		"inputs/g/i.toml":   "name = \"i\"\ndisplay_name = \"I\"\ndescription = \"d\"\ninternal = true\n",
		"installs/a.toml":   "name = \"a\"\n[azure_account]\nlocation = \"x\"\n",
	})
	var said strings.Builder
	for _, fsys := range []struct {
		name string
		diag func() []place.Diagnostic
	}{
		{"cloud", func() []place.Diagnostic {
			app, _ := appconfig.Load(cloud, appconfig.LoadOptions{})
			return place.Sort(append(check.Unsupported(app), check.UnsupportedOfInstalls(app)...))
		}},
		{"kitchen sink", func() []place.Diagnostic {
			app, _ := appconfig.Load(os.DirFS("../../../examples/kitchen-sink"), appconfig.LoadOptions{})
			return place.Sort(append(check.Unsupported(app), check.UnsupportedOfInstalls(app)...))
		}},
		{"kitchen sink in files", func() []place.Diagnostic {
			app, _ := appconfig.Load(os.DirFS("../../../examples/kitchen-sink/variants/files"), appconfig.LoadOptions{})
			return place.Sort(append(check.Unsupported(app), check.UnsupportedOfInstalls(app)...))
		}},
		{"plugin", func() []place.Diagnostic {
			app, _ := appconfig.Load(appconfigtest.Folder(map[string]string{
				"stack.toml":        "type = \"local\"\ndescription = \"d\"\n",
				"components/p.toml": "name = \"p\"\ntype = \"ansible\"\ndrift_schedule = \"0 5 * * *\"\n[berth.drift]\n[[health.probes]]\ntype = \"grpc\"\n",
				"actions/h.toml":    "name = \"h\"\n[berth.health_check]\nremediation = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n",
			}), appconfig.LoadOptions{})
			return check.Unsupported(app)
		}},
	} {
		once := map[string]bool{}
		for _, d := range fsys.diag() {
			said.WriteString(d.Message + " | " + d.Remedy + "\n")
			if d.Severity == place.Error {
				continue
			}
			what, _, _ := strings.Cut(d.Message, " not supported yet")
			if once[what+d.Remedy] {
				t.Errorf("%s: told twice: %s", fsys.name, d)
			}
			once[what+d.Remedy] = true
		}
	}
	for _, row := range check.NotYets() {
		what, _, valued := strings.Cut(row.What, "%q")
		want := row.What + " not supported yet by this version"
		if valued {
			want = what + `"`
		}
		told := false
		for line := range strings.Lines(said.String()) {
			told = told || strings.Contains(line, want) && strings.Contains(line, "it waits for "+row.WaitsFor)
		}
		if !told {
			t.Errorf("nothing tells of %v: %s", row.Keys, row.What)
		}
	}
}
