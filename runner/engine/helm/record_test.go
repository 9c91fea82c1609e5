package helm

import (
	"context"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/charttest"
	"github.com/berth-dev/berth/runner/engine/job"
)

// configMaps of a cluster know how large the release is that was written last.
type configMaps struct {
	corev1client.ConfigMapInterface
	size int
}

func (m *configMaps) Create(_ context.Context, obj *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	m.size = len(obj.Data["release"])
	return obj, nil
}

func (m *configMaps) Update(_ context.Context, obj *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	m.size = len(obj.Data["release"])
	return obj, nil
}

func (m *configMaps) List(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) {
	return &corev1.ConfigMapList{}, nil
}

// install lets Helm install a chart into a cluster that takes everything, and
// tells how large the record of the release became.
func install(t *testing.T, c *chart.Chart, values map[string]any, labels map[string]string, wrap func(driver.Driver) driver.Driver) (*release.Release, int) {
	t.Helper()
	into := &configMaps{}
	in := action.NewInstall(&action.Configuration{
		Log: t.Logf, Capabilities: caps(), KubeClient: &kubefake.PrintingKubeClient{Out: io.Discard},
		Releases: storage.Init(wrap(driver.NewConfigMaps(into))),
	})
	in.ReleaseName, in.Namespace, in.SkipCRDs, in.Labels = "web", "shop", true, labels
	r, err := in.Run(c, values)
	if err != nil {
		t.Fatal(err)
	}
	return r, into.size
}

// ours installs what an apply would of a chart, and tells the size of the record
// as it is stored and as a plan expects it.
func ours(t *testing.T, c *chart.Chart, values map[string]any) (stored, planned int) {
	t.Helper()
	got, err := render(c, values, chartutil.ReleaseOptions{Name: "web", Namespace: "shop", Revision: 1, IsInstall: true}, caps(), nil)
	if err != nil {
		t.Fatal(err)
	}
	pin := throughFile(t, pinned{Chart: *c.Metadata, Sources: got.Sources, CRDs: crdFiles(got.CRDs), AllValues: got.Values})
	made := literal(pin.Chart, pin.Sources, pin.CRDs, pin.AllValues)
	_, stored = install(t, made, values, map[string]string{labelChange: "chg_1"}, func(d driver.Driver) driver.Driver {
		return fenced{Driver: d, held: func() error { return nil }}
	})
	p := planning{job: &job.Job{}, in: inputs{ReleaseName: "web", Namespace: "shop", Values: values}, chart: c, rendered: got}
	planned, err = recordSize(p.record())
	if err != nil {
		t.Fatal(err)
	}
	return stored, planned
}

// A release takes no more room than Helm's own would, so what Helm installs can
// be installed: also charts with more CRDs than one object of the API holds.
func TestRecordIsNoLargerThanThatOfHelm(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"CRDs in crds/ of a subchart":      charttest.Stack("record"),
		"CRDs in templates/ of a subchart": charttest.OperatorCRDs("record", charttest.ManyCRDs),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, helm := install(t, charttest.Load(t, files), nil, nil, func(d driver.Driver) driver.Driver { return d })
			stored, planned := ours(t, charttest.Load(t, files), nil)
			t.Logf("record of Helm %d bytes, ours %d, expected by the plan %d", helm, stored, planned)
			if helm < 300<<10 || helm >= maxRecord {
				t.Fatalf("the record of Helm has %d bytes: it is no chart of the kind that this is about", helm)
			}
			// Both have times in them, whose digits pack differently.
			const times = 64
			if stored > helm+times {
				t.Errorf("the record has %d bytes, that of Helm %d", stored, helm)
			}
			if planned > stored || planned+recordReserve < stored {
				t.Errorf("the plan expects %d bytes, stored are %d", planned, stored)
			}
		})
	}
}

// What does not fit fails the plan, with what to do.
func TestPlanRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		crds int
		want string
	}{
		{crds: charttest.ManyCRDs},
		{
			crds: charttest.TooManyCRDs,
			want: "release web is too large to be stored: its record has 1207 KiB, and Kubernetes takes 1024 KiB in one object; the largest templates of the chart are " +
				"charts/crds/templates/kind00.yaml (49 KiB rendered), charts/crds/templates/kind01.yaml (49 KiB rendered), charts/crds/templates/kind02.yaml (49 KiB rendered)",
		},
	} {
		c := charttest.Load(t, charttest.OperatorCRDs("record", tc.crds))
		got, err := render(c, nil, chartutil.ReleaseOptions{Name: "web"}, caps(), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := planning{job: &job.Job{Spec: jobspec.Spec{}}, in: inputs{ReleaseName: "web"}, chart: c, rendered: got}
		said := ""
		if err := p.fits(); err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff(tc.want, said); diff != "" {
			t.Errorf("a plan of %d CRDs says (-want +got):\n%s", tc.crds, diff)
		}
	}
}

// The releases that Helm itself made keep their chart.
func TestRecordOfHelmStaysAsItIs(t *testing.T) {
	t.Parallel()
	theirs := &release.Release{Name: "web", Chart: &chart.Chart{Templates: []*chart.File{{Name: "templates/x.yaml"}}}}
	if got := record(theirs); got != theirs {
		t.Errorf("the record is %+v", got)
	}
}
