package kube

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// RefOf names obj.
func RefOf(obj *unstructured.Unstructured) Ref {
	gvk := obj.GroupVersionKind()
	return Ref{gvk.Group, gvk.Version, gvk.Kind, obj.GetNamespace(), obj.GetName()}
}

// GVK is the kind of the object.
func (r Ref) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// Same tells whether both name one object: versions of a kind are views of it.
func (r Ref) Same(other Ref) bool { return r.key() == other.key() }

// key is what identifies the object.
func (r Ref) key() Ref { r.Version = ""; return r }

// String names the object for people: "Deployment/web".
func (r Ref) String() string { return r.Kind + "/" + r.Name }

// Address names the object among all of a cluster:
// "Deployment.apps shop/web", "Namespace shop".
func (r Ref) Address() string {
	address := r.Kind
	if r.Group != "" {
		address += "." + r.Group
	}
	if r.Namespace != "" {
		return address + " " + r.Namespace + "/" + r.Name
	}
	return address + " " + r.Name
}

// Shown names the object where it is watched: "Deployment shop/web".
func (r Ref) Shown() string { r.Group = ""; return r.Address() }

// installOrder are kinds in the order in which others may need them. What is
// not named comes after all, before what calls into the API server itself.
var installOrder = []string{
	"Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "IngressClass", "RuntimeClass",
	"NetworkPolicy", "ResourceQuota", "LimitRange", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "Service",
	"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet",
	"HorizontalPodAutoscaler", "PodDisruptionBudget", "Job", "CronJob", "Ingress", "APIService",
}

// lastKinds come after custom resources: they can refuse any other write.
var lastKinds = []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// Rank is the place of a kind in the order of installing.
func Rank(kind string) int {
	if i := slices.Index(installOrder, kind); i >= 0 {
		return i
	}
	if i := slices.Index(lastKinds, kind); i >= 0 {
		return len(installOrder) + 1 + i
	}
	return len(installOrder)
}

// SortForInstall orders objects so that each comes after what it may need;
// those of one kind keep their order.
func SortForInstall(objects []*unstructured.Unstructured) {
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(Rank(a.GetKind()), Rank(b.GetKind()))
	})
}

// SortForDelete orders references the other way round, then by name.
func SortForDelete(refs []Ref) {
	slices.SortStableFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(Rank(b.Kind), Rank(a.Kind)),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
