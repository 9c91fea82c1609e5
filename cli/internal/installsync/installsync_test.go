package installsync_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/cli/internal/installsync"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// folder is an app with these files under installs/.
func folder(t *testing.T, files map[string]string) *appconfig.App {
	t.Helper()
	all := map[string]string{
		"metadata.toml": "version = \"v2\"\n",
		"runner.toml":   "runner_type = \"local\"\n",
		"stack.toml":    "type = \"local\"\nname = \"x\"\ndescription = \"x\"\n",
		"sandbox.toml":  "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src\"\n",
		"src/main.tf":   "# sandbox\n",
		"components/web.toml": "name = \"web\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\ntoggleable = true\n" +
			"[berth]\nlocal_source = \"src\"\n",
		"components/chart.toml": "name = \"chart\"\ntype = \"helm_chart\"\nchart_name = \"chart\"\n[berth]\nlocal_source = \"src\"\n",
		"inputs.toml": "[[group]]\nname = \"all\"\ndisplay_name = \"All\"\ndescription = \"All.\"\n" +
			"[[input]]\nname = \"greeting\"\ndisplay_name = \"G\"\ndescription = \"G.\"\ngroup = \"all\"\n" +
			"[[input]]\nname = \"port\"\ndisplay_name = \"P\"\ndescription = \"P.\"\ngroup = \"all\"\ntype = \"number\"\n",
	}
	for name, text := range files {
		all[name] = text
	}
	fsys := fstest.MapFS{}
	for name, text := range all {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	app, diagnostics := check.Format(fsys, appconfig.LoadOptions{})
	if place.HasErrors(diagnostics) {
		t.Fatalf("the folder of the test is wrong: %v", diagnostics)
	}
	return app
}

const acme = `name = "acme"
approval_option = "auto"

[aws_account]
region = "eu-central-1"

[[inputs]]
greeting = "Hello"
port = 80

[[inputs]]
port = 8080

[labels]
ring = "canary"
paid = true

[component_toggles]
web = false

[components.chart]
helm_values = "replicas: 3"

[components.web]
tf_vars = "size = 3"

[stack_overrides]
vpc_nested_template_url = "https://example.com/vpc.yaml"

[berth]
customer = "acme-corp"
`

func TestDeclare(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
	}{
		{"everything", map[string]string{
			"installs/acme.toml":   acme,
			"installs/globex.toml": "name = \"globex\"\n[inputs]\ngreeting = \"Ahoy\"\n[labels]\n",
			"installs/plain.toml":  "name = \"plain\"\n",
		}},
		{"elsewhere", map[string]string{
			"installs.toml":      "[public_repo]\nrepo = \"example/installs\"\ndirectory = \".\"\nbranch = \"main\"\n",
			"installs/acme.toml": "name = \"acme\"\nsource = \"https://example.com/acme.toml\"\n",
		}},
		{"cluster", map[string]string{
			"stack.toml":         "type = \"kubernetes\"\nname = \"x\"\ndescription = \"x\"\n",
			"installs/acme.toml": "name = \"acme\"\n",
		}},
		{"approval", map[string]string{
			"installs/asks.toml": "name = \"asks\"\napproval_option = \"prompt\"\n",
			"installs/goes.toml": "name = \"goes\"\napproval_option = \"approve-all\"\n",
		}},
		{"names", map[string]string{"installs/acme.toml": "# whose\nname = \"Acme.Corp\"\n"}},
		{"none", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			declared := installsync.Declare(folder(t, tt.files))
			body, err := json.MarshalIndent(declared.Request, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			text := string(body) + "\n"
			for _, d := range declared.Findings {
				text += d.String() + "\n"
			}
			goldentest.File(t, "testdata/declare-"+tt.name+".txt", text)
		})
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	declared := installsync.Declare(folder(t, map[string]string{"installs/acme.toml": acme, "installs/globex.toml": "name = \"globex\"\n"}))
	tests := []struct{ pointer, want string }{
		{"/installs/0/inputs/port", "installs/acme.toml:12:1"}, // the table that wins
		{"/installs/0/inputs/greeting", "installs/acme.toml:8:1"},
		{"/installs/0/inputs/region", "installs/acme.toml:1:1"}, // missing
		{"/installs/0/labels/ring", "installs/acme.toml:15:1"},
		{"/installs/0/customer", "installs/acme.toml:31:1"},
		{"/installs/0/component_toggles/web", "installs/acme.toml:19:1"},
		{"/installs/0/components/chart/helm_values", "installs/acme.toml:22:1"},
		{"/installs/0/components/web", "installs/acme.toml:24:2"},
		{"/installs/1/name", "installs/globex.toml:1:1"},
		{"/installs/2/name", ""},
		{"/installs", ""},
		{"", ""},
	}
	for _, tt := range tests {
		got := declared.Locate([]ctlapi.ProblemItem{{Pointer: &tt.pointer, Message: "x"}})[0]
		where := ""
		if got.File != nil {
			where = *got.File + ":" + itoa(got.Line) + ":" + itoa(got.Column)
		}
		if where != tt.want {
			t.Errorf("%s is at %q, want %q", tt.pointer, where, tt.want)
		}
	}
}

func itoa(n *int) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

func TestShow(t *testing.T) {
	t.Parallel()
	next := func(n ctlapi.InstallDecisionNext) *ctlapi.InstallDecisionNext { return &n }
	items := []ctlapi.InstallDecision{
		{Name: "acme", Action: ctlapi.InstallDecisionActionCreate, Next: next(ctlapi.InstallDecisionNextProvision), Changes: []ctlapi.InstallFieldChange{
			{Field: "customer", New: new("acme")}, {Field: "inputs.greeting", New: new("a\x1b[2Jb")}, {Field: "inputs.api_key", Sensitive: true},
		}},
		{Name: "by-hand", Action: ctlapi.InstallDecisionActionNotDeclared},
		{Name: "globex", Action: ctlapi.InstallDecisionActionUpdate, Next: next(ctlapi.InstallDecisionNextDeploy), Kept: []string{"api_key", "port"}, Changes: []ctlapi.InstallFieldChange{
			{Field: "approval_option", Old: new("prompt"), New: new("approve_all")}, {Field: "labels.ring", Old: new("stable")},
			{Field: "inputs.greeting", Old: new(""), New: new("Ahoy")},
		}},
		{Name: "initech", Action: ctlapi.InstallDecisionActionUnchanged},
		{Name: "umbrella", Action: ctlapi.InstallDecisionActionUpdate, Next: next(ctlapi.InstallDecisionNextDeploy), NextComponents: []string{"api", "web"}, Changes: []ctlapi.InstallFieldChange{
			{Field: "components.web.helm_values", New: new("replicas: 3\n")},
		}},
	}
	lines := append(installsync.Lines(items, false), installsync.Summary(items, false), installsync.Summary(items, true), installsync.Summary(nil, true))
	goldentest.File(t, "testdata/show.txt", strings.Join(append(lines, installsync.Next(items)...), "\n")+"\n")
	if installsync.Changes(items[3:4]) || installsync.Changes(items[1:2]) || !installsync.Changes(items) {
		t.Error("only what is made or updated is a change")
	}
}

// What is printed of an install declares what it is, whatever is in its values.
func TestFile(t *testing.T) {
	t.Parallel()
	const values = "image:\n  tag: \"{{ .nuon.inputs.inputs.greeting }}\" # \\o/\n"
	install := ctlapi.Install{
		Name: "acme", Customer: ctlapi.Ref{Name: "acme-corp"}, ApprovalOption: ctlapi.ApprovalOptionApproveAll,
		Labels: ctlapi.Labels{"ring": "canary", "example.com/tier": "a \"b\" \\ c"}, ComponentToggles: ctlapi.ComponentToggles{"web": false},
	}
	inputs := ctlapi.Inputs{
		Items: []ctlapi.InputValue{
			{Name: "greeting", From: ctlapi.InputValueFromSet, Value: new("tab\tnul\x00\n''' ü")}, {Name: "port", From: ctlapi.InputValueFromSet, Value: new("8080")},
			{Name: "motto", From: ctlapi.InputValueFromDefault, Value: new("Semper")}, {Name: "none", From: ctlapi.InputValueFromNone},
			{Name: "passphrase", From: ctlapi.InputValueFromSet, Sensitive: true}, {Name: "token", From: ctlapi.InputValueFromNone, Sensitive: true},
		},
		Components: &ctlapi.ComponentOverrides{"chart": {HelmValues: values}, "web": {TfVars: "size = 3"}},
	}
	text, err := installsync.File(install, inputs)
	if err != nil {
		t.Fatal(err)
	}
	goldentest.File(t, "testdata/file.toml", string(text))
	declared := installsync.Declare(folder(t, map[string]string{"installs/acme.toml": string(text)}))
	want := ctlapi.InstallsRequest{Installs: []ctlapi.DeclaredInstall{{
		Name: "acme", Customer: new("acme-corp"), ApprovalOption: new(ctlapi.ApprovalOptionApproveAll), Stack: new(ctlapi.StackKindLocal),
		Labels: &install.Labels, Inputs: &ctlapi.InputValues{"greeting": *inputs.Items[0].Value, "port": "8080"},
		ComponentToggles: &install.ComponentToggles, Components: inputs.Components,
	}}}
	if diff := cmp.Diff(want, declared.Request); diff != "" || len(declared.Findings) > 0 {
		t.Errorf("what the file declares (-want +got):\n%s%v", diff, declared.Findings)
	}

	text, err = installsync.File(ctlapi.Install{Name: "plain", Customer: ctlapi.Ref{Name: "plain"}, ApprovalOption: ctlapi.ApprovalOptionPrompt}, ctlapi.Inputs{})
	if want := "name            = \"plain\"\napproval_option = \"prompt\"\n"; err != nil || string(text) != want {
		t.Errorf("an install without anything: %s %v", text, err)
	}
}
