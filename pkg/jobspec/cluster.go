package jobspec

import (
	"reflect"
	"regexp"
)

// Cluster names a cluster other than the sandbox's. It has no credentials: the
// agent makes the kubeconfig, from what the customer gave the runner for the
// context, else from the outputs of the component in the job's state.
type Cluster struct {
	// Context is the name in kubernetes_contexts.toml.
	Context string `json:"context"`
	// Component is the one that makes the cluster.
	Component string `json:"component"`
}

// contextName is what the name of a context may be: it becomes the name of a file.
var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Cluster is the cluster that the job works on or that its scripts reach; nil for
// the sandbox's own, and for jobs that reach none.
func (s Spec) Cluster() *Cluster {
	switch {
	case s.HelmChart != nil:
		return s.HelmChart.Cluster
	case s.KubernetesManifest != nil:
		return s.KubernetesManifest.Cluster
	case s.Action != nil:
		return s.Action.Cluster
	case len(s.Probes) > 0:
		return s.Probes[0].Cluster()
	}
	return nil
}

// Cluster is the one that the objects of the component are in; nil for the sandbox's own.
func (p Probe) Cluster() *Cluster { return Spec{Work: p.Work}.Cluster() }

// SameCluster tells whether two probes look into the same cluster.
func SameCluster(a, b Probe) bool { return reflect.DeepEqual(a.Cluster(), b.Cluster()) }

func (s Spec) validateCluster(p *problems) {
	c := s.Cluster()
	if c == nil {
		return
	}
	if !contextName.MatchString(c.Context) {
		p.add("the name of a Kubernetes context is not valid: %q", c.Context)
	}
	if c.Component == "" {
		p.add("Kubernetes context %q names no component", c.Context)
	}
}
