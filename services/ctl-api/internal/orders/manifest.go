package orders

import "github.com/berth-dev/berth/pkg/jobspec"

func kubernetesManifest(spec *jobspec.Spec, c component) bool {
	k := c.KubernetesManifest
	if k == nil {
		return false
	}
	spec.Kind = jobspec.KindKubernetesManifest
	spec.KubernetesManifest = &jobspec.KubernetesManifest{Namespace: k.Namespace, CreateNamespace: k.InNewNamespace()}
	if m := k.Manifest; m != nil {
		spec.KubernetesManifest.ManifestName = m.File
	}
	return true
}
