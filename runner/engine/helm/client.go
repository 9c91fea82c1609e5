package helm

import (
	"errors"
	"fmt"
	"runtime/debug"

	"helm.sh/helm/v3/pkg/chartutil"
	helmkube "helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Where Helm keeps its releases in the cluster.
const (
	driverConfigMap = "configmap"
	driverSecret    = "secret"
)

// releases is the storage of a namespace, in the driver of that name.
func releases(c *kube.Cluster, namespace, name string) (*storage.Storage, error) {
	d, err := releaseDriver(c, namespace, name)
	if err != nil {
		return nil, err
	}
	return storage.Init(d), nil
}

func releaseDriver(c *kube.Cluster, namespace, name string) (driver.Driver, error) {
	switch name {
	case driverConfigMap:
		return driver.NewConfigMaps(c.Client.CoreV1().ConfigMaps(namespace)), nil
	case driverSecret:
		return driver.NewSecrets(c.Client.CoreV1().Secrets(namespace)), nil
	}
	return nil, job.Refusef(`write "configmap" or "secret"`, "storage_driver %q is not known", name)
}

// history returns the revisions of a release, oldest first; none is no error. A
// release that is kept by the other driver is refused: installing it a second
// time would hide the first.
func history(c *kube.Cluster, in inputs) ([]*release.Release, error) {
	found, err := revisions(c, in, in.StorageDriver)
	if err != nil || len(found) > 0 {
		return found, err
	}
	other := driverSecret
	if in.StorageDriver == driverSecret {
		other = driverConfigMap
	}
	elsewhere, err := revisions(c, in, other)
	if err == nil && len(elsewhere) > 0 {
		return nil, job.Failf(fmt.Sprintf("set storage_driver to %q, or uninstall that release", other),
			"release %s is in namespace %s already, kept by the driver %q", in.ReleaseName, in.Namespace, other)
	}
	return nil, nil
}

func revisions(c *kube.Cluster, in inputs, driverName string) ([]*release.Release, error) {
	store, err := releases(c, in.Namespace, driverName)
	if err != nil {
		return nil, err
	}
	found, err := store.History(in.ReleaseName)
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, kube.Explain(err, "read the history of release "+in.ReleaseName)
	}
	sortRevisions(found)
	return found, nil
}

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
