package appconfig

// KubernetesManifest holds the keys of a component of type kubernetes_manifest.
type KubernetesManifest struct {
	// Manifest is one or more objects as YAML. It is what the build makes an
	// artifact of.
	Manifest  *Text  `toml:"manifest" json:"manifest,omitempty" digest:"build" template:"true"`
	Namespace string `toml:"namespace" json:"namespace" digest:"deploy" rule:"required" template:"true"`
	// CreateNamespace is Berth's own addition; the namespace is made unless it is
	// false.
	CreateNamespace *bool      `toml:"create_namespace" json:"create_namespace,omitempty" digest:"deploy"`
	Kustomize       *Kustomize `toml:"kustomize" json:"kustomize,omitempty" digest:"build"`
}

// Kustomize is a manifest that kustomize makes.
type Kustomize struct {
	Path           string   `toml:"path" json:"path" rule:"required"`
	Patches        []string `toml:"patches" json:"patches,omitempty"`
	EnableHelm     bool     `toml:"enable_helm" json:"enable_helm,omitempty"`
	LoadRestrictor string   `toml:"load_restrictor" json:"load_restrictor,omitempty"`
}

// InNewNamespace tells whether the namespace is made when it is not there.
func (m *KubernetesManifest) InNewNamespace() bool {
	return m.CreateNamespace == nil || *m.CreateNamespace
}

func (m *KubernetesManifest) check(ch *checker, c *Component) {
	switch {
	case m.Kustomize != nil && m.Manifest != nil:
		ch.add(Error, CodeExclusive, c.At.key("kustomize"), "only one of manifest and kustomize is possible")
	case m.Kustomize != nil:
		ch.unsupported(c.At.key("kustomize"), "a manifest made by kustomize is")
	case m.Manifest == nil:
		ch.add(Error, CodeMissing, c.At, "manifest is missing")
	}
}
