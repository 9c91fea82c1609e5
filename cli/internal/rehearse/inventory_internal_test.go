package rehearse

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/pkg/appconfig"
)

// readFolder reads an app folder as a rehearsal does, and gives all of its lines.
func readFolder(t *testing.T, dir string) (*run, []Line, error) {
	t.Helper()
	client, err := api.New(api.Options{URL: "http://192.0.2.1"}) // nobody is asked
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Doors: Doors{Out: io.Discard, Err: io.Discard, Now: time.Now}, client: client, folder: dir, screen: &follow.Screen{W: io.Discard}}
	if err := r.read(t.Context()); err != nil {
		return r, nil, err
	}
	var lines []Line
	for _, part := range r.order() {
		lines = append(lines, r.line(part, ""))
	}
	others, err := r.inventory(context.Background(), nil, lines)
	return r, append(lines, others...), err
}

// Everything that an app holds has a line: a new list in App fails here until it has.
func TestEverythingInTheFolderHasALine(t *testing.T) {
	t.Parallel()
	r, lines, err := readFolder(t, "../../../examples/kitchen-sink")
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(lines, func(l Line) bool { return l.Name == name && l.Verdict != "" })
	}
	app := reflect.ValueOf(*r.app)
	for i := range app.NumField() {
		field := app.Type().Field(i)
		if field.Type.Kind() != reflect.Slice || field.Name == "Includes" || field.Name == "Fetched" || !field.IsExported() {
			continue
		}
		if app.Field(i).Len() == 0 {
			t.Errorf("the kitchen sink has no %s", field.Name)
		}
		for k := range app.Field(i).Len() {
			if name := app.Field(i).Index(k).FieldByName("Name").String(); !has(name) {
				t.Errorf("%s %q has no line", field.Name, name)
			}
		}
	}
	for _, name := range []string{"sandbox", "stack", "runner", "operation_roles", "metadata", "readme", "default_labels", "installer.toml", "installs.toml", "customer_managed"} {
		if name != "runner" && !has(name) || name == "runner" && !has(r.app.Runner.RunnerType) {
			t.Errorf("%s has no line", name)
		}
	}
	for _, a := range r.app.Actions {
		for _, trigger := range a.Triggers {
			if !slices.ContainsFunc(lines, func(l Line) bool {
				return l.Kind == kindTrigger && strings.HasPrefix(l.Name, a.Name+": "+string(trigger.Type))
			}) {
				t.Errorf("trigger %s of action %s has no line", trigger.Type, a.Name)
			}
		}
	}
	for _, l := range lines {
		if l.Verdict != Real && l.Why == "" {
			t.Errorf("%s %s is %s without a reason", l.Kind, l.Name, l.Verdict)
		}
	}
}

const aws = `version = "v2"
`

// basic is the least that an app has.
func basic() map[string]string {
	return map[string]string{
		"metadata.toml": aws, "runner.toml": "runner_type = \"aws\"\n",
		"stack.toml":   "type = \"aws-cloudformation\"\nname = \"x\"\ndescription = \"x\"\n",
		"sandbox.toml": "terraform_version = \"1.11.3\"\n[berth]\nlocal_source = \"src\"\n", "src/main.tf": "output \"vpc\" {\n  value = 1\n}\n",
	}
}

