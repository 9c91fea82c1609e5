package orders

import (
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// helmChart says where releases are kept when the component does not: as
// runner.toml says, else in Secrets. They hold what was rendered, secrets
// included, and it is where Helm's own commands look.
func helmChart(spec *jobspec.Spec, c component) bool {
	h := c.HelmChart
	if h == nil {
		return false
	}
	driver := h.StorageDriver
	if runner := c.app.Runner; driver == "" && runner != nil {
		driver = runner.HelmDriver
	}
	if driver == "" {
		driver = appconfig.StorageSecret
	}
	spec.Kind = jobspec.KindHelmChart
	spec.HelmChart = &jobspec.HelmChart{
		ReleaseName: h.ChartName, Namespace: h.Namespace, CreateNamespace: h.InNewNamespace(),
		StorageDriver: driver, Values: h.Values, TakeOwnership: h.TakeOwnership, InstallValues: c.override.HelmValues,
	}
	for _, f := range h.ValuesFiles {
		spec.HelmChart.ValuesFiles = append(spec.HelmChart.ValuesFiles, f.Contents.Contents)
		spec.HelmChart.ValuesFileNames = append(spec.HelmChart.ValuesFileNames, f.Contents.File)
	}
	return true
}
