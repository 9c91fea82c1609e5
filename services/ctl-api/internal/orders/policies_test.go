package orders_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

// A plan is ordered with the policies that look at what it is of, and no others.
func TestPoliciesOfAPlan(t *testing.T) {
	t.Parallel()
	rule := func(name string, typ appconfig.PolicyType, components ...string) appconfig.Policy {
		return appconfig.Policy{Name: name, Type: typ, Engine: "opa", Components: components, Contents: place.Text{Contents: "package nuon"}}
	}
	app := &appconfig.App{Policies: []appconfig.Policy{
		rule("charts", appconfig.PolicyHelmChart), rule("web only", appconfig.PolicyHelmChart, "web"), rule("api only", appconfig.PolicyHelmChart, "api"),
		rule("cluster", appconfig.PolicyKubernetesCluster, "*"), rule("modules", appconfig.PolicyTerraformModule), rule("sandbox", appconfig.PolicySandbox),
		rule("older", "runner_job_terraform_deploy"), rule("scripts", "runner_job_action_workflow", "rotate"), rule("images", appconfig.PolicyContainerImage),
		rule("", appconfig.PolicyTerraformModule), rule("charts", appconfig.PolicyHelmChart),
	}}
	chart := appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "web"}}
	module := appconfig.Component{Name: "web", Type: appconfig.TypeTerraformModule, TerraformModule: &appconfig.TerraformModule{}}
	for _, tc := range []struct {
		name     string
		revision orders.Revision
		want     []string
	}{
		{"a chart", revision(t, chart), []string{"charts", "web only", "cluster", "charts (11)"}},
		{"a module", revision(t, module), []string{"modules", "older", "policy 10"}},
		{"the sandbox", orders.Revision{Sandbox: true, Spec: json.RawMessage(`{}`)}, []string{"sandbox"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.revision.App = app
			var spec jobspec.Spec
			if _, err := tc.revision.Fill(&spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(spec.Policies)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"scripts"}, names(orders.ActionPolicies(app, "rotate"))); diff != "" {
		t.Errorf("an action (-want +got):\n%s", diff)
	}
	if got := orders.ActionPolicies(app, "look"); got != nil {
		t.Errorf("another action: %v", names(got))
	}
}

// A build is ordered with the policies that look at images, but for those that need an
// install to be read.
func TestPoliciesOfABuild(t *testing.T) {
	t.Parallel()
	rule := func(name string, typ appconfig.PolicyType, text string, components ...string) appconfig.Policy {
		return appconfig.Policy{Name: name, Type: typ, Engine: "opa", Components: components, Contents: place.Text{Contents: text}}
	}
	const plain = "package nuon"
	app := &appconfig.App{Policies: []appconfig.Policy{
		rule("images", appconfig.PolicyContainerImage, plain), rule("web only", appconfig.PolicyContainerImage, plain, "web"), rule("api only", appconfig.PolicyContainerImage, plain, "api"),
		rule("of an install", appconfig.PolicyContainerImage, plain+"\n# {{ .nuon.install.name }}"), rule("charts", appconfig.PolicyHelmChart, plain),
	}}
	for _, tc := range []struct {
		kind appconfig.ComponentType
		want []string
	}{
		{appconfig.TypeContainerImage, []string{"images", "web only"}}, {appconfig.TypeDockerBuild, []string{"images", "web only"}}, {appconfig.TypeHelmChart, nil},
	} {
		rules := orders.BuildPolicies(app, &appconfig.Component{Name: "web", Type: tc.kind})
		if diff := cmp.Diff(tc.want, names(rules)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.kind, diff)
		}
		for _, r := range rules {
			if len(r.Components) > 0 {
				t.Errorf("%s is limited to %v: a build names no component", r.Name, r.Components)
			}
		}
	}
	if rules := orders.BuildPolicies(nil, &appconfig.Component{Type: appconfig.TypeDockerBuild}); len(rules) > 0 {
		t.Errorf("an app without policies: %v", names(rules))
	}
}

// The vendor's policies take signatures from the key that the app names, or from the machine
// that built.
func TestKeysOfAnImage(t *testing.T) {
	t.Parallel()
	key := &appconfig.BlockExtension{ImageKey: "pem"}
	for _, tc := range []struct {
		name      string
		component appconfig.Component
		want      []string
	}{
		{"signed by its makers", appconfig.Component{Name: "web", Type: appconfig.TypeContainerImage, Berth: key, ContainerImage: &appconfig.ContainerImage{Public: &appconfig.PublicImage{}}}, []string{"pem"}},
		{"of nobody", appconfig.Component{Name: "web", Type: appconfig.TypeContainerImage, ContainerImage: &appconfig.ContainerImage{Public: &appconfig.PublicImage{}}}, nil},
		{"built", appconfig.Component{Name: "web", Type: appconfig.TypeDockerBuild, DockerBuild: &appconfig.DockerBuild{}}, []string{"machine"}},
		{"no image", appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{}}, nil},
	} {
		of := revision(t, tc.component)
		of.SignedBy = "machine"
		var spec jobspec.Spec
		if _, err := of.Fill(&spec); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, spec.ImageKeys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func names(rules []policy.Rules) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Name)
	}
	return out
}
