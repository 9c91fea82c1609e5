package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// A crdStep is what happens to a CRD of the chart's crds/.
type crdStep struct {
	target *unstructured.Unstructured
	change kube.Change
	// differs: the cluster's is another one, and stays so.
	differs bool
}

// crdLook finds out what happens to CRDs.
type crdLook struct {
	cluster *kube.Cluster
	in      inputs
	mode    mode
	// tell compares those that stay as they are, too, to tell people.
	tell bool
}

func (l crdLook) upgrades() bool { return l.in.CRDMode == jobspec.CRDsUpgrade }

// steps are what an apply makes or changes: an install makes the CRDs that are not
// there; when they are upgraded, all become what the chart says.
func (l crdLook) steps(ctx context.Context, crds []*unstructured.Unstructured) ([]crdStep, error) {
	var steps []crdStep
	seen := map[kube.Ref]bool{}
	for _, obj := range crds {
		ref := kube.RefOf(obj)
		if seen[ref] {
			continue // of a second copy of a dependency: the first one makes it
		}
		seen[ref] = true
		live, err := l.cluster.Get(ctx, ref)
		if err != nil {
			return nil, kube.Explain(err, "read "+ref.String())
		}
		step := crdStep{target: obj}
		if live == nil {
			step.change, step.differs = kube.Created(obj), l.mode == modeUpgrade && !l.upgrades()
			step.change.Reason = "of the chart's crds/: it stays when the release is removed"
		} else if step.change, step.differs, err = l.compare(ctx, obj, live); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// compare is what happens to a CRD that is there; differs says that it is not what
// the chart says and stays so.
func (l crdLook) compare(ctx context.Context, target, live *unstructured.Unstructured) (change kube.Change, differs bool, err error) {
	stays := kube.Updated(live, live)
	if !l.upgrades() && !l.tell {
		return stays, false, nil
	}
	after, err := applyCRD(ctx, l.cluster, target, live, metav1.DryRunAll)
	switch {
	case err != nil && l.upgrades():
		return stays, false, kube.Explain(err, "apply "+kube.RefOf(target).String())
	case err != nil:
		return stays, false, nil //nolint:nilerr // a runner that may not try it just cannot tell
	case !l.upgrades():
		return stays, kube.Updated(live, after).Action == kube.ActionUpdate, nil
	}
	change = kube.Updated(live, after)
	change.Reason = "of the chart's crds/: for objects of its kind in all namespaces"
	return change, false, nil
}

// changes are those of the steps. An upgrade by Helm alone has none: it
// leaves CRDs as they are.
func (l crdLook) changes(steps []crdStep) []kube.Change {
	if l.mode == modeUpgrade && !l.upgrades() {
		return nil
	}
	changes := make([]kube.Change, len(steps))
	for i, step := range steps {
		changes[i] = step.change
	}
	return changes
}

// crdNote tells people which CRDs are not what the chart says and stay so; "" for
// none.
func crdNote(steps []crdStep) string {
	var names []string
	for _, step := range steps {
		if step.differs {
			names = append(names, step.target.GetName())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the chart's CRDs differ from those of the cluster, which Helm leaves as they are: %s. To apply them, set crds = \"upgrade\"", strings.Join(names, ", "))
}

// applyCRD applies a CRD on the server over the object that was found, nil when
// there was none, and returns what comes of it. Fields that others set are taken.
func applyCRD(ctx context.Context, cluster *kube.Cluster, target, live *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	resource, err := cluster.Resource(target.GroupVersionKind(), "")
	if err != nil {
		return nil, err
	}
	body := target.DeepCopy()
	unstructured.RemoveNestedField(body.Object, "status") // generators leave an empty one
	if live != nil {
		body.SetUID(live.GetUID())
		body.SetResourceVersion(live.GetResourceVersion())
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: kube.FieldManager, Force: new(true), DryRun: dryRun}
	return resource.Patch(ctx, target.GetName(), types.ApplyPatchType, data, options)
}

// upgradeCRDs writes the CRDs that the plan showed, before Helm writes anything,
// and waits until they are served. An install leaves new ones to Helm.
func (a *applying) upgradeCRDs(ctx context.Context) error {
	if a.CRDMode != jobspec.CRDsUpgrade {
		return nil
	}
	var written []kube.Ref
	for _, step := range a.crds {
		ref := step.change.Object
		if step.change.Action == kube.ActionNone || step.change.Action == kube.ActionCreate && a.Mode == modeInstall {
			continue
		}
		if err := a.inventory.Held(ctx); err != nil {
			return err
		}
		_, err := applyCRD(ctx, a.cluster, step.target, step.change.Live)
		if apierrors.IsConflict(err) {
			return job.Failf("plan again", "%s changed while it was being upgraded", ref)
		}
		if err != nil {
			return kube.Explain(err, "apply "+ref.String())
		}
		a.writer.wrote = true
		a.job.Logf("applied %s", ref)
		written = append(written, ref)
	}
	if len(written) == 0 {
		return nil
	}
	if err := a.cluster.Wait(ctx, written, a.job, kube.WaitOptions{FailFast: true}); err != nil {
		return err
	}
	a.cluster.Forget()
	return nil
}
