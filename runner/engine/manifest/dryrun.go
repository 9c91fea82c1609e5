package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// patchOptions are how an object is applied. The zero value really writes,
// forces nothing, and also makes an object that is not there.
type patchOptions struct {
	dryRun bool
	force  bool
	// over is the object that is written over: any other one, and any other
	// version of it, is a conflict.
	over *unstructured.Unstructured
}

// patch applies an object on the server and returns what comes of it.
func patch(ctx context.Context, c *kube.Cluster, target *unstructured.Unstructured, o patchOptions) (*unstructured.Unstructured, error) {
	resource, err := c.Resource(target.GroupVersionKind(), target.GetNamespace())
	if err != nil {
		return nil, err
	}
	body := target
	if o.over != nil {
		body = target.DeepCopy()
		body.SetUID(o.over.GetUID()) // the version alone makes a removed object again
		body.SetResourceVersion(o.over.GetResourceVersion())
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: kube.FieldManager, Force: &o.force, FieldValidation: metav1.FieldValidationStrict}
	if o.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return resource.Patch(ctx, target.GetName(), types.ApplyPatchType, data, options)
}

// dryRun gives an object as it would be, and what would have to be taken from
// other field managers for that.
func dryRun(ctx context.Context, c *kube.Cluster, target, live *unstructured.Unstructured) (*unstructured.Unstructured, []kube.Taken, error) {
	after, err := patch(ctx, c, target, patchOptions{dryRun: true, over: live})
	takes := owned(err)
	if len(takes) > 0 {
		after, err = patch(ctx, c, target, patchOptions{dryRun: true, over: live, force: true})
	}
	return after, takes, err
}

// ownedBy is how the API server names the manager in a conflict:
// conflict with "kubectl-edit" using apps/v1.
var ownedBy = regexp.MustCompile(`^conflict with "([^"]*)"`)

// owned are the fields that other managers own, of a conflict about fields.
func owned(err error) []kube.Taken {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsConflict(err) || status.Status().Details == nil {
		return nil
	}
	var takes []kube.Taken
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		owner := "another manager"
		if m := ownedBy.FindStringSubmatch(cause.Message); m != nil {
			owner = m[1]
		}
		takes = append(takes, kube.Taken{Path: strings.TrimPrefix(cause.Field, "."), Owner: owner})
	}
	slices.SortFunc(takes, func(a, b kube.Taken) int {
		return strings.Compare(a.Path+"\n"+a.Owner, b.Path+"\n"+b.Owner)
	})
	return slices.Compact(takes)
}

// refused explains why the API server does not take an object.
func refused(err error, ref kube.Ref) error {
	doing := "apply " + ref.Address()
	status, isStatus := errors.AsType[*apierrors.StatusError](err)
	switch {
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "immutable"):
		return job.Wrongf("give the object another name, so that a new one is made and this one pruned", "%s: %s", doing, kube.Said(err))
	case apierrors.IsNotFound(err) && isStatus && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		return job.Failf("make it, or put a Namespace into the manifest", "%s: namespace %s does not exist", doing, ref.Namespace)
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || isStatus && strings.Contains(err.Error(), "field not declared in schema"):
		f := job.Failf("correct the manifest", "%s: %s", doing, kube.Said(err))
		if kube.NeedsChange(err) {
			f.Reason = jobspec.ReasonNeedsChange
		}
		return f
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return job.Failf("try again", "%s: somebody else writes to it all the time", doing)
	}
	return kube.Explain(err, doing)
}

// appliedByUs tells whether an object is there and was applied under our field
// manager.
func appliedByUs(live *unstructured.Unstructured) bool {
	return live != nil && slices.ContainsFunc(live.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == kube.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply
	})
}

// helmRelease names the release that an object belongs to; "" for none.
func helmRelease(live *unstructured.Unstructured) string {
	notes := live.GetAnnotations()
	if name := notes["meta.helm.sh/release-name"]; name != "" {
		return fmt.Sprintf("%s/%s", notes["meta.helm.sh/release-namespace"], name)
	}
	return ""
}
