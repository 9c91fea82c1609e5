package helm

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/client-go/rest"
)

const notesSuffix = "NOTES.txt"

// rendered is what a chart became.
type rendered struct {
	// Sources are the files that templates gave, by their name in the chart:
	// "templates/web.yaml", "charts/db/templates/db.yaml". Notes of subcharts
	// are left out, as Helm leaves them.
	Sources map[string]string
	// Manifest and Hooks are what Helm makes of them.
	Manifest string
	Hooks    []*release.Hook
	Notes    string
	CRDs     []chart.CRD
	// Values are all that templates saw: the chart's own, those of its subcharts,
	// and over them what was given.
	Values map[string]any
}

// render renders a chart the way `helm install` and `helm upgrade` do. config
// lets templates look things up on the server; nil lets them find nothing. The
// chart is changed: subcharts that are not wanted are taken out.
func render(c *chart.Chart, values map[string]any, options chartutil.ReleaseOptions, caps *chartutil.Capabilities, config *rest.Config) (rendered, error) {
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		return rendered{}, fmt.Errorf("the chart wants Kubernetes %s, the cluster has %s", want, caps.KubeVersion.String())
	}
	if err := action.CheckDependencies(c, c.Metadata.Dependencies); err != nil {
		return rendered{}, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return rendered{}, err
	}
	data, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, options, caps, false)
	if err != nil {
		return rendered{}, err
	}
	var e engine.Engine
	if config != nil {
		e = engine.New(config)
	}
	files, err := e.Render(c, data)
	if err != nil {
		return rendered{}, err
	}
	r, err := assemble(c, files)
	if err != nil {
		return rendered{}, err
	}
	r.Values, err = chartutil.CoalesceValues(c, values)
	return r, err
}

// assemble orders what an engine rendered as Helm does.
func assemble(c *chart.Chart, files map[string]string) (rendered, error) {
	r := rendered{Sources: map[string]string{}, CRDs: c.CRDObjects()}
	for name, text := range files {
		if strings.HasSuffix(name, notesSuffix) {
			if name == path.Join(c.Name(), "templates", notesSuffix) {
				r.Notes = text
				r.Sources[inChart(c, name)] = text
			}
			delete(files, name)
			continue
		}
		if strings.TrimSpace(text) != "" {
			r.Sources[inChart(c, name)] = text
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return rendered{}, err
	}
	var b bytes.Buffer
	for _, m := range manifests {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	r.Manifest, r.Hooks = b.String(), hooks
	return r, nil
}

// inChart is the name of a source without the name of the chart.
func inChart(c *chart.Chart, name string) string { return strings.TrimPrefix(name, c.Name()+"/") }

// unstable names the sources in which two renders of one chart differ.
func unstable(a, b rendered) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(a.Sources)) {
		if a.Sources[name] != b.Sources[name] {
			names = append(names, name)
		}
	}
	return names
}
