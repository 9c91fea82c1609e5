package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/charttest"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// ofChart gives a component with a chart of package charttest, whose CRDs go
// when the test ends.
func ofChart(t *testing.T, files func(name string) map[string]string) *charted {
	t.Helper()
	c := chart(t, nil)
	c.chart = files(c.namespace)
	crds := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() {
		for i := range charttest.TooManyCRDs {
			_ = crds.Delete(context.WithoutCancel(t.Context()), crdName(c, i), metav1.DeleteOptions{})
		}
	})
	return c
}

func crdName(c *charted, i int) string {
	return fmt.Sprintf("kind%02ds.%s.charts.berth.test", i, c.namespace)
}

func (c *charted) hasCRD(t *testing.T, i int) bool {
	t.Helper()
	found, err := c.Get(t.Context(), kube.Ref{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: crdName(c, i)})
	if err != nil {
		t.Fatal(err)
	}
	return found != nil
}

func operatorCRDs(number int) func(string) map[string]string {
	return func(name string) map[string]string { return charttest.OperatorCRDs(name, number) }
}

// Charts whose CRDs alone fill most of what one object of the API holds are
// installed, upgraded and removed like all others, as by Helm.
func TestHelmChartsWithManyCRDs(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]func(string) map[string]string{
		"in crds/ of a subchart":      charttest.Stack,
		"in templates/ of a subchart": operatorCRDs(charttest.ManyCRDs),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := ofChart(t, files)
			c.spec.StorageDriver = "configmap"
			c.roll(t)
			if !c.hasCRD(t, charttest.ManyCRDs-1) {
				t.Error("the last CRD is not there")
			}
			if _, result := c.plan(t); !result.NoChange {
				t.Error("the second plan has changes")
			}
			c.chart["values.yaml"] += "more: true\n"
			c.chart["templates/more.yaml"] = oneMap
			c.values = map[string]string{"value": "two"}
			c.roll(t)
			wantContains(t, "helm history", c.helm(t, "history", "web"), "superseded")
			c.helm(t, "rollback", "web", "1")
			plan, _ := c.planDestroy(t)
			c.applyJob(t, plan).must(t)
		})
	}
}

func TestHelmChartThatIsTooLarge(t *testing.T) {
	t.Parallel()
	c := ofChart(t, operatorCRDs(charttest.TooManyCRDs))
	r := c.planJob(t).run(t)
	if r.Outcome != jobspec.OutcomeFailed {
		t.Fatalf("outcome %s: %s", r.Outcome, r.Error)
	}
	wantContains(t, "error", r.Error, "release web is too large to be stored: its record has 12")
	if !strings.Contains(r.Remedy, "kubernetes_manifest") {
		t.Errorf("remedy %q", r.Remedy)
	}
	if c.get(t, "Namespace/"+c.namespace) != nil || c.hasCRD(t, 0) {
		t.Error("something was made before the size was known")
	}
}
