package orders_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/rehearsal"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

func TestRehearse(t *testing.T) {
	t.Parallel()
	made := rehearsal.Result{
		Outputs: rehearsal.Outputs{
			Sandbox:    map[string]any{"cluster": map[string]any{"name": "prod", "arn": "arn"}},
			Components: map[string]map[string]any{"db": {"host": "db.example.com"}},
		},
		Origins: []rehearsal.Origin{
			{Path: "components.db.outputs.host", Source: rehearsal.Given}, {Path: "sandbox.outputs.cluster.arn", Source: rehearsal.MadeUp},
			{Path: "sandbox.outputs.cluster.name", Source: rehearsal.Recorded},
		},
	}
	module, chart := &jobspec.TerraformModule{}, &jobspec.HelmChart{}
	for _, tt := range []struct {
		name     string
		resource jobspec.Resource
		spec     jobspec.Spec
		want     jobspec.Spec
		stage    orders.Stage
	}{
		{"a sandbox", jobspec.Resource{Kind: "sandbox", Name: "sandbox"}, jobspec.Spec{Kind: jobspec.KindTerraformModule, Work: jobspec.Work{TerraformModule: module}},
			jobspec.Spec{Kind: jobspec.KindRehearsal, Work: jobspec.Work{TerraformModule: module}, Rehearsal: &jobspec.Rehearsal{StandIn: true, Outputs: made.Sandbox, MadeUp: []string{"cluster"}}}, orders.Stage{Platform: rehearsal.AWS}},
		{"a module", jobspec.Resource{Kind: "component", Name: "db"}, jobspec.Spec{Kind: jobspec.KindTerraformModule, Work: jobspec.Work{TerraformModule: module}},
			jobspec.Spec{Kind: jobspec.KindRehearsal, Work: jobspec.Work{TerraformModule: module}, Rehearsal: &jobspec.Rehearsal{Outputs: made.Components["db"]}}, orders.Stage{Platform: rehearsal.AWS}},
		{"a chart, which is real", jobspec.Resource{Kind: "component", Name: "web"}, jobspec.Spec{Kind: jobspec.KindHelmChart, Work: jobspec.Work{HelmChart: chart}},
			jobspec.Spec{Kind: jobspec.KindHelmChart, Work: jobspec.Work{HelmChart: chart}}, orders.Stage{Platform: rehearsal.AWS}},
		{"a chart without a cluster", jobspec.Resource{Kind: "component", Name: "web"}, jobspec.Spec{Kind: jobspec.KindHelmChart, Work: jobspec.Work{HelmChart: chart}},
			jobspec.Spec{Kind: jobspec.KindRehearsal, Work: jobspec.Work{TerraformModule: module}, Rehearsal: &jobspec.Rehearsal{Chart: chart}}, orders.Stage{NoCluster: true}},
		{"the sandbox of an app for no cloud", jobspec.Resource{Kind: "sandbox", Name: "sandbox"}, jobspec.Spec{Kind: jobspec.KindTerraformModule, Work: jobspec.Work{TerraformModule: module}},
			jobspec.Spec{Kind: jobspec.KindRehearsal, Work: jobspec.Work{TerraformModule: module}, Rehearsal: &jobspec.Rehearsal{Outputs: made.Sandbox, MadeUp: []string{"cluster"}}}, orders.Stage{Platform: rehearsal.None}},
		{"a stand-in", jobspec.Resource{Kind: "component", Name: "job"}, jobspec.Spec{Kind: jobspec.KindTerraformModule, Work: jobspec.Work{TerraformModule: module}},
			jobspec.Spec{Kind: jobspec.KindRehearsal, Work: jobspec.Work{TerraformModule: module}, Rehearsal: &jobspec.Rehearsal{Why: "no such type"}},
			orders.Stage{App: &appconfig.App{Components: []appconfig.Component{{Name: "job", Berth: &appconfig.BlockExtension{StandIn: "no such type"}}}}}},
	} {
		got := tt.spec
		tt.stage.Made = made
		orders.Rehearse(&got, tt.resource, tt.stage)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
