package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A chart with several copies of a dependency, which also brings a CRD, becomes
// what Helm makes of it.
func TestHelmChartWithCopiesOfADependency(t *testing.T) {
	t.Parallel()
	c := chart(t, nil)
	group := c.namespace + ".example.test"
	c.chart = map[string]string{}
	root := filepath.Join("helm", "testdata", "copies")
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		c.chart[name] = strings.ReplaceAll(string(data), "marks.example.com", group)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	crds := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() { _ = crds.Delete(context.WithoutCancel(t.Context()), "things."+group, metav1.DeleteOptions{}) })

	plan, _ := c.plan(t)
	summary := c.summary(t, plan)
	summary = slices.DeleteFunc(summary, func(line string) bool { return strings.Contains(line, "Release ") })
	want := []string{
		"create Namespace NS", "create CustomResourceDefinition.apiextensions.k8s.io things.NS.example.test (of the chart's crds/: it stays when the release is removed)",
		"create ConfigMap NS/web-part", "create ConfigMap NS/web-second", "create ConfigMap NS/web-third", "create ConfigMap NS/web-own",
	}
	slices.Sort(want)
	slices.Sort(summary)
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	c.applyJob(t, plan).must(t)
	for name, want := range map[string]string{
		"web-part": `{"color":"red","version":"0.1.0"}`, "web-second": `{"color":"blue","version":"0.1.0"}`, "web-third": `{"color":"green","version":"0.2.0"}`,
	} {
		if got := c.data(t, name); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	if _, result := c.plan(t); !result.NoChange {
		t.Error("the second plan has changes")
	}
}
