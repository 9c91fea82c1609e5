// Package survey reads what package drift has to know of the objects of a
// component: how they are, and what an apply would make of those that are not as
// the release wants them. It changes nothing: its connection cannot.
//
//	Objects (of an engine) ─▶ list or get ─▶ dry run where it says more ─▶ drift.Explain ─▶ drift.Report
//
// Which objects a component has, the engines say: helm.Objects, manifest.Objects.
package survey

import (
	"context"
	"encoding/json"
	"errors"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// atOnce is how many objects are asked for at the same time, as by a plan.
const atOnce = 8

// Objects are those of a component, as its engine knows them.
type Objects struct {
	// Wanted are as the release rendered them, each in its namespace and with the
	// marks that the engine adds.
	Wanted []*unstructured.Unstructured
	// Former were of the component, and are not wanted any more. Keeps says why
	// one of them may stay, "" for none.
	Former []kube.Ref
	Keeps  func(ref kube.Ref, live *unstructured.Unstructured) string
}

// Look reports how objects differ from what is wanted of them. An object about
// which the cluster answers with an error is one of the report, as unknown; a
// cluster that does not answer, or not us, is an error.
func Look(ctx context.Context, c *kube.Cluster, objects Objects, secrets drift.Secrets) (drift.Report, error) {
	readOnly, err := c.ReadOnly()
	if err != nil {
		return drift.Report{}, err
	}
	s := surveying{cluster: readOnly}
	if err := s.list(ctx, objects.Wanted); err != nil {
		return drift.Report{}, err
	}
	findings := make([]drift.Finding, len(objects.Wanted)+len(objects.Former))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, wanted := range objects.Wanted {
		group.Go(func() error {
			o, err := s.wanted(ctx, wanted)
			if err == nil {
				findings[i] = drift.Explain(o, secrets)
			}
			return err
		})
	}
	for i, ref := range objects.Former {
		group.Go(func() error {
			o, err := s.former(ctx, ref, objects.Keeps)
			if err == nil {
				findings[len(objects.Wanted)+i] = drift.Explain(o, secrets)
			}
			return err
		})
	}
	return drift.Report{Findings: findings}, group.Wait()
}

// surveying is a survey that goes on.
type surveying struct {
	cluster *kube.Cluster
	listed  map[kube.Ref]*unstructured.Unstructured
}

// wanted is what is known of an object that the release has.
func (s *surveying) wanted(ctx context.Context, wanted *unstructured.Unstructured) (drift.Object, error) {
	o := drift.Object{Ref: kube.RefOf(wanted), Wanted: wanted, Live: s.listed[kube.RefOf(wanted)]}
	get := func() (err error) {
		if err = ctx.Err(); err == nil {
			o.Live, err = s.cluster.Get(ctx, o.Ref)
		}
		return err
	}
	if o.Live == nil {
		if err := get(); err != nil {
			o.Unread, err = failure(err, "read "+o.Ref.Address())
			return o, err
		}
	}
	try := func() (err error) {
		if !drift.NeedsTry(o) {
			return nil
		}
		o.Tried, err = s.try(ctx, wanted, o.Live)
		return err
	}
	if err := kube.OnConflict(try, get); err != nil {
		o.Untried, err = failure(err, "try a change of "+o.Ref.Address())
		return o, err
	}
	return o, nil
}

// former is what is known of an object that the release no longer has.
func (s *surveying) former(ctx context.Context, ref kube.Ref, keeps func(kube.Ref, *unstructured.Unstructured) string) (o drift.Object, err error) {
	o.Ref = ref
	if o.Live, err = s.cluster.Get(ctx, ref); err != nil {
		o.Unread, err = failure(err, "read "+ref.Address())
		return o, err
	}
	if o.Live != nil && keeps != nil {
		o.Keeps = keeps(ref, o.Live)
	}
	return o, nil
}

// try is a forced server-side apply that changes nothing: of exactly the object
// that was read, so that it cannot be about a new one.
func (s *surveying) try(ctx context.Context, wanted, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body := wanted.DeepCopy()
	unstructured.RemoveNestedField(body.Object, "status")
	unstructured.RemoveNestedField(body.Object, "metadata", "creationTimestamp")
	body.SetUID(live.GetUID())
	body.SetResourceVersion(live.GetResourceVersion())
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	resource, err := s.cluster.Resource(wanted.GroupVersionKind(), wanted.GetNamespace())
	if err != nil {
		return nil, err
	}
	force := true
	return resource.Patch(ctx, wanted.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: kube.FieldManager, Force: &force,
	})
}

// failure is what an error says of one object; one that would be the same for
// all is an error itself.
func failure(err error, doing string) (drift.Failure, error) {
	_, isStatus := errors.AsType[*apierrors.StatusError](err)
	switch {
	case kube.IsUnknownKind(err):
		return drift.UnknownKind, nil
	case !isStatus, apierrors.IsUnauthorized(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err):
		return "", kube.Explain(err, doing)
	case apierrors.IsForbidden(err):
		return drift.Forbidden, nil
	case apierrors.IsConflict(err):
		return drift.Busy, nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return drift.Invalid, nil
	}
	return drift.Failed, nil
}
