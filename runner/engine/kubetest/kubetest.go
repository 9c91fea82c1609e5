// Package kubetest gives tests a real cluster: the one of KUBECONFIG, which
// `make kube` starts and dev/scripts/test.sh sets. Only tests import it.
package kubetest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/runner/engine/kube"
)

// Connection is a cluster with the path of its kubeconfig.
type Connection struct {
	*kube.Cluster
	Kubeconfig string
}

// Cluster gives the cluster of KUBECONFIG. Without one the test is skipped, for
// the one reason that the list of reviewed skips knows.
func Cluster(t *testing.T) *Connection {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	c, err := kube.Open(t.Context(), path)
	if err != nil {
		t.Fatalf("the cluster of KUBECONFIG=%s: %v", path, err)
	}
	return &Connection{Cluster: c, Kubeconfig: path}
}

// Namespace makes a namespace for this test. It is removed afterwards, without
// waiting for that.
func (c *Connection) Namespace(t *testing.T) string {
	t.Helper()
	name := c.Name(t)
	_, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// Name is a name for a namespace of this test, which something else makes. It
// is removed afterwards if it is there, without waiting for that.
func (c *Connection) Name(t *testing.T) string {
	t.Helper()
	name := "berth-test-" + strings.ToLower(rand.Text()[:8])
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // it has ended by now
		_ = c.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	})
	return name
}

// Image is the name of an image that the nodes of the cluster can run and that
// runs until it is ended: the one that holds every pod's namespaces. The cluster
// of `make kube` has it in its registry from the start. Of another one a node
// has to tell, which it does within a minute of its first pod.
func (c *Connection) Image(t *testing.T) string {
	t.Helper()
	if registry := os.Getenv("BERTH_DEV_REGISTRY"); registry != "" {
		return registry + "/pause:1"
	}
	nodes, err := c.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		for _, image := range node.Status.Images {
			for _, name := range image.Names {
				if strings.Contains(name, "/pause:") {
					return name
				}
			}
		}
	}
	t.Fatal("no node has an image called pause")
	return ""
}
