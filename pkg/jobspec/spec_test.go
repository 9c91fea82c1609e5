package jobspec_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Only a component of an install can have values of the install's own.
func TestValuesOfTheInstallAreForComponents(t *testing.T) {
	t.Parallel()
	plan := func(kind string, own string) jobspec.Spec {
		return jobspec.Spec{
			Version: jobspec.Version, JobID: "job_1", OrgID: "org_1", InstallID: "ins_1", ChangeID: "chg_1", Kind: jobspec.KindTerraformModule,
			Operation: jobspec.OperationPlan, Resource: &jobspec.Resource{ID: "res_1", Kind: kind, Name: "web"}, Artifact: &jobspec.Artifact{},
			Work: jobspec.Work{TerraformModule: &jobspec.TerraformModule{InstallVars: own}}, TimeoutSeconds: 1,
		}
	}
	chart := plan("sandbox", "")
	chart.Kind, chart.TerraformModule, chart.HelmChart = jobspec.KindHelmChart, nil, &jobspec.HelmChart{InstallValues: "a: 1"}
	for _, tt := range []struct {
		name string
		spec jobspec.Spec
		want string
	}{
		{"a component", plan("component", "a = 1"), ""},
		{"a sandbox without any", plan("sandbox", ""), ""},
		{"a sandbox", plan("sandbox", "a = 1"), "only for a component"},
		{"a chart that is no component", chart, "only for a component"},
	} {
		err := tt.spec.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
