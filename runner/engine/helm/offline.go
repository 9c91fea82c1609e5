package helm

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Texts are the files that a chart renders to, by name, with its CRDs.
type Texts map[string]string

// assumedVersion is the Kubernetes that charts are rendered for without one.
const assumedVersion = "v1.34.0"

// Offline renders a chart as an install would, without a cluster: lookups find
// nothing, kinds are those that Helm knows, the version is assumedVersion. Notes name the templates
// that would see something else in a cluster.
func Offline(src permissions.Source) (Texts, []permissions.Note, error) {
	c, err := loader.LoadDir(src.Chart)
	if err != nil {
		return nil, nil, err
	}
	values := map[string]any{}
	for i, text := range src.ValuesFiles {
		file := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			return nil, nil, fmt.Errorf("values file %d: %s", i+1, yamlError(err))
		}
		values = merge(values, file)
	}
	for _, path := range slices.Sorted(maps.Keys(src.Values)) {
		if err := set(values, path, src.Values[path]); err != nil {
			return nil, nil, fmt.Errorf("values.%s: %w", path, err)
		}
	}
	return renderOffline(c, values, chartutil.ReleaseOptions{Name: src.Release, Namespace: src.Namespace, Revision: 1, IsInstall: true})
}

// OfflineJob renders the chart of a job as Offline does, with the job's own values,
// for a rehearsal without a cluster. It also gives the namespace.
func OfflineJob(j *job.Job) (Texts, []permissions.Note, string, error) {
	in, err := renderInputs(j, true)
	if err != nil {
		return nil, nil, "", err
	}
	c, err := loader.LoadDir(j.In("artifact"))
	if err != nil {
		return nil, nil, in.Namespace, job.Wrongf("correct the chart and build it again", "the chart of %s cannot be read: %v", j.Subject(), err)
	}
	texts, notes, err := renderOffline(c, in.Values, chartutil.ReleaseOptions{Name: in.ReleaseName, Namespace: in.Namespace, Revision: 1, IsInstall: true})
	if err != nil {
		if len(notes) > 0 {
			return nil, nil, in.Namespace, job.Wrongf("rehearse it with a cluster", "the chart of %s %s (%s): %v", j.Subject(), jobspec.ReadsCluster, notes[0].From, err)
		}
		return nil, nil, in.Namespace, job.Wrongf("correct the chart or its values", "the chart of %s cannot be rendered: %v", j.Subject(), err)
	}
	return texts, notes, in.Namespace, nil
}

func renderOffline(c *chart.Chart, values map[string]any, options chartutil.ReleaseOptions) (Texts, []permissions.Note, error) {
	notes := clusterReaders(c, "")
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = chartutil.KubeVersion{Version: assumedVersion, Major: "1", Minor: "34"}
	r, err := render(c, values, options, caps, nil)
	if err != nil {
		return nil, notes, err
	}
	texts := Texts{}
	for name, text := range r.Sources {
		if !strings.HasSuffix(name, notesSuffix) {
			texts[name] = text
		}
	}
	for _, crd := range r.CRDs {
		texts[inChart(c, crd.Filename)] = string(crd.File.Data)
	}
	return texts, notes, nil
}

// asksCluster finds what a template asks the cluster.
var asksCluster = regexp.MustCompile(`\blookup\s+["$(.]|\.Capabilities\.(APIVersions|KubeVersion)`)

// clusterReaders names the templates of a chart and its subcharts that ask.
func clusterReaders(c *chart.Chart, below string) []permissions.Note {
	var notes []permissions.Note
	for _, t := range c.Templates {
		n := 0
		for line := range strings.Lines(string(t.Data)) {
			n++
			if found := asksCluster.FindString(line); found != "" {
				what := "the kinds and the version of the cluster; they were taken to be those of this Helm"
				if strings.HasPrefix(found, "lookup") {
					what = "objects of the cluster (lookup); it was rendered as if there were none"
				}
				notes = append(notes, permissions.Note{From: fmt.Sprintf("%s%s:%d", below, t.Name, n), Text: "this template reads " + what})
			}
		}
	}
	for _, dep := range c.Dependencies() {
		notes = append(notes, clusterReaders(dep, below+"charts/"+dep.Name()+"/")...)
	}
	return notes
}