func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := basic()
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Wherever a file from elsewhere is named, one that cannot be fetched costs its own
// line and no more.
func TestFilesThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	const at, role = "http://127.0.0.1:1/x", "name = \"r\"\ndisplay_name = \"r\"\ndescription = \"r\"\n"
	const repo = "[public_repo]\nrepo = \"acme/x\"\ndirectory = \".\"\nbranch = \"main\"\n"
	for name, tc := range map[string]struct{ file, text, line string }{
		"readme":                  {"metadata.toml", aws + "readme = \"" + at + "\"\n", "readme readme"},
		"boundary":                {"permissions/p.toml", "type = \"provision\"\n" + role + "permissions_boundary = \"" + at + "\"\n[[policies]]\nmanaged_policy_name = \"x\"\n", "role r"},
		"policy of a role":        {"permissions/p.toml", "type = \"custom\"\n" + role + "[[policies]]\nname = \"p\"\ncontents = \"" + at + "\"\n", "role r"},
		"role in one file":        {"permissions.toml", "[provision_role]\n" + role + "[[provision_role.policies]]\nname = \"p\"\ncontents = \"git::http://127.0.0.1:1/a.git//x.json\"\n", "role r"},
		"break glass":             {"break_glass.toml", "[[role]]\n" + role + "[[role.policies]]\nname = \"p\"\ncontents = \"" + at + "\"\n", "break-glass r"},
		"policy of Kyverno":       {"policies/p.toml", "type = \"kubernetes_cluster\"\nname = \"p\"\ncontents = \"" + at + "\"\n", "policy p"},
		"policy of OPA":           {"policies.toml", "[[policy]]\ntype = \"terraform_module\"\nengine = \"opa\"\nname = \"p\"\ncomponents = [\"*\"]\ncontents = \"" + at + "\"\n", "policy p"},
		"script":                  {"actions/a.toml", "name = \"a\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ninline_contents = \"" + at + "\"\n", "action a"},
		"values file":             {"components/c.toml", "name = \"c\"\ntype = \"helm_chart\"\nchart_name = \"c\"\n" + repo + "[[values_file]]\ncontents = \"" + at + "\"\n", "component c"},
		"manifest":                {"components/c.toml", "name = \"c\"\ntype = \"kubernetes_manifest\"\nnamespace = \"c\"\nmanifest = \"" + at + "\"\n", "component c"},
		"var file":                {"components/c.toml", "name = \"c\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n" + repo + "[[var_file]]\ncontents = \"" + at + "\"\n", "component c"},
		"var file of sandbox":     {"sandbox.toml", "terraform_version = \"1.11.3\"\n" + repo + "[[var_file]]\ncontents = \"" + at + "\"\n", "sandbox sandbox"},
		"readme of a runbook":     {"runbooks/r.toml", "name = \"r\"\ndescription = \"r\"\nreadme = \"" + at + "\"\n[[steps]]\nname = \"s\"\ntype = \"sandbox_reprovision\"\n", "runbook r"},
		"script of a runbook":     {"runbooks/r.toml", "name = \"r\"\ndescription = \"r\"\n[[steps]]\nname = \"s\"\ntype = \"action\"\ninline_contents = \"" + at + "\"\n", "runbook r"},
		"component merged in":     {"components/c.toml", "name = \"c\"\nsource = \"" + at + "\"\n", "component c"},
		"action merged in":        {"actions/a.toml", "name = \"a\"\nsource = \"" + at + "\"\n", "action a"},
		"sandbox merged in":       {"sandbox.toml", "source = \"" + at + "\"\n", "sandbox sandbox"},
		"a role merged in":        {"permissions/p.toml", "type = \"provision\"\nname = \"r\"\nsource = \"" + at + "\"\n", "role r"},
		"an input merged in":      {"inputs.toml", "source = \"" + at + "\"\n", ""},
		"secrets merged in":       {"secrets.toml", "source = \"" + at + "\"\n", ""},
		"a stack merged in":       {"stack.toml", "source = \"" + at + "\"\n", "file stack.toml"},
		"metadata merged in":      {"metadata.toml", aws + "source = \"" + at + "\"\n", ""},
		"a runbook merged in":     {"runbooks/r.toml", "name = \"r\"\nsource = \"" + at + "\"\n", "runbook r"},
		"contexts merged in":      {"kubernetes_contexts.toml", "source = \"" + at + "\"\n", ""},
		"a branch merged in":      {"branch.toml", "name = \"b\"\nsource = \"" + at + "\"\n", "branch b"},
		"policies merged in":      {"policies/p.toml", "name = \"p\"\nsource = \"" + at + "\"\n", "policy p"},
		"template for an address": {"actions/a.toml", "name = \"a\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ninline_contents = \"https://x.invalid/{{ .nuon.install.id }}\"\n", "action a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, lines, err := readFolder(t, folderOf(t, map[string]string{tc.file: tc.text}))
			if err != nil {
				t.Fatal(err)
			}
			if found, staged, err := r.wrong(appconfig.LoadOptions{SkipSources: true, Fetched: r.sync.Known, AllowInvalidPolicies: true}); err != nil || len(found) > 0 || staged.Sandbox == nil {
				t.Errorf("the rest cannot be synced: %v %v", err, found)
			}
			if tc.line == "" {
				return
			}
			at := slices.IndexFunc(lines, func(l Line) bool { return l.Kind+" "+l.Name == tc.line })
			if at < 0 {
				t.Fatalf("there is no line of %s: %+v", tc.line, lines)
			}
			if l := lines[at]; l.Verdict != NotPlanned && l.Verdict != Failed || !strings.Contains(l.Why, "unreachable") && l.Verdict == NotPlanned {
				t.Errorf("%s is %s: %s", tc.line, l.Verdict, l.Why)
			}
		})
	}
}

