package orders

import (
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// helmChart says where releases are kept when the component does not: as
// runner.toml says, else in Secrets. They hold what was rendered, secrets
// included, and it is where Helm's own commands look.
func helmChart(c component) (work jobspec.Work, deployable bool) {
	h := c.HelmChart
	if h == nil {
		return work, false
	}
	driver := h.StorageDriver
	if runner := c.app.Runner; driver == "" && runner != nil {
		driver = runner.HelmDriver
	}
	if driver == "" {
		driver = appconfig.StorageSecret
	}
	chart := &jobspec.HelmChart{
		ReleaseName: h.ChartName, Namespace: h.Namespace, CreateNamespace: h.InNewNamespace(),
		StorageDriver: driver, Values: h.Values, TakeOwnership: h.TakeOwnership, InstallValues: c.override.HelmValues,
		MaxHistory: h.HistoryLimit, Atomic: h.Atomic, Cluster: cluster(c.app, c.KubernetesContext),
	}
	if h.CRDs != appconfig.CRDsInstall {
		chart.CRDs = h.CRDs
	}
	for _, f := range h.ValuesFiles {
		chart.ValuesFiles = append(chart.ValuesFiles, f.Contents.Contents)
		chart.ValuesFileNames = append(chart.ValuesFileNames, f.Contents.File)
	}
	work.HelmChart = chart
	return work, true
}

// probeChart leaves the values out: what is deployed is in the cluster.
func probeChart(work *jobspec.Work) { work.HelmChart.Values, work.HelmChart.ValuesFiles = nil, nil }
