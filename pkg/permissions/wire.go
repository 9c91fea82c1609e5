package permissions

// Source is what an engine needs to render one component without a cluster. The
// templates of the app folder are rendered already.
type Source struct {
	Component string `json:"component"`
	Namespace string `json:"namespace"`

	// Manifest is the text of a manifest, File what it is called.
	Manifest string `json:"manifest,omitempty"`
	File     string `json:"file,omitempty"`

	// Chart is the directory of a chart, with its dependencies; the rest is as a
	// component has it.
	Chart       string            `json:"chart,omitempty"`
	Release     string            `json:"release,omitempty"`
	ValuesFiles []string          `json:"values_files,omitempty"`
	Values      map[string]string `json:"values,omitempty"`
}

// Rendered is what came of a Source.
type Rendered struct {
	Component string           `json:"component"`
	Objects   []RenderedObject `json:"objects"`
	Unknown   []Note           `json:"unknown"`
}

// RenderedObject is one object, and where it comes from: a file, or file:line.
type RenderedObject struct {
	From string         `json:"from"`
	Body map[string]any `json:"body"`
}
