package rehearsal_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

// appOf is an app for a cloud, with one component whose values are given.
func appOf(t *testing.T, runner string, vars ...string) *appconfig.App {
	t.Helper()
	files := fstest.MapFS{
		"metadata.toml": {Data: []byte("version = \"v2\"\n")},
		"runner.toml":   {Data: []byte("runner_type = \"" + runner + "\"\n")},
		"stack.toml":    {Data: []byte(map[string]string{"aws": "type = \"aws-cloudformation\"\nname = \"s\"\ndescription = \"d\"\n", "gcp": "type = \"gcp-terraform\"\nname = \"s\"\ndescription = \"d\"\n"}[runner])},
		"inputs.toml":   {Data: []byte("[[group]]\nname = \"g\"\ndisplay_name = \"g\"\ndescription = \"g\"\n[[input]]\nname = \"size\"\ndisplay_name = \"s\"\ndescription = \"s\"\ngroup = \"g\"\ndefault = \"3\"\n")},
		"sandbox.toml": {Data: []byte("terraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"example/sandboxes\"\ndirectory = \"eks\"\nbranch = \"main\"\n" +
			"[vars]\nvpc_id = \"{{ .nuon.install_stack.outputs.vpc_id }}\"\n")},
		"components/db.toml": {Data: []byte("name = \"db\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"example/db\"\ndirectory = \".\"\nbranch = \"main\"\n")},
	}
	if runner == "azure" {
		delete(files, "stack.toml")
	}
	web := "name = \"web\"\ntype = \"helm_chart\"\nchart_name = \"web\"\n[public_repo]\nrepo = \"example/web\"\ndirectory = \".\"\nbranch = \"main\"\n[values]\n"
	for i, v := range vars {
		web += "v" + string(rune('a'+i)) + " = '" + v + "'\n"
	}
	files["components/web.toml"] = &fstest.MapFile{Data: []byte(web)}
	app, diags := check.Folder(files, appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatal(diags)
	}
	return app
}

// values renders the values of component web with what a rehearsal gives.
func values(t *testing.T, app *appconfig.App, r rehearsal.Result) []string {
	t.Helper()
	parts := interpolate.Parts{Inputs: map[string]any{"size": "3"}, CloudAccount: r.CloudAccount, Components: map[string]interpolate.Component{}}
	parts.Stack = interpolate.Stack{Populated: true, Outputs: r.Stack}
	parts.Sandbox = interpolate.Sandbox{Populated: true, Outputs: r.Sandbox}
	for name, outputs := range r.Components {
		parts.Components[name] = interpolate.Component{Populated: true, Outputs: outputs}
	}
	if domain, ok := r.Domain["public_domain"].(string); ok {
		parts.Domain.Public = domain
	}
	var out []string
	for _, block := range check.Blocks(app) {
		if block.Name != "web" {
			continue
		}
		previews, diags := check.Previews(app, block, interpolate.NewState(interpolate.NewTree(parts)), check.PreviewOptions{})
		for _, d := range diags {
			t.Errorf("does not render: %s", d)
		}
		for _, p := range previews {
			if p.Template {
				out = append(out, p.Value)
			}
		}
	}
	return out
}

