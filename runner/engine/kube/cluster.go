package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-dev/berth/runner/engine/job"
)

// FieldManager is the name under which engines write to objects.
const FieldManager = "berth"

const (
	// connectTimeout bounds the first question to the API server.
	connectTimeout = 15 * time.Second
	// A plan asks per object; client-go's own limits of 5 and 10 a second would
	// make one of a hundred objects wait for nothing.
	queriesPerSecond, queryBurst = 100, 200
)

// Cluster is a connection. It is safe for concurrent use.
type Cluster struct {
	Config  *rest.Config
	Version *version.Info // of the API server
	// Clients by kind of question. Discovery is cached until Forget.
	Client    kubernetes.Interface
	Dynamic   dynamic.Interface
	Discovery discovery.CachedDiscoveryInterface
	Mapper    meta.ResettableRESTMapper

	events events
}

// shared is the key of a connection that several parts of a job share.
type shared struct{}

// Share has Connect give this connection to whatever runs in the context.
func Share(ctx context.Context, c *Cluster) context.Context {
	return context.WithValue(ctx, shared{}, c)
}

// Connect connects to the cluster of a job: KUBECONFIG of the engine's
// environment, else in/kubeconfig. Its errors are failures with a remedy.
func Connect(ctx context.Context, j *job.Job) (*Cluster, error) {
	if c, ok := ctx.Value(shared{}).(*Cluster); ok {
		return c, nil
	}
	path := j.Env["KUBECONFIG"]
	if path == "" {
		path = j.In("kubeconfig")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, job.Failf("start it with --kubeconfig, or in the cluster itself", "this runner has no cluster, and %s needs one", j.Subject())
	}
	return Open(ctx, path)
}

// Open connects by the kubeconfig at path, in its current context.
func Open(ctx context.Context, path string) (*Cluster, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, job.Failf("give the runner another one with --kubeconfig", "the kubeconfig cannot be used: %v", err)
	}
	config.QPS, config.Burst = queriesPerSecond, queryBurst
	config.UserAgent = "berth-engine"
	config.WarningHandler = rest.NoWarnings{} // a plan asks twice for everything
	return connect(ctx, config)
}

func connect(ctx context.Context, config *rest.Config) (*Cluster, error) {
	c, err := clients(config)
	if err != nil {
		return nil, err
	}
	asked, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if c.Version, err = serverVersion(asked, c.Client.Discovery()); err != nil {
		return nil, Explain(err, "ask the cluster at "+config.Host+" for its version")
	}
	return c, nil
}

// clients are a connection that has not asked anything yet.
func clients(config *rest.Config) (*Cluster, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(client.Discovery())
	return &Cluster{
		Config: config, Client: client, Dynamic: dyn, Discovery: cached,
		Mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached),
	}, nil
}

func serverVersion(ctx context.Context, d discovery.DiscoveryInterface) (*version.Info, error) {
	info := &version.Info{}
	data, err := d.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	return info, json.Unmarshal(data, info)
}

// Forget drops what is known of the cluster's kinds: after a CRD was written.
func (c *Cluster) Forget() {
	c.Discovery.Invalidate()
	c.Mapper.Reset()
}

// Resource is the client for the objects of a kind, in a namespace where the
// kind has one. A kind that the cluster does not know is IsUnknownKind.
func (c *Cluster) Resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	resource := c.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(namespace), nil
	}
	return resource, nil
}

// Namespaced tells whether objects of the kind live in a namespace.
func (c *Cluster) Namespaced(gvk schema.GroupVersionKind) (bool, error) {
	mapping, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// IsUnknownKind tells whether err says that the cluster has no such kind.
func IsUnknownKind(err error) bool { return meta.IsNoMatchError(err) }

// Get reads an object; nil when it, its namespace or its kind is not there.
func (c *Cluster) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	resource, err := c.Resource(ref.GVK(), ref.Namespace)
	if IsUnknownKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	obj, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}