// A definition that is wrong fails alone.
func TestWhatIsWrongFailsAlone(t *testing.T) {
	t.Parallel()
	good := "name = \"good\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[berth]\nlocal_source = \"src\"\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  map[string]Verdict
	}{
		"a template of nothing":      {map[string]string{"components/bad.toml": strings.ReplaceAll(good, "good", "bad") + "[vars]\nx = \"{{ .nuon.components.none.outputs.x }}\"\n"}, map[string]Verdict{"component bad": Failed}},
		"no TOML":                    {map[string]string{"components/bad.toml": "name = \n"}, map[string]Verdict{"file components/bad.toml": Failed}},
		"a name used twice":          {map[string]string{"components/bad.toml": good}, map[string]Verdict{"component good": Failed, "file components/good.toml": Failed}},
		"a script that is not there": {map[string]string{"actions/a.toml": "name = \"a\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ninline_contents = \"./no.sh\"\n"}, map[string]Verdict{"action a": Failed}},
		"a role of two clouds":       {map[string]string{"permissions/p.toml": "type = \"custom\"\nname = \"r\"\ndescription = \"r\"\n[[policies]]\nmanaged_policy_name = \"x\"\ngcp_predefined_role = \"y\"\n"}, map[string]Verdict{"role r": Failed}},
		"one of two secrets":         {map[string]string{"secrets.toml": "[[secret]]\nname = \"a\"\ndescription = \"a\"\nrequired = true\ndefault = \"x\"\n[[secret]]\nname = \"b\"\ndescription = \"b\"\n"}, map[string]Verdict{"secret a": Failed, "secret b": Mocked}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"components/good.toml": good}
			for file, text := range tc.files {
				files[file] = text
			}
			_, lines, err := readFolder(t, folderOf(t, files))
			if err != nil {
				t.Fatal(err)
			}
			for line, want := range tc.want {
				if !slices.ContainsFunc(lines, func(l Line) bool {
					return l.Kind+" "+l.Name == line && l.Verdict == want && (l.Why != "" || want == Real)
				}) {
					t.Errorf("%s is not %s: %+v", line, want, lines)
				}
			}
		})
	}
	if _, _, err := readFolder(t, folderOf(t, map[string]string{"runner.toml": "runner_type = \"no such cloud\"\n"})); err == nil {
		t.Error("an app for no known runner is rehearsed")
	}
}

func TestOutputsThatNothingReadsOrDeclares(t *testing.T) {
	t.Parallel()
	r, _, err := readFolder(t, folderOf(t, map[string]string{
		"components/db.toml":  "name = \"db\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[berth]\nlocal_source = \"src\"\n",
		"components/web.toml": "name = \"web\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"acme/web\"\ndirectory = \".\"\nbranch = \"main\"\n[vars]\na = \"{{ .nuon.components.db.outputs.host }}{{ .nuon.install_stack.outputs.vpc_id }}{{ .nuon.install_stack.outputs.mine }}{{ .nuon.install_stack.outputs.custom_nested_stacks.x.y }}\"\nb = \"{{ .nuon.install.sandbox.outputs.vpc }}\"\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	unread, undeclared := outputs(r.app, []string{"install_stack.outputs.given"})
	for path, want := range map[string]bool{
		"components.db.outputs.vpc": true, "install_stack.outputs.given": true, "install_stack.outputs.account_id": true,
		"install_stack.outputs.vpc_id": false, "sandbox.outputs.vpc": false,
	} {
		if got := slices.Contains(unread, path); got != want {
			t.Errorf("%s is unread: %v, want %v", path, got, want)
		}
	}
	by := []string{"component web"}
	want := []Undeclared{
		{"components.db.outputs.host", by, "its module declares no such output"},
		{"install_stack.outputs.custom_nested_stacks.x.y", by, "the app has no nested stack x"},
		{"install_stack.outputs.mine", by, "no stack of its platform always gives it, and nobody gave it"},
	}
	if diff := cmp.Diff(want, undeclared); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatAClusterLacks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`find the kind of Certificate/x: no matches for kind "Certificate" in version "cert-manager.io/v1"`:                                         "the cluster has no kind Certificate of cert-manager.io/v1: nothing installed its CRD",
		`not ready: PersistentVolumeClaim a: Pending; event ProvisioningFailed: storageclass.storage.k8s.io "gp3" not found`:                        "the cluster has no storage class gp3",
		`Available: 0/1; pod s-0: container a: ImagePullBackOff: Back-off pulling image "registry.example.invalid/x:1"`:                             "the cluster cannot get the image registry.example.invalid/x:1",
		`pod s-0: Unschedulable: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available`: "no node of the cluster takes its pods: 1 node(s) didn't match Pod's node affinity/selector",
		"the chart of component x cannot be rendered": "",
	} {
		verdict, why := judgeFailure(failure{Part: stage.Component("x"), Error: text, OnCluster: true})
		if got := lacking(text); got != want || want != "" && (verdict != NotPlanned || why != want) {
			t.Errorf("%s: %q, %s: %s", text, got, verdict, why)
		}
	}
}
