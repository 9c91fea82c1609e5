package helm

import (
	"fmt"
	"maps"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/kube"
)

// How Helm marks what belongs to a release.
const (
	managedByLabel     = "app.kubernetes.io/managed-by"
	managedByHelm      = "Helm"
	releaseName        = "meta.helm.sh/release-name"
	releaseNamespace   = "meta.helm.sh/release-namespace"
	resourcePolicy     = "helm.sh/resource-policy"
	resourcePolicyKeep = "keep"
	keptByPolicy       = "kept, since it is annotated " + resourcePolicy + ": " + resourcePolicyKeep
	noLongerInChart    = "no longer in the chart"
	leftByAnAttempt    = "left by an attempt that did not succeed"
	takenOver          = "taken over: it was there and belongs to no release"
)

// owner is a release as objects name it.
type owner struct{ name, namespace string }

// mark puts the marks of a release on an object.
func (o owner) mark(obj *unstructured.Unstructured) {
	labels := cloned(obj.GetLabels())
	labels[managedByLabel] = managedByHelm
	obj.SetLabels(labels)
	annotations := cloned(obj.GetAnnotations())
	annotations[releaseName], annotations[releaseNamespace] = o.name, o.namespace
	obj.SetAnnotations(annotations)
}

func cloned(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// owns tells whether an object bears the marks of the release.
func (o owner) owns(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[managedByLabel] == managedByHelm && o == ownerOf(obj)
}

// ownerOf is the release that an object names; the zero value for none.
func ownerOf(obj *unstructured.Unstructured) owner {
	a := obj.GetAnnotations()
	return owner{a[releaseName], a[releaseNamespace]}
}

func kept(obj *unstructured.Unstructured) bool {
	return obj != nil && obj.GetAnnotations()[resourcePolicy] == resourcePolicyKeep
}

// scoped tells which kinds live in a namespace, also those that a chart brings.
type scoped struct {
	cluster *kube.Cluster
	own     kinds
}

// objects reads the objects of a manifest, with the namespace that they go into.
func (s scoped) objects(manifest, namespace string) ([]*unstructured.Unstructured, error) {
	found, err := kube.ParseObjects(manifest)
	if err != nil {
		return nil, err
	}
	for _, obj := range found {
		inNamespace, err := s.cluster.Namespaced(obj.GroupVersionKind())
		if kube.IsUnknownKind(err) {
			own, ok := s.own[obj.GroupVersionKind().GroupKind()]
			if inNamespace = own; !ok {
				return nil, kube.Explain(err, fmt.Sprintf("find the kind of %s/%s", obj.GetKind(), obj.GetName()))
			}
		} else if err != nil {
			return nil, kube.Explain(err, "ask the cluster for the kind "+obj.GetKind())
		}
		switch {
		case !inNamespace:
			obj.SetNamespace("")
		case obj.GetNamespace() == "":
			obj.SetNamespace(namespace)
		}
	}
	return found, nil
}

// past are the objects of revisions, by what they are: each as the revisions
// wanted it, oldest first. A kind that the cluster has no more is left out:
// nothing of it can be there.
func (s scoped) past(revisions []*release.Release) (map[kube.Ref][]*unstructured.Unstructured, []kube.Ref, error) {
	byRef := map[kube.Ref][]*unstructured.Unstructured{}
	var order []kube.Ref
	for _, r := range revisions {
		found, err := kube.ParseObjects(r.Manifest)
		if err != nil {
			return nil, nil, fmt.Errorf("revision %d of release %s: %w", r.Version, r.Name, err)
		}
		for _, obj := range found {
			inNamespace, err := s.cluster.Namespaced(obj.GroupVersionKind())
			if kube.IsUnknownKind(err) {
				continue
			}
			if err != nil {
				return nil, nil, kube.Explain(err, "ask the cluster for the kind "+obj.GetKind())
			}
			if inNamespace && obj.GetNamespace() == "" {
				obj.SetNamespace(r.Namespace)
			}
			owner{r.Name, r.Namespace}.mark(obj)
			key := refKey(obj)
			if byRef[key] == nil {
				order = append(order, key)
			}
			byRef[key] = append(byRef[key], obj)
		}
	}
	return byRef, order, nil
}

// refKey is the reference under which objects are looked up: without a version,
// since the versions of a kind are views of one object.
func refKey(obj *unstructured.Unstructured) kube.Ref { return keyOf(kube.RefOf(obj)) }

func keyOf(ref kube.Ref) kube.Ref { ref.Version = ""; return ref }
