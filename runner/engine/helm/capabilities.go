package helm

import (
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/berth-dev/berth/runner/engine/kube"
)

// crd is a file of a chart's crds/ directory.
type crd struct {
	Name string `json:"name"`
	Data string `json:"data"`
}

func crdFiles(crds []chart.CRD) []crd {
	files := make([]crd, len(crds))
	for i, c := range crds {
		files[i] = crd{Name: c.Name, Data: string(c.File.Data)}
	}
	return files
}

// kinds are those that a chart brings itself: whether their objects live in a
// namespace.
type kinds map[schema.GroupKind]bool

// capabilities are those of the server, as templates see them in an apply: an
// install writes the chart's CRDs before it renders, so their versions count
// although they may not be there yet.
func capabilities(c *kube.Cluster, crds []*unstructured.Unstructured) (*chartutil.Capabilities, error) {
	versions, err := action.GetVersionSet(c.Discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, kube.Explain(err, "ask the cluster for its kinds")
	}
	for _, obj := range crds {
		for _, name := range servedVersions(obj) {
			if !slices.Contains(versions, name) {
				versions = append(versions, name)
			}
		}
	}
	slices.Sort(versions)
	return &chartutil.Capabilities{
		APIVersions: versions,
		KubeVersion: chartutil.KubeVersion{Version: c.Version.GitVersion, Major: c.Version.Major, Minor: c.Version.Minor},
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}, nil
}

// servedVersions lists "group/version" and "group/version/Kind" of a CRD.
func servedVersions(obj *unstructured.Unstructured) []string {
	group, kind, _ := crdKind(obj)
	var names []string
	versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if served, _ := m["served"].(bool); served {
			names = append(names, fmt.Sprintf("%s/%v", group, m["name"]), fmt.Sprintf("%s/%v/%s", group, m["name"], kind))
		}
	}
	return names
}

// crdKind tells the kind that a CRD defines.
func crdKind(obj *unstructured.Unstructured) (group, kind string, namespaced bool) {
	group, _, _ = unstructured.NestedString(obj.Object, "spec", "group")
	kind, _, _ = unstructured.NestedString(obj.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(obj.Object, "spec", "scope")
	return group, kind, scope != "Cluster"
}

// parseCRDs reads the objects of a chart's crds/, and the kinds they define.
func parseCRDs(files []crd) ([]*unstructured.Unstructured, kinds, error) {
	var objects []*unstructured.Unstructured
	defined := kinds{}
	for _, f := range files {
		found, err := kube.ParseObjects(f.Data)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, obj := range found {
			group, kind, namespaced := crdKind(obj)
			defined[schema.GroupKind{Group: group, Kind: kind}] = namespaced
		}
		objects = append(objects, found...)
	}
	return objects, defined, nil
}
