package appconfig

// KubernetesContextsFile is kubernetes_contexts.toml: clusters by name.
type KubernetesContextsFile struct {
	// The clusters.
	Contexts []KubernetesContext `toml:"kubernetes_context" json:"kubernetes_context,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// KubernetesContext is a cluster that a component makes. The context "sandbox"
// is always there.
type KubernetesContext struct {
	At Place `toml:"-" json:"at" digest:"-"`

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
		c.add(Error, CodeDuplicate, k.At.key("name"), "the context %q is always there: it is the sandbox's own cluster", SandboxContext)
	}
}

// clusterMaker returns the component that makes a context's cluster, or "".
func (a *App) clusterMaker(context string) string {
	for _, k := range a.KubernetesContexts {
		if k.Name == context && a.Component(k.Component) != nil {
			return k.Component
		}
	}
	return ""
}

// kubernetesContexts checks that contexts and their makers exist.
func (v *validator) kubernetesContexts() {
	once, components := v.once("kubernetes context"), v.componentNames()
	defined := []string{SandboxContext}
	for _, k := range v.app.KubernetesContexts {
		once(k.At, k.Name)
		defined = append(defined, k.Name)
		v.exists(k.At.key("component"), "component", k.Component, components, "components")
		if c := v.app.Component(k.Component); c != nil && (c.HelmChart != nil || c.KubernetesManifest != nil || c.ContainerImage != nil || c.DockerBuild != nil || c.Job != nil) {
			v.diags = append(v.diags, v.at(Error, CodeValue, k.At.key("component"), "component %q is of type %s, which makes no cluster", c.Name, c.Type).
				remedy("name one of type terraform_module or pulumi"))
		}
	}
	for _, c := range v.app.Components {
		v.exists(c.At.key("kubernetes_context"), "kubernetes context", c.KubernetesContext, defined, "kubernetes_contexts")
		if v.app.clusterMaker(c.KubernetesContext) == c.Name && c.Name != "" {
			v.add(Error, CodeCycle, c.At.key("kubernetes_context"), "component %q is deployed to the cluster that it makes itself", c.Name)
		}
	}
	for _, a := range v.app.Actions {
		v.exists(a.At.key("kubernetes_context"), "kubernetes context", a.KubernetesContext, defined, "kubernetes_contexts")
	}
}
