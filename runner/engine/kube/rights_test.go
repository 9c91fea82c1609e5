package kube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// mapper knows three kinds.
type mapper struct{ *meta.DefaultRESTMapper }

func (mapper) Reset() {}

// reviewing is a cluster that only answers questions about rights, over their real protocol.
func reviewing(t *testing.T, answer func(authorizationv1.ResourceAttributes) (int, authorizationv1.SubjectAccessReviewStatus)) *kube.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SelfSubjectAccessReview
		if r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" || json.NewDecoder(r.Body).Decode(&review) != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		code, status := answer(*review.Spec.ResourceAttributes)
		review.Status = status
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, meta.RESTScopeNamespace)
	return &kube.Cluster{Client: client, Mapper: mapper{m}}
}

// A plan says of each verb that its apply takes whether the runner has it.
func TestUses(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	c := reviewing(t, func(a authorizationv1.ResourceAttributes) (int, authorizationv1.SubjectAccessReviewStatus) {
		mu.Lock()
		defer mu.Unlock()
		asked[a.Verb+" "+a.Resource+" "+a.Name]++
		switch {
		case a.Resource == "ingresses" && a.Verb == "patch":
			return http.StatusCreated, authorizationv1.SubjectAccessReviewStatus{EvaluationError: "webhook is away"}
		case a.Resource == "ingresses" && a.Verb == "create":
			return http.StatusInternalServerError, authorizationv1.SubjectAccessReviewStatus{}
		case a.Resource == "deployments" && a.Verb == "delete":
			return http.StatusCreated, authorizationv1.SubjectAccessReviewStatus{Allowed: a.Name == "old"}
		case a.Resource == "deployments" && a.Verb == "patch":
			return http.StatusCreated, authorizationv1.SubjectAccessReviewStatus{Allowed: a.Name == "web" || a.Name == "api"}
		}
		return http.StatusCreated, authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	})
	at := func(group, kind, name string) kube.Ref {
		return kube.Ref{Group: group, Version: "v1", Kind: kind, Namespace: "shop", Name: name}
	}
	changes := []kube.Change{
		{Object: at("apps", "Deployment", "web"), Action: kube.ActionUpdate},
		{Object: at("apps", "Deployment", "api"), Action: kube.ActionUpdate},
		{Object: at("apps", "Deployment", "old"), Action: kube.ActionDelete},
		{Object: at("apps", "Deployment", "older"), Action: kube.ActionDelete},
		{Object: at("apps", "Deployment", "same"), Action: kube.ActionNone},
		{Object: at("networking.k8s.io", "Ingress", "web"), Action: kube.ActionCreate},
		{Object: kube.Ref{Group: "shop.io", Version: "v1", Kind: "Basket", Namespace: "shop", Name: "b"}, Action: kube.ActionCreate},
	}
	needs := kube.NeedsOf(changes, func(ref kube.Ref) kube.Verbs {
		if ref.Kind == "Ingress" {
			return kube.Applies
		}
		return kube.Patches
	})
	use := func(group, kind, resource, verb string, a footprint.Access) footprint.Use {
		return footprint.Use{Verb: verb, Group: group, Kind: kind, Resource: resource, Namespace: "shop", Access: a}
	}
	want := []footprint.Use{
		use("apps", "Deployment", "deployments", "delete", footprint.AccessLacks),
		use("apps", "Deployment", "deployments", "get", footprint.AccessHas),
		use("apps", "Deployment", "deployments", "patch", footprint.AccessHas), // by the names
		use("networking.k8s.io", "Ingress", "ingresses", "create", footprint.AccessUnknown),
		use("networking.k8s.io", "Ingress", "ingresses", "get", footprint.AccessHas),
		use("networking.k8s.io", "Ingress", "ingresses", "patch", footprint.AccessUnknown),
		use("shop.io", "Basket", "baskets", "create", footprint.AccessUnknown), // the change brings the kind
		use("shop.io", "Basket", "baskets", "get", footprint.AccessUnknown),
	}
	if diff := cmp.Diff(want, c.Uses(t.Context(), needs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked["get deployments "] != 1 || asked["get deployments web"] != 0 || asked["delete deployments older"] != 1 {
		t.Errorf("asked %v", asked)
	}
}

// The records of a component are asked about and never new.
func TestRecords(t *testing.T) {
	t.Parallel()
	c := reviewing(t, func(authorizationv1.ResourceAttributes) (int, authorizationv1.SubjectAccessReviewStatus) {
		return http.StatusCreated, authorizationv1.SubjectAccessReviewStatus{}
	})
	f := footprint.Of(nil, footprint.Known{Uses: c.Uses(t.Context(), kube.RecordsIn("shop", "ConfigMap"))})
	if len(f.Rights) != 1 || f.Rights[0].New || f.Rights[0].String() != "create, delete, get, list, update configmaps in shop" || f.Rights[0].Access != footprint.AccessLacks {
		t.Errorf("%+v", f)
	}
}
