package kube_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// crowded is a cluster with one namespace, to which somebody writes just before each of the
// first removals.
type crowded struct {
	mu      sync.Mutex
	version int
	gone    bool
	others  int
	writes  []func(*crowded)
	removed []string // the versions that removals asked for
}

func (c *crowded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := func(status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
	failure := func(status int, reason metav1.StatusReason) {
		answer(status, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, status))
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /version":
		answer(http.StatusOK, `{"gitVersion":"v1.34.0"}`)
	case "GET /api":
		answer(http.StatusOK, `{"kind":"APIVersions","versions":["v1"]}`)
	case "GET /apis":
		answer(http.StatusOK, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case "GET /api/v1":
		answer(http.StatusOK, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace","namespaced":false,"verbs":["get","delete"]}]}`)
	case "GET /api/v1/namespaces/shop":
		if c.gone {
			failure(http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		answer(http.StatusOK, fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop","uid":"one","resourceVersion":"%d","labels":{%q:"ins_1"}}}`, c.version, kube.LabelCreatedFor))
	case "GET /api/v1/namespaces/shop/configmaps":
		list := corev1.ConfigMapList{Items: make([]corev1.ConfigMap, c.others)}
		for i := range list.Items {
			list.Items[i].Name = "other-" + strconv.Itoa(i)
		}
		raw, err := json.Marshal(list)
		if err != nil {
			panic(err)
		}
		answer(http.StatusOK, string(raw))
	case "DELETE /api/v1/namespaces/shop":
		var options metav1.DeleteOptions
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(raw, nil, &options)
		}
		if err != nil || options.Preconditions == nil {
			failure(http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		c.removed = append(c.removed, *options.Preconditions.ResourceVersion)
		if len(c.writes) > 0 {
			c.writes[0](c)
			c.writes = c.writes[1:]
			c.version++
		}
		if *options.Preconditions.ResourceVersion != strconv.Itoa(c.version) {
			failure(http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		c.gone = true
		answer(http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	default:
		failure(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// A namespace that somebody writes to while it is removed is looked at once more: it goes if
// it may still go.
func TestNamespaceThatSomebodyWritesTo(t *testing.T) {
	t.Parallel()
	nothing := func(*crowded) {}
	for name, tc := range map[string]struct {
		writes   []func(*crowded)
		released bool
		asked    int
		fails    bool
	}{
		"nobody":                       {nil, true, 1, false},
		"a label, twice":               {[]func(*crowded){nothing, nothing}, true, 3, false},
		"another component comes":      {[]func(*crowded){func(c *crowded) { c.others++ }}, false, 1, false},
		"somebody else removes it":     {[]func(*crowded){func(c *crowded) { c.gone = true }}, false, 1, false},
		"somebody who writes for ever": {[]func(*crowded){nothing, nothing, nothing, nothing}, false, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &crowded{version: 1, writes: tc.writes}
			c, _ := kubetest.Serve(t, cluster)
			j := &job.Job{Spec: jobspec.Spec{Kind: jobspec.KindKubernetesManifest, InstallID: "ins_1", Resource: &jobspec.Resource{Name: "web"}}}
			released, err := c.ReleaseNamespace(t.Context(), c.InventoryOf(j, "shop"))
			if released != tc.released || err != nil != tc.fails || len(cluster.removed) != tc.asked {
				t.Errorf("released %t, %v, after removals of %v", released, err, cluster.removed)
			}
		})
	}
}
