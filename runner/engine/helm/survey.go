package helm

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/survey"
)

// Objects are those of the release that is deployed, as its record has them, and
// those that later attempts or the inventory name besides. Hooks, CRDs of crds/
// and the namespace are not among them: the record of a release does not say how
// they are to be. Where the control plane keeps the record, it has to be there.
func Objects(ctx context.Context, j *job.Job, c *kube.Cluster) (survey.Objects, error) {
	in, err := renderInputs(j, false)
	if err != nil {
		return survey.Objects{}, err
	}
	held, err := readHeld(ctx, j)
	if err != nil {
		return survey.Objects{}, err
	}
	inventory := c.InventoryOf(j, in.Namespace)
	at, err := keeping{c, in, held, inventory}.find(ctx)
	if err != nil {
		return survey.Objects{}, err
	}
	s := stand(at.history)
	if s.Base == nil {
		return survey.Objects{}, job.Failf("deploy it", "release %s is not in namespace %s", in.ReleaseName, in.Namespace)
	}
	d, scope, order, err := newDiffer(c, in, s, nil)
	if err != nil {
		return survey.Objects{}, err
	}
	record, err := inventory.Load(ctx)
	if err != nil {
		return survey.Objects{}, err
	}
	objects, err := scope.wanted(s.Base.Manifest, d.owner)
	if err != nil {
		return survey.Objects{}, err
	}
	former := func(ref kube.Ref) {
		if !d.base[keyOf(ref)] && !slices.ContainsFunc(objects.Former, ref.Same) {
			objects.Former = append(objects.Former, ref)
		}
	}
	for _, key := range order {
		former(kube.RefOf(d.past[key][0]))
	}
	for _, ref := range record.Objects {
		former(ref)
	}
	return objects, nil
}

// wanted are the objects of a manifest with the marks of its release. One whose
// kind the cluster no longer has is wanted too.
func (s scoped) wanted(manifest string, of owner) (survey.Objects, error) {
	objects := survey.Objects{Keeps: func(_ kube.Ref, live *unstructured.Unstructured) string {
		switch {
		case !of.owns(live):
			return "it is somebody else's by now"
		case kept(live):
			return keptByPolicy
		}
		return ""
	}}
	found, err := kube.ParseObjects(manifest)
	if err != nil {
		return objects, err
	}
	for _, obj := range found {
		namespaced, err := s.cluster.Namespaced(obj.GroupVersionKind())
		switch {
		case kube.IsUnknownKind(err): // gone with its CRD, wherever it was
		case err != nil:
			return objects, kube.Explain(err, "ask the cluster for the kind "+obj.GetKind())
		case !namespaced:
			obj.SetNamespace("")
		case obj.GetNamespace() == "":
			obj.SetNamespace(of.namespace)
		}
		of.mark(obj)
	}
	objects.Wanted = found
	return objects, nil
}
