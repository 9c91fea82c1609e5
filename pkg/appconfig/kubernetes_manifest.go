package appconfig

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// KubernetesManifest holds the keys of a component of type kubernetes_manifest,
// in addition to those of every component. The objects are a manifest, or what
// kustomize makes of a source.
type KubernetesManifest struct {
	// One or more objects as YAML: their text, or a file.
	Manifest *place.Text `toml:"manifest" json:"manifest,omitempty" digest:"build" template:"true"`
	// The namespace of objects that name none.
	Namespace string `toml:"namespace" json:"namespace" digest:"deploy" rule:"required" template:"true"`
	// Makes the namespace when it is not there; Berth's own.
	CreateNamespace *bool `toml:"create_namespace" json:"create_namespace,omitempty" digest:"deploy" default:"true"`
	// Makes the objects with kustomize, from the component's source.
	Kustomize *Kustomize `toml:"kustomize" json:"kustomize,omitempty" digest:"build"`
}

// Kustomize is a manifest that kustomize makes.
type Kustomize struct {
	// The directory that holds kustomization.yaml, below the source's directory.
	Path string `toml:"path" json:"path" rule:"required"`
	// Patches over all of it: files, below path or else below the source's directory, or their text.
	Patches []string `toml:"patches" json:"patches,omitempty"`
	// Renders the charts that a kustomization names in helmCharts; without a helm program.
	EnableHelm bool `toml:"enable_helm" json:"enable_helm,omitempty" default:"false"`
	// Which files a kustomization may read: "rootOnly" those below its directory, "none" all of the source.
	LoadRestrictor string `toml:"load_restrictor" json:"load_restrictor,omitempty" enum:"none,rootOnly" default:"rootOnly"`
}

// InNewNamespace tells whether the namespace is made when it is not there.
func (m *KubernetesManifest) InNewNamespace() bool {
	return m.CreateNamespace == nil || *m.CreateNamespace
}

func (m *KubernetesManifest) check(ch *checker, c *Component) {
	switch {
	case m.Kustomize != nil && m.Manifest != nil:
		ch.Add(place.Error, place.CodeExclusive, c.At.Below("kustomize"), "only one of manifest and kustomize is possible")
	case m.Kustomize != nil:
		ch.source(c.At, c.SourceFile, c.sources())
	case m.Manifest == nil && c.SourceFile == "":
		if !ch.Misspelt(c.At, "manifest", "kustomize") {
			ch.Add(place.Error, place.CodeMissing, c.At, "manifest is missing")
		}
	}
}