func TestMadeUpValuesHaveTheFormOfTheirPlatform(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, runner, template, want string }{
		{"an account", "aws", "{{ .nuon.install_stack.outputs.account_id }}", "000000000000"},
		{"a region", "aws", "{{ .nuon.cloud_account.aws.region }}", "us-west-2"},
		{"a role", "aws", "{{ .nuon.install_stack.outputs.maintenance_iam_role_arn }}", "arn:aws:iam::000000000000:role/rehearsal-maintenance-iam-role-arn"},
		{"a VPC", "aws", "{{ .nuon.sandbox.outputs.vpc.id }}", "vpc-00000000000f65321"},
		{"subnets by number", "aws", "{{ len .nuon.sandbox.outputs.private_subnets }}", "3"},
		{"a list that is walked", "aws", "{{ range .nuon.sandbox.outputs.teams }}{{ . }} {{ end }}", "rehearsal-0-team rehearsal-1-team rehearsal-2-team "},
		{"a list of tables", "aws", "{{ range .nuon.sandbox.outputs.pools }}{{ .name }}:{{ .size }}{{ end }}", "rehearsal-pools-name:2"},
		{"zones", "aws", `{{ join "," .nuon.sandbox.outputs.azs }}`, "us-west-2a,us-west-2b,us-west-2c"},
		{"a cluster", "aws", "{{ .nuon.sandbox.outputs.cluster.name }}", "rehearsal-cluster-name"},
		{"an endpoint", "aws", "{{ .nuon.sandbox.outputs.cluster.endpoint }}", "https://cluster-endpoint.rehearsal.invalid"},
		{"a registry", "aws", "{{ .nuon.sandbox.outputs.ecr.repository_url }}", "000000000000.dkr.ecr.us-west-2.amazonaws.com/rehearsal"},
		{"the older alias", "aws", "{{ .nuon.install.sandbox.outputs.account.region }}", "us-west-2"},
		{"a nested stack", "aws", "{{ .nuon.install_stack.outputs.custom_nested_stacks.db.host }}", "db-host.rehearsal.invalid"},
		{"a component", "aws", "{{ .nuon.components.db.outputs.port }}", "5432"},
		{"a domain", "aws", "{{ .nuon.install.public_domain }}", "domain-public-domain.rehearsal.invalid"},
		{"a number that is compared", "aws", "{{ if gt .nuon.sandbox.outputs.nodes 0 }}many{{ end }}", "many"},
		{"a text that is split", "aws", `{{ index (splitList "," .nuon.sandbox.outputs.pair) 1 }}`, "rehearsal-pair-1"},
		{"a computed name", "aws", `{{ index .nuon.sandbox.outputs "by-name" }}`, "rehearsal-by-name"},
		{"a project", "gcp", "{{ .nuon.cloud_account.gcp.project_id }}", "rehearsal-000000"},
		{"a network", "gcp", "{{ .nuon.sandbox.outputs.network_self_link }}", "projects/rehearsal-000000/global/networks/rehearsal"},
		{"a location", "azure", "{{ .nuon.cloud_account.azure.location }}", "eastus"},
		{"a tenant", "azure", "{{ .nuon.sandbox.outputs.tenant_id }}", "00000000-0000-4000-8000-000000681438"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			app := appOf(t, tt.runner, tt.template)
			platform := rehearsal.PlatformOf(app)
			if string(platform) != tt.runner {
				t.Errorf("platform %s, want %s", platform, tt.runner)
			}
			got := values(t, app, rehearsal.Complete(app, rehearsal.Rehearsal{Platform: platform}))
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNamedWins(t *testing.T) {
	t.Parallel()
	app := appOf(t, "aws", "{{ .nuon.sandbox.outputs.cluster.name }} {{ .nuon.sandbox.outputs.cluster.endpoint }} {{ .nuon.install_stack.outputs.vpc_id }} {{ .nuon.sandbox.outputs.az }}")
	r := rehearsal.Rehearsal{
		Platform: rehearsal.AWS,
		Given:    rehearsal.Outputs{Stack: map[string]any{"vpc_id": "vpc-mine", "region": "eu-west-1"}},
		Recorded: rehearsal.Outputs{Stack: map[string]any{"vpc_id": "vpc-old"}, Sandbox: map[string]any{"cluster": map[string]any{"name": "prod"}}},
	}
	got := rehearsal.Complete(app, r)
	if diff := cmp.Diff([]string{"prod https://cluster-endpoint.rehearsal.invalid vpc-mine eu-west-1a"}, values(t, app, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sources := map[string]rehearsal.Source{}
	for _, o := range got.Origins {
		sources[o.Path] = o.Source
	}
	for path, want := range map[string]rehearsal.Source{
		"install_stack.outputs.vpc_id": rehearsal.Given, "sandbox.outputs.cluster.name": rehearsal.Recorded,
		"sandbox.outputs.cluster.endpoint": rehearsal.MadeUp, "install_stack.outputs.account_id": rehearsal.MadeUp, "cloud_account.aws.region": rehearsal.MadeUp,
	} {
		if sources[path] != want {
			t.Errorf("%s is %q, want %q", path, sources[path], want)
		}
	}
	for range 20 {
		if diff := cmp.Diff(got, rehearsal.Complete(app, r)); diff != "" {
			t.Fatalf("another time it is something else:\n%s", diff)
		}
	}
	// What is given under a name that others read below is left as it is.
	whole := rehearsal.Complete(app, rehearsal.Rehearsal{Platform: rehearsal.AWS, Given: rehearsal.Outputs{Sandbox: map[string]any{"cluster": "one"}}})
	if whole.Sandbox["cluster"] != "one" {
		t.Errorf("the sandbox gives %v", whole.Sandbox)
	}
}

func TestProblemsOfOutputs(t *testing.T) {
	t.Parallel()
	app := appOf(t, "aws", "x")
	o := rehearsal.Outputs{Components: map[string]map[string]any{"db": {}, "bd": {}}, Sandbox: map[string]any{"fine-name": 1, "not a name": 1}}
	if got := strings.Join(o.Problems(app), "; "); got != `"not a name" cannot be the name of an output of a sandbox; the app has no component "bd"` {
		t.Error(got)
	}
}
