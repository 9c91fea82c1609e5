package appconfig

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// KubernetesContextsFile is kubernetes_contexts.toml: clusters by name.
type KubernetesContextsFile struct {
	// The clusters.
	Contexts []KubernetesContext `toml:"kubernetes_context" json:"kubernetes_context,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// KubernetesContext is a cluster that a component makes: a
// [[kubernetes_context]] of kubernetes_contexts.toml or one file below
// kubernetes_contexts/. The context "sandbox" is always there.
type KubernetesContext struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// What components and actions call it.
	Name string `toml:"name" json:"name" rule:"required"`
	// The component whose outputs say how to reach it: of type terraform_module or pulumi.
	Component string `toml:"component" json:"component" rule:"required"`
}

// SandboxContext is the cluster of the sandbox.
const SandboxContext = "sandbox"

func (k *KubernetesContext) check(c *checker) {
	c.name(k.At, "kubernetes context", k.Name)
	if k.Name == SandboxContext {
		c.Add(place.Error, place.CodeDuplicate, k.At.Below("name"), "the context %q is always there: it is the sandbox's own cluster", SandboxContext)
	}
}
