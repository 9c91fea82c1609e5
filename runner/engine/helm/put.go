package helm

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// put creates or changes one object. When somebody else wrote to it in between
// it is compared once more with what was approved.
func (w *writer) put(s step) error {
	ref := kube.RefOf(s.target)
	write := func() error {
		if err := w.ready(); err != nil {
			return err
		}
		var err error
		if s.going {
			if err := w.cluster.Wait(w.ctx, []kube.Ref{ref}, w.job, kube.WaitOptions{Gone: true}); err != nil {
				return err
			}
		}
		switch {
		case s.Action == kube.ActionCreate:
			err = w.differ.create(w.ctx, s.target, nil)
		case s.Action == kube.ActionNone || s.patch.empty():
			return nil
		default:
			_, err = w.differ.write(w.ctx, ref, s.Live, s.patch, nil)
		}
		if err == nil {
			w.wrote = true
			w.job.Logf("%sd %s", s.Action, ref)
		}
		return err
	}
	again := func() error {
		w.job.Logf("%s was written to by somebody else; comparing again", ref)
		now, err := w.differ.step(w.ctx, s.target)
		if err != nil {
			return err
		}
		if differs := kube.Compare([]kube.Change{w.planned[keyOf(ref)]}, []kube.Change{now.Change}); len(differs) > 0 {
			return kube.Stale(w.job.Subject(), differs)
		}
		s = now
		return nil
	}
	err := kube.OnConflict(write, again)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return kube.Stale(w.job.Subject(), []jobspec.Difference{{Field: ref.String(), Want: "as it was planned", Got: "written to again and again"}})
	}
	return err
}

// removeGone removes what is to go, each only as the object that was planned.
func (w *writer) removeGone() error {
	for len(w.gone) > 0 {
		if err := w.remove(w.gone[0]); err != nil {
			return err
		}
		w.gone = w.gone[1:]
	}
	return nil
}

func (w *writer) remove(s step) error {
	if s.Action != kube.ActionDelete {
		return nil
	}
	if err := w.ready(); err != nil {
		return err
	}
	resource, err := w.cluster.Resource(s.Object.GVK(), s.Object.Namespace)
	if kube.IsUnknownKind(err) {
		return nil
	}
	if err != nil {
		return err
	}
	uid, propagation := types.UID(s.UID), metav1.DeletePropagationBackground
	err = resource.Delete(w.ctx, s.Object.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &propagation,
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err): // another object has the name by now, which was not planned
		return kube.Stale(w.job.Subject(), []jobspec.Difference{{Field: s.Object.String() + ": metadata.uid", Want: s.UID, Got: "another object's"}})
	case err != nil:
		return kube.Explain(err, "remove "+s.Object.String())
	}
	w.wrote = true
	w.job.Logf("removed %s", s.Object)
	return nil
}

// isStale tells a failure that says that the plan no longer holds.
func isStale(err error) bool {
	f, ok := errors.AsType[*job.Failure](err)
	return ok && f.Outcome == jobspec.OutcomeStale
}
