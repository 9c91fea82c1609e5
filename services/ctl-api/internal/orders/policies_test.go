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

func names(rules []policy.Rules) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Name)
	}
	return out
}
