package helm

import (
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// literal makes a chart that renders to exactly what was rendered: one template
// per source, with nothing in it that a template engine would act on. Name,
// version and the rest of Chart.yaml are the chart's own, so a release of it
// looks as one of the chart. Its default values are all that templates saw, so
// `helm get values --all` tells the same although there are no subcharts.
func literal(metadata chart.Metadata, sources map[string]string, crds []crd, values map[string]any) *chart.Chart {
	c := &chart.Chart{Metadata: &metadata, Values: values}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		c.Templates = append(c.Templates, &chart.File{Name: name, Data: []byte(escapeTemplate(sources[name]))})
	}
	for _, f := range crds {
		c.Files = append(c.Files, &chart.File{Name: f.Name, Data: []byte(f.Data)})
	}
	return c
}

// escapeTemplate makes a text into a template that renders to it. An opening
// mark is all that a template engine looks for; what follows it is text then.
func escapeTemplate(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }
