package helm

import (
	"runtime/debug"

	"helm.sh/helm/v3/pkg/chartutil"
	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// getter gives Helm the connection that a job has already.
type getter struct {
	cluster   *kube.Cluster
	namespace string
}

var _ genericclioptions.RESTClientGetter = getter{}

func (g getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.cluster.Config), nil }

func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.cluster.Discovery, nil
}

func (g getter) ToRESTMapper() (meta.RESTMapper, error) { return g.cluster.Mapper, nil }

// ToRawKubeConfigLoader is asked for the default namespace only.
func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), overrides)
}

// newKubeClient is Helm's own client, for what is not ours to decide.
func newKubeClient(g getter) *helmkube.Client {
	client := helmkube.New(g)
	client.Namespace = g.namespace
	return client
}

// tool names the Helm that this engine is built with.
func tool() *jobspec.Tool {
	t := &jobspec.Tool{Name: "helm", Version: chartutil.DefaultCapabilities.HelmVersion.Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "helm.sh/helm/v3" {
				t.Version, t.Digest = dep.Version, dep.Sum
			}
		}
	}
	return t
}
