package kube_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// TestReadOnlyCannotWrite tries to change a cluster through a connection that
// only reads, in each way that the clients have, and looks at what was sent.
func TestReadOnlyCannotWrite(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	writable, _ := kubetest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Method+" "+r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one","namespace":"shop"},"gitVersion":"v1.34.0"}`)
	}))
	c, err := writable.ReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	maps, pods := c.Client.CoreV1().ConfigMaps("shop"), c.Client.CoreV1().Pods("shop")
	dynamic := c.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("shop")
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	dry := []string{metav1.DryRunAll}
	rest := c.Client.CoreV1().RESTClient()
	for name, write := range map[string]func() error{
		"create":          func() error { _, err := maps.Create(ctx, one, metav1.CreateOptions{}); return err },
		"create, dry run": func() error { _, err := maps.Create(ctx, one, metav1.CreateOptions{DryRun: dry}); return err },
		"update":          func() error { _, err := maps.Update(ctx, one, metav1.UpdateOptions{}); return err },
		"delete":          func() error { return maps.Delete(ctx, "one", metav1.DeleteOptions{}) },
		"delete, dry run": func() error { return maps.Delete(ctx, "one", metav1.DeleteOptions{DryRun: dry}) }, // of which the body tells
		"delete all":      func() error { return maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}) },
		"evict":           func() error { return rest.Post().AbsPath("/api/v1/namespaces/shop/pods/web/eviction").Do(ctx).Error() },
		"patch": func() error {
			_, err := maps.Patch(ctx, "one", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		},
		"apply": func() error {
			_, err := dynamic.Apply(ctx, "one", &unstructured.Unstructured{Object: map[string]any{}}, metav1.ApplyOptions{FieldManager: "x", Force: true})
			return err
		},
		"two kinds of run": func() error {
			return rest.Patch(types.MergePatchType).AbsPath("/api/v1/namespaces/shop/configmaps/one").Param("dryRun", "All").Param("dryRun", "").Do(ctx).Error()
		},
		"another dry run": func() error {
			return rest.Patch(types.MergePatchType).AbsPath("/api/v1/namespaces/shop/configmaps/one").Param("dryRun", "all").Do(ctx).Error()
		},
		"exec by GET": func() error {
			return rest.Get().AbsPath("/api/v1/namespaces/shop/pods/web/exec").Param("command", "rm").Do(ctx).Error()
		},
		"proxy by GET":       func() error { _, err := pods.ProxyGet("http", "web", "80", "stop", nil).DoRaw(ctx); return err },
		"proxy of a node":    func() error { return rest.Get().AbsPath("/api/v1/nodes/berth/proxy/run").Do(ctx).Error() },
		"proxy of a service": func() error { return rest.Get().AbsPath("/api/v1/namespaces/shop/services/web/proxy").Do(ctx).Error() },
		"upgrade": func() error {
			return rest.Get().AbsPath("/api/v1/namespaces/shop/pods").SetHeader("Upgrade", "websocket").Do(ctx).Error()
		},
	} {
		mu.Lock()
		sent = nil
		mu.Unlock()
		err := write()
		if !errors.Is(err, kube.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
		mu.Lock()
		for _, line := range sent {
			t.Errorf("%s reached the server: %s", name, line)
		}
		mu.Unlock()
	}
	// What it is for.
	for name, read := range map[string]func() error{
		"get":                   func() error { _, err := maps.Get(ctx, "one", metav1.GetOptions{}); return err },
		"list":                  func() error { _, err := dynamic.List(ctx, metav1.ListOptions{}); return err },
		"an object named proxy": func() error { return rest.Get().AbsPath("/api/v1/namespaces/proxy/configmaps/exec").Do(ctx).Error() },
		"a namespace proxy":     func() error { return rest.Get().AbsPath("/api/v1/namespaces/proxy").Do(ctx).Error() },
		"patch, dry run": func() error {
			_, err := maps.Patch(ctx, "one", types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: dry})
			return err
		},
	} {
		if err := read(); errors.Is(err, kube.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The other connection is as it was.
	if _, err := writable.Client.CoreV1().ConfigMaps("shop").Update(ctx, one, metav1.UpdateOptions{}); err != nil {
		t.Errorf("the connection that it was made of: %v", err)
	}
	if last := sent[len(sent)-1]; !strings.HasPrefix(last, "PUT ") {
		t.Errorf("it sent %s", last)
	}
}
