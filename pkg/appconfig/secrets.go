package appconfig

import (
	"cmp"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// SecretsFile is secrets.toml, or a file below secrets/ that holds many.
type SecretsFile struct {
	// The secrets.
	Secrets []Secret `toml:"secret" json:"secret,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// Secret is a value that the customer keeps in its own secret manager: a
// [[secret]] of secrets.toml or one file below secrets/.
type Secret struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// What templates call it.
	Name string `toml:"name" json:"name" rule:"required"`
	// Its label.
	DisplayName string `toml:"display_name" json:"display_name,omitempty"`
	// What it is for.
	Description string `toml:"description" json:"description" rule:"required"`
	// The customer must enter it. Excludes auto_generate and default.
	Required bool `toml:"required" json:"required,omitempty" default:"false"`
	// The stack makes one of 63 random characters.
	AutoGenerate bool `toml:"auto_generate" json:"auto_generate,omitempty" default:"false"`
	// What the stack proposes.
	Default *string `toml:"default" json:"default,omitempty"`
	// How the value is decoded before it is written to a cluster; not at all when left out.
	Format string `toml:"format" json:"format,omitempty" enum:"base64"`
	// Copies it to the cluster.
	KubernetesSync bool `toml:"kubernetes_sync" json:"kubernetes_sync,omitempty" default:"false"`
	// The namespace of the copy, whose key is "value".
	KubernetesSecretNamespace string `toml:"kubernetes_secret_namespace" json:"kubernetes_secret_namespace,omitempty" template:"true"`
	// The name of the copy.
	KubernetesSecretName string `toml:"kubernetes_secret_name" json:"kubernetes_secret_name,omitempty" template:"true"`
	// More copies.
	KubernetesSyncTargets []SyncTarget `toml:"kubernetes_sync_targets" json:"kubernetes_sync_targets,omitempty"`
	// Lets the customer edit it.
	UserConfigurable bool `toml:"user_configurable" json:"user_configurable,omitempty" default:"false"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// SyncTarget is one place in the cluster that a secret is copied to.
type SyncTarget struct {
	// The namespaces that get a copy.
	Namespaces []string `toml:"namespaces" json:"namespaces" rule:"required" template:"true"`
	// The copy's name.
	Name string `toml:"name" json:"name" rule:"required" template:"true"`
	// The key in it.
	Key string `toml:"key" json:"key,omitempty" template:"true" default:"value"`
}

// Copies are the places in the cluster that the secret is copied to, each with its key.
func (s *Secret) Copies() (targets []SyncTarget) {
	const defaultKey = "value"
	if s.KubernetesSync && s.KubernetesSecretName != "" {
		targets = append(targets, SyncTarget{Namespaces: []string{s.KubernetesSecretNamespace}, Name: s.KubernetesSecretName, Key: defaultKey})
	}
	for _, t := range s.KubernetesSyncTargets {
		t.Key = cmp.Or(t.Key, defaultKey)
		targets = append(targets, t)
	}
	return targets
}

func (s *Secret) check(c *checker) {
	c.name(s.At, "secret", s.Name)
	if s.Required && (s.AutoGenerate || s.Default != nil) {
		c.Add(place.Error, place.CodeExclusive, s.At.Below("required"),
			"secret %q is required, so it can have neither auto_generate nor default", s.Name)
	}
	if s.KubernetesSync && len(s.KubernetesSyncTargets) == 0 {
		if (s.KubernetesSecretNamespace == "" || s.KubernetesSecretName == "") &&
			!c.Misspelt(s.At, "kubernetes_secret_namespace", "kubernetes_secret_name", "kubernetes_sync_targets") {
			c.Add(place.Error, place.CodeMissing, s.At.Below("kubernetes_sync"),
				"secret %q has kubernetes_sync, so it needs kubernetes_secret_namespace and kubernetes_secret_name", s.Name)
		}
	}
}
