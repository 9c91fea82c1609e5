package helm

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// charts are those of Helm's own tests, which lie in its module, and the one
// that `helm create` makes.
func charts(t *testing.T) map[string]string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v3")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("find the module of Helm: %v\n%s", err, stderr.Bytes())
	}
	root := strings.TrimSpace(string(out))
	found := map[string]string{}
	for _, name := range []string{
		"alpine", "subchart", "object-order", "chart-with-lib-dep", "chart-with-template-lib-dep", "chart-with-subchart-notes",
		"chart-with-secret", "chart-with-only-crds", "issue-9027", "empty",
	} {
		found[name] = filepath.Join(root, "cmd/helm/testdata/testcharts", name)
	}
	dir := t.TempDir()
	if _, err := chartutil.Create("created", dir); err != nil {
		t.Fatal(err)
	}
	found["created"] = filepath.Join(dir, "created")
	found["marks"] = filepath.Join("testdata", "marks")
	found["copies"] = filepath.Join("testdata", "copies")
	found["shop"] = "../../../examples/shop/src/chart"
	return found
}

func load(t *testing.T, dir string) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// helmInstall is what Helm itself makes of a chart.
func helmInstall(t *testing.T, c *chart.Chart, values map[string]any) *release.Release {
	t.Helper()
	in := action.NewInstall(&action.Configuration{Log: t.Logf})
	in.ReleaseName, in.Namespace, in.Replace = "web", "shop", true
	in.DryRun, in.DryRunOption, in.ClientOnly, in.KubeVersion = true, "client", true, &caps().KubeVersion
	r, err := in.Run(c, values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func caps() *chartutil.Capabilities {
	c := chartutil.DefaultCapabilities.Copy()
	c.KubeVersion = chartutil.KubeVersion{Version: "v1.34.4", Major: "1", Minor: "34"}
	return c
}

func values() map[string]any {
	return map[string]any{
		"replicaCount": 2, "image": map[string]any{"ref": "shop/web:1"},
		"ingress": map[string]any{"enabled": true}, "global": map[string]any{"note": "{{ not a template }}"},
	}
}

// What we render is what Helm renders, and a literal chart of it becomes the
// same release again: by bytes, with hooks, notes and stored values.
func TestRenderAndLiteralAreThoseOfHelm(t *testing.T) {
	t.Parallel()
	for name, dir := range charts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := helmInstall(t, load(t, dir), values())
			options := chartutil.ReleaseOptions{Name: "web", Namespace: "shop", Revision: 1, IsInstall: true}
			source := load(t, dir)
			got, err := render(source, values(), options, caps(), nil)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "render", want, got.Manifest, got.Hooks, got.Notes)

			pin := throughFile(t, pinned{Chart: *source.Metadata, Sources: got.Sources, CRDs: crdFiles(got.CRDs), AllValues: got.Values})
			made := literal(pin.Chart, pin.Sources, pin.CRDs, pin.AllValues)
			again := helmInstall(t, made, values())
			same(t, "release of the literal chart", want, again.Manifest, again.Hooks, again.Info.Notes)
			if diff := cmp.Diff(stored(t, want.Chart.Metadata), stored(t, again.Chart.Metadata)); diff != "" {
				t.Errorf("Chart.yaml (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(stored(t, allValues(t, want)), stored(t, allValues(t, again))); diff != "" {
				t.Errorf("helm get values --all (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(len(want.Chart.CRDObjects()), len(again.Chart.CRDObjects())); diff != "" {
				t.Errorf("number of CRDs (-want +got):\n%s", diff)
			}
		})
	}
}

func same(t *testing.T, what string, want *release.Release, manifest string, hooks []*release.Hook, notes string) {
	t.Helper()
	if diff := cmp.Diff(want.Manifest, manifest); diff != "" {
		t.Errorf("manifest of the %s (-helm +ours):\n%s", what, diff)
	}
	if diff := cmp.Diff(hooksOf(want.Hooks), hooksOf(hooks)); diff != "" {
		t.Errorf("hooks of the %s (-helm +ours):\n%s", what, diff)
	}
	if want.Info.Notes != notes {
		t.Errorf("notes of the %s: %q, Helm has %q", what, notes, want.Info.Notes)
	}
}

// throughFile is what an apply reads of what a plan pinned.
func throughFile(t *testing.T, p pinned) pinned {
	t.Helper()
	j := &job.Job{Dir: t.TempDir()}
	if err := job.WriteJSON(j.In("pinned", pinnedFile), p); err != nil {
		t.Fatal(err)
	}
	p, err := readPinned(j, "pinned")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stored is a value as a release keeps it.
func stored(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func allValues(t *testing.T, r *release.Release) map[string]any {
	t.Helper()
	v, err := chartutil.CoalesceValues(r.Chart, r.Config)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestUnstableRendersAreNamed(t *testing.T) {
	t.Parallel()
	var renders [2]rendered
	for i := range renders {
		c := &chart.Chart{Metadata: &chart.Metadata{Name: "c", Version: "1.0.0", APIVersion: "v2"}}
		c.Templates = []*chart.File{
			{Name: "templates/steady.yaml", Data: []byte("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n")},
			{Name: "templates/random.yaml", Data: []byte("kind: Secret\napiVersion: v1\nmetadata: {name: {{ randAlphaNum 20 }}}\n")},
		}
		var err error
		renders[i], err = render(c, nil, chartutil.ReleaseOptions{Name: "r", Namespace: "n"}, caps(), nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"templates/random.yaml"}, unstable(renders[0], renders[1])); diff != "" {
		t.Errorf("unstable sources (-want +got):\n%s", diff)
	}
}

func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		metadata chart.Metadata
		schema   string
		want     string
	}{
		{name: "another Kubernetes", metadata: chart.Metadata{KubeVersion: ">= 9.0"}, want: "the chart wants Kubernetes >= 9.0"},
		{name: "a chart that was not packed", metadata: chart.Metadata{Dependencies: []*chart.Dependency{{Name: "db", Version: "1"}}}, want: "missing in charts/ directory: db"},
		{name: "values against the schema", schema: `{"type":"object","required":["host"]}`, want: "host"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.metadata.Name, tc.metadata.Version, tc.metadata.APIVersion = "c", "1.0.0", "v2"
			c := &chart.Chart{Metadata: &tc.metadata, Schema: []byte(tc.schema)}
			if tc.schema == "" {
				c.Schema = nil
			}
			_, err := render(c, nil, chartutil.ReleaseOptions{}, caps(), nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// What the install says reaches the objects, over all that the app says.
func TestValuesOfTheInstallReachTheObjects(t *testing.T) {
	t.Parallel()
	c := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"},
		Values:    map[string]any{"size": "of the chart", "color": "of the chart"},
		Templates: []*chart.File{{Name: "templates/map.yaml", Data: []byte("kind: ConfigMap\ndata: {size: {{ .Values.size }}, color: {{ .Values.color }}}\n")}},
	}
	spec := &jobspec.HelmChart{
		ValuesFiles: []string{"size: of the file\ncolor: of the file"}, Values: map[string]string{"size": "of values"}, InstallValues: "size: of {{ .nuon.name }}",
	}
	values, err := renderValues(valuesJob(spec), spec)
	if err != nil {
		t.Fatal(err)
	}
	r, err := render(c, values, chartutil.ReleaseOptions{Name: "web", IsInstall: true}, caps(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "data: {size: of acme, color: of the file}"; !strings.Contains(r.Manifest, want) {
		t.Errorf("rendered\n%swant %s", r.Manifest, want)
	}
}
