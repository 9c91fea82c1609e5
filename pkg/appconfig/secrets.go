package appconfig

// Secret is a value that the customer keeps in its own secret manager.
type Secret struct {
	At Place `toml:"-" json:"at" digest:"-"`

	Name                      string       `toml:"name" json:"name" rule:"required"`
	DisplayName               string       `toml:"display_name" json:"display_name,omitempty"`
	Description               string       `toml:"description" json:"description" rule:"required"`
	Required                  bool         `toml:"required" json:"required,omitempty"`
	AutoGenerate              bool         `toml:"auto_generate" json:"auto_generate,omitempty"`
	Default                   *string      `toml:"default" json:"default,omitempty"`
	Format                    string       `toml:"format" json:"format,omitempty"`
	KubernetesSync            bool         `toml:"kubernetes_sync" json:"kubernetes_sync,omitempty"`
	KubernetesSecretNamespace string       `toml:"kubernetes_secret_namespace" json:"kubernetes_secret_namespace,omitempty" template:"true"`
	KubernetesSecretName      string       `toml:"kubernetes_secret_name" json:"kubernetes_secret_name,omitempty" template:"true"`
	KubernetesSyncTargets     []SyncTarget `toml:"kubernetes_sync_targets" json:"kubernetes_sync_targets,omitempty"`
	UserConfigurable          bool         `toml:"user_configurable" json:"user_configurable,omitempty"`
}

// SyncTarget is one place in the cluster that a secret is copied to.
type SyncTarget struct {
	Namespaces []string `toml:"namespaces" json:"namespaces" rule:"required" template:"true"`
	Name       string   `toml:"name" json:"name" rule:"required" template:"true"`
	Key        string   `toml:"key" json:"key,omitempty" template:"true"`
}

func (s *Secret) check(c *checker) {
	c.name(s.At, "secret", s.Name)
	c.oneOf(s.At.key("format"), s.Format, "base64")
	if s.Required && (s.AutoGenerate || s.Default != nil) {
		c.add(Error, CodeExclusive, s.At.key("required"),
			"secret %q is required, so it can have neither auto_generate nor default", s.Name)
	}
	if s.KubernetesSync && len(s.KubernetesSyncTargets) == 0 {
		if s.KubernetesSecretNamespace == "" || s.KubernetesSecretName == "" {
			c.add(Error, CodeMissing, s.At.key("kubernetes_sync"),
				"secret %q has kubernetes_sync, so it needs kubernetes_secret_namespace and kubernetes_secret_name", s.Name)
		}
	}
}
