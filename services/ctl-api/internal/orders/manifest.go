package orders

import "github.com/berth-dev/berth/pkg/jobspec"

func kubernetesManifest(c component) (work jobspec.Work, deployable bool) {
	k := c.KubernetesManifest
	if k == nil {
		return work, false
	}
	work.KubernetesManifest = &jobspec.KubernetesManifest{
		Namespace: k.Namespace, CreateNamespace: k.InNewNamespace(), Cluster: cluster(c.app, c.KubernetesContext),
	}
	if m := k.Manifest; m != nil {
		work.KubernetesManifest.ManifestName = m.File
	}
	return work, true
}
