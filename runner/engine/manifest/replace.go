package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

const (
	annotationReplace = "berth.dev/replace"
	replaceNever      = "never"
	replaceAlways     = "always"
)

// keepsFromReplace says why an object may not be deleted and made again, and
// what to do; "" when it may. Either state of it may forbid it; only the wanted
// one, which was reviewed, may allow it for a kind that holds data of others.
func keepsFromReplace(live, target *unstructured.Unstructured) (why, remedy string) {
	if live.GetAnnotations()[annotationReplace] == replaceNever || target.GetAnnotations()[annotationReplace] == replaceNever {
		return fmt.Sprintf("its annotation %s=%s forbids to replace it", annotationReplace, replaceNever), "put the old value back, or remove the annotation"
	}
	kind := kube.RefOf(target).GVK().GroupKind().String()
	if slices.Contains(holders, kind) && target.GetAnnotations()[annotationReplace] != replaceAlways {
		return "a replaced " + target.GetKind() + " loses what it holds",
			fmt.Sprintf("put the old value back, or give it the annotation %s=%s if what it holds may go", annotationReplace, replaceAlways)
	}
	return "", ""
}

// refusedUpdate is the change of an object of ours that the server does not take
// as an update: to replace it, where that helps and is allowed.
func (m component) refusedUpdate(ctx context.Context, live, target *unstructured.Unstructured, refusal error) (kube.Change, error) {
	ref := kube.RefOf(target)
	change, found := m.replacement(ctx, live, target, refusal)
	if !found {
		return kube.Change{}, kube.MarkRefusal(refused(refusal, ref), refusal)
	}
	if why, remedy := keepsFromReplace(live, target); why != "" {
		f := job.Wrongf(remedy, "apply %s: %s; it would have to be deleted and made again, but %s", ref.Address(), kube.Said(refusal), why)
		return kube.Change{}, kube.MarkRefusal(f, refusal)
	}
	return change, nil
}

// replacement is the change of an object of ours that the server takes as a new
// one and not as an update (refusal): a field of it is immutable. found is false
// when it would not take a new one either, so that the refusal is about the
// object itself.
func (m component) replacement(ctx context.Context, live, target *unstructured.Unstructured, refusal error) (change kube.Change, found bool) {
	if !apierrors.IsInvalid(refusal) {
		return kube.Change{}, false
	}
	// What the server makes up, it makes up each time: no two tries agree on it,
	// and no person has to approve it.
	first, err := m.tryNew(ctx, target)
	if err != nil {
		return kube.Change{}, false
	}
	second, err := m.tryNew(ctx, target)
	if err != nil {
		return kube.Change{}, false
	}
	madeUp := map[string]bool{}
	for _, f := range kube.Fields(first, second) {
		madeUp[f.Path] = true
	}
	change = kube.Updated(live, first)
	for i := range change.Fields { // the server writes the name elsewhere too
		change.Fields[i].After = strings.ReplaceAll(change.Fields[i].After, tryName, target.GetName())
	}
	change.Fields = slices.DeleteFunc(change.Fields, func(f kube.Field) bool {
		return madeUp[f.Path] || f.After == f.Before || f.After == "" && ofServer(f.Path)
	})
	change.Action, change.After = kube.ActionReplace, target
	change.Reason = "it is deleted and made again: " + kube.Said(refusal)
	return change, true
}

// ofServer tells of a field of a live object whether a controller keeps it.
func ofServer(path string) bool {
	return strings.HasPrefix(path, "metadata.finalizers") || path == `metadata.annotations["deployment.kubernetes.io/revision"]`
}

// tryName is the name of the object that a try makes. It never exists: a dry run
// stores nothing.
const tryName = "berth-try"

// tryNew gives what would come of a target if nothing of its name were there, by
// a dry run under another name.
func (m component) tryNew(ctx context.Context, target *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	try := target.DeepCopy()
	try.SetName(tryName)
	return patch(ctx, m.cluster, try, patchOptions{dryRun: true})
}
