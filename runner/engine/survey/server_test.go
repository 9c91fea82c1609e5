package survey_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// A server answers as an API server does that has ConfigMaps and Secrets, and
// records what it is asked. What one really makes of an apply, the tests of the
// engines look at, in a cluster.
type server struct {
	mu      sync.Mutex
	objects map[string]map[string]any // by path
	// fail answers a request with an error's reason and code; "" lets it pass.
	fail func(r *http.Request) (reason metav1.StatusReason, code int)
	sent []string
	// close ends it: nothing answers any more.
	close func()
}

func serve(t *testing.T) (*server, *kube.Cluster) {
	t.Helper()
	s := &server{objects: map[string]map[string]any{}}
	c, h := kubetest.Serve(t, s)
	s.close = h.Close
	return s, c
}

var discovery = map[string]string{
	"/version": `{"gitVersion":"v1.34.0"}`,
	"/api":     `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis":    `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["get","list","patch"]},
		{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["get","list","patch"]}]}`,
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if text, ok := discovery[r.URL.Path]; ok {
		fmt.Fprint(w, text)
		return
	}
	s.sent = append(s.sent, r.Method+" "+r.URL.String())
	if s.fail != nil {
		if reason, code := s.fail(r); reason != "" {
			refuse(w, reason, code)
			return
		}
	}
	obj := s.objects[r.URL.Path]
	switch {
	case strings.HasSuffix(r.URL.Path, "s") && r.Method == http.MethodGet:
		s.list(w, r)
	case obj == nil:
		refuse(w, metav1.StatusReasonNotFound, http.StatusNotFound)
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(obj)
	default: // an apply of data over data, which is all that these tests do
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		after := maps.Clone(obj)
		after["data"] = body["data"]
		_ = json.NewEncoder(w).Encode(after)
	}
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	var paths []string
	for path := range s.objects {
		if strings.HasPrefix(path, r.URL.Path+"/") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	to, next := len(paths), ""
	if limit > 0 && from+limit < to {
		to = from + limit
		next = strconv.Itoa(to)
	}
	items := []any{}
	for _, path := range paths[from:to] {
		items = append(items, s.objects[path])
	}
	kind := map[bool]string{true: "SecretList", false: "ConfigMapList"}[strings.HasSuffix(r.URL.Path, "secrets")]
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": kind, "apiVersion": "v1", "metadata": map[string]any{"continue": next}, "items": items})
}

func refuse(w http.ResponseWriter, reason metav1.StatusReason, code int) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: string(reason),
	})
}

// counted are how often each kind of request came.
func (s *server) counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, line := range s.sent {
		method, url, _ := strings.Cut(line, " ")
		path, _, _ := strings.Cut(url, "?")
		if strings.HasSuffix(path, "s") {
			method = "LIST"
		}
		n[method]++
	}
	return n
}
