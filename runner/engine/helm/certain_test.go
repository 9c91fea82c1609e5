package helm

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/rest"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// What is wrong with a chart or its values stays wrong; what a template could not
// look up in the cluster may be there the next time.
func TestWrongChartsComeAgain(t *testing.T) {
	t.Parallel()
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(cluster.Close)
	const schema = `{"properties": {"replicas": {"type": "integer"}}}`
	for _, tc := range []struct {
		name, template, schema string
		values                 map[string]any
		want                   jobspec.Reason
		error                  string
	}{
		{name: "a template that does not parse", template: "a: {{ .Values.b ", want: jobspec.ReasonNeedsChange, error: "templates/a.yaml:1"},
		{name: "a value that is required", template: `a: {{ required "set b" .Values.b }}`, want: jobspec.ReasonNeedsChange, error: "set b"},
		{name: "a value that is not there", template: "a: {{ .Values.b.c }}", want: jobspec.ReasonNeedsChange, error: "nil pointer evaluating interface {}.c"},
		{name: "a template that gives no YAML", template: "a: b: c", want: jobspec.ReasonNeedsChange, error: "mapping values are not allowed"},
		{name: "a value that the schema refuses", template: "a: b", schema: schema, values: map[string]any{"replicas": "two"}, want: jobspec.ReasonNeedsChange, error: "replicas"},
		{name: "a cluster that does not answer a template", template: `a: {{ lookup "v1" "Secret" "a" "b" }}`, error: "error calling lookup"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/a.yaml": tc.template}
			if tc.schema != "" {
				files["values.schema.json"] = tc.schema
			}
			for name, text := range files {
				path := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := render(load(t, dir), tc.values, chartutil.ReleaseOptions{Name: "web", Namespace: "shop"}, chartutil.DefaultCapabilities, &rest.Config{Host: cluster.URL})
			if err == nil {
				t.Fatal("the chart was rendered")
			}
			p := &planning{job: &job.Job{Spec: jobspec.Spec{Resource: &jobspec.Resource{Kind: "component", Name: "web"}}}}
			f, ok := errors.AsType[*job.Failure](p.wrong(err))
			if !ok || f.Reason != tc.want || !strings.Contains(f.Message, tc.error) {
				t.Errorf("%v: %+v, want reason %q", err, f, tc.want)
			}
		})
	}
	p := &planning{job: &job.Job{}}
	if f, ok := errors.AsType[*job.Failure](p.wrong(job.Failf("", "the cluster is busy"))); !ok || f.Reason != "" {
		t.Errorf("an error of the cluster became %+v", f)
	}
}
