package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

const manifestFile = "manifest.yaml" // of the artifact

// renderNamespace renders the namespace of the component.
func renderNamespace(j *job.Job) (string, error) {
	namespace, err := j.Render("namespace", j.Spec.KubernetesManifest.Namespace)
	if err != nil {
		return "", err
	}
	namespace = kube.NamespaceOf(j.Spec.InstallID, strings.TrimSpace(namespace))
	if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
		return "", job.Wrongf("correct namespace in the app folder", "%q is no name for a namespace: %s", namespace, wrong[0])
	}
	return namespace, nil
}

// render gives the objects of the manifest in the order of installing, and the
// text that they are made of.
func render(j *job.Job, c *kube.Cluster, namespace string) ([]*unstructured.Unstructured, string, error) {
	source, err := os.ReadFile(j.In("artifact", manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", job.Refusef("build the component again", "the artifact of %s has no %s", j.Subject(), manifestFile)
	}
	if err != nil {
		return nil, "", err
	}
	text, err := j.RenderFile("manifest", j.Spec.KubernetesManifest.ManifestName, string(source))
	if err != nil {
		return nil, "", err
	}
	objects, err := kube.ParseObjects(text)
	if err != nil {
		return nil, "", job.Wrongf("correct the manifest", "the manifest of %s, rendered: %v", j.Subject(), err)
	}
	if err := place(c, objects, namespace); err != nil {
		return nil, "", err
	}
	if err := unique(objects); err != nil {
		return nil, "", err
	}
	kube.SortForInstall(objects)
	return objects, text, nil
}

// place gives objects that live in a namespace and name none the one of the
// component, and removes what other objects say of a namespace.
func place(c *kube.Cluster, objects []*unstructured.Unstructured, namespace string) error {
	defined := definedKinds(objects)
	for _, obj := range objects {
		gvk := obj.GroupVersionKind()
		namespaced, err := c.Namespaced(gvk)
		if kube.IsUnknownKind(err) {
			scope, ok := defined[gvk.GroupKind()]
			if ok {
				namespaced, err = scope == "Namespaced", nil
			}
		}
		if err != nil {
			return kube.Explain(err, fmt.Sprintf("find the kind of %s", kube.RefOf(obj)))
		}
		switch {
		case !namespaced:
			obj.SetNamespace("")
		case obj.GetNamespace() == "":
			obj.SetNamespace(namespace)
		}
		unstructured.RemoveNestedField(obj.Object, "status")
		unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
	}
	return nil
}

// definedKinds are the kinds that CRDs among the objects define, with their
// scope.
func definedKinds(objects []*unstructured.Unstructured) map[schema.GroupKind]string {
	kinds := map[schema.GroupKind]string{}
	for _, obj := range objects {
		if isDefinition(kube.RefOf(obj)) {
			group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
			scope, _, _ := unstructured.NestedString(obj.Object, "spec", "scope")
			kinds[schema.GroupKind{Group: group, Kind: kind}] = scope
		}
	}
	return kinds
}

func isDefinition(ref kube.Ref) bool {
	return ref.GVK().GroupKind().String() == "CustomResourceDefinition.apiextensions.k8s.io"
}

func isNamespace(ref kube.Ref) bool { return ref.GVK().GroupKind().String() == "Namespace" }

func unique(objects []*unstructured.Unstructured) error {
	for i, obj := range objects {
		for _, other := range objects[:i] {
			if kube.RefOf(obj).Same(kube.RefOf(other)) {
				return job.Wrongf("remove one of the two", "the manifest has %s twice", kube.RefOf(obj).Address())
			}
		}
	}
	return nil
}
