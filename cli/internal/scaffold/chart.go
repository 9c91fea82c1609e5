package scaffold

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// chartFiles make a component of a Helm chart.
func chartFiles(abs, from string) ([]File, error) {
	data, err := os.ReadFile(filepath.Join(from, "Chart.yaml"))
	if err != nil {
		return nil, fmt.Errorf("%s is not a Helm chart: %w", from, err)
	}
	var chart struct {
		Name string `json:"name"`
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(from, "Chart.yaml"), err)
	}
	if chart.Name == "" {
		return nil, fmt.Errorf("%s does not name the chart", filepath.Join(from, "Chart.yaml"))
	}
	s, err := sourceAt(abs, from, componentName(chart.Name), isLeftOut)
	if err != nil {
		return nil, err
	}
	component := text("components/"+s.name+".toml",
		"# helm",
		"# Starts from the chart's own values. Set here what differs between installs, such as:",
		"#",
		"#   [values]",
		`#   "replicaCount" = "{{ .nuon.inputs.inputs.replicas }}"`,
		"name       = "+quoted(s.name),
		`type       = "helm_chart"`,
		"chart_name = "+quoted(s.name),
		`namespace  = "{{ .nuon.sandbox.outputs.namespace }}"`,
		"",
		"[berth]",
		"local_source = "+quoted(s.local))
	return append([]File{component}, s.files...), nil
}
