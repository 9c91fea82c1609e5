package manifest

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// writeAll makes and changes the targets in their order. Kinds that are defined
// among them are served before objects of them are written.
func (a *applying) writeAll(ctx context.Context) error {
	planned, now := byObject(a.planned), byObject(a.now)
	var definitions []kube.Ref
	defer a.job.Show(jobspec.Progress{})
	for i, target := range a.objects {
		ref := kube.RefOf(target)
		if len(definitions) > 0 && kube.Rank(ref.Kind) > kube.Rank(definitions[0].Kind) {
			if err := a.cluster.Wait(ctx, definitions, a.job, kube.WaitOptions{FailFast: true}); err != nil {
				return err
			}
			a.cluster.Forget()
			definitions = nil
		}
		a.job.Show(kube.Applying(ref, i, len(a.objects)))
		wrote, err := a.write(ctx, target, planned[ref], now[ref])
		if err != nil {
			return err
		}
		if wrote && isDefinition(ref) {
			definitions = append(definitions, ref)
		}
	}
	return nil
}

func byObject(changes []kube.Change) map[kube.Ref]kube.Change {
	m := make(map[kube.Ref]kube.Change, len(changes))
	for _, c := range changes {
		m[c.Object] = c
	}
	return m
}

// done is what the log says of a target after it was written.
var done = map[kube.Action]string{kube.ActionCreate: "created", kube.ActionUpdate: "updated", kube.ActionReplace: "replaced"}

// write brings one target about. What was found is only written over in the
// version in which it was found: when somebody else wrote in between, it is
// compared with the plan again. A new object is applied without force, so that
// of one that appears meanwhile nothing is overwritten; the server has no apply
// that only creates, and a plain create would not be ours to apply to later.
func (a *applying) write(ctx context.Context, target *unstructured.Unstructured, planned, now kube.Change) (wrote bool, err error) {
	ref := kube.RefOf(target)
	once := func() error {
		if now.Action == kube.ActionNone {
			return nil
		}
		if err := a.inventory.Held(ctx); err != nil {
			return err
		}
		over := now.Live
		if now.Action == kube.ActionReplace {
			if _, err := a.remove(ctx, now); err != nil {
				return err
			}
			over = nil
		}
		if over == nil {
			if err := a.makeWay(ctx, ref); err != nil {
				return err
			}
		}
		if _, err := patch(ctx, a.cluster, target, patchOptions{over: over, force: len(planned.Takes) > 0 && over != nil}); err != nil {
			return err
		}
		wrote, a.wrote = true, true
		return nil
	}
	again := func() error {
		others, err := a.inventory.Others(ctx)
		if err != nil {
			return err
		}
		if now, err = a.change(ctx, target, owners{a.record.Objects, others}, false); err != nil {
			return err
		}
		if differs := kube.Compare([]kube.Change{planned}, []kube.Change{now}); len(differs) > 0 {
			return kube.Stale(a.job.Subject(), differs)
		}
		return nil
	}
	err = kube.OnConflict(func() error { return a.untilServed(ctx, once) }, again)
	if err != nil {
		return wrote, refused(err, ref)
	}
	if wrote {
		a.job.Logf("%s %s", done[now.Action], ref.Address())
	}
	return wrote, nil
}

// makeWay makes a namespace, with its label, or waits until an object that is
// just being removed is gone.
func (a *applying) makeWay(ctx context.Context, ref kube.Ref) error {
	if isNamespace(ref) {
		return a.cluster.EnsureNamespace(ctx, ref.Name, a.inventory.Install, true)
	}
	live, err := a.cluster.Get(ctx, ref)
	if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
		return err
	}
	return a.cluster.Wait(ctx, []kube.Ref{ref}, a.job, kube.WaitOptions{Gone: true})
}

const (
	// servedTimeout bounds how long a kind may take to be served after its CRD is
	// established; mostly that is less than a second.
	servedTimeout = 15 * time.Second
	servedEvery   = 200 * time.Millisecond
)

// untilServed writes, again while the kind is not served yet.
func (a *applying) untilServed(ctx context.Context, write func() error) error {
	deadline := time.Now().Add(servedTimeout)
	for {
		err := write()
		if !kube.IsUnknownKind(err) && !isNotServed(err) || time.Now().After(deadline) {
			return err
		}
		a.cluster.Forget()
		select {
		case <-time.After(servedEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// isNotServed tells a path that the API server does not know from an object, or
// a namespace, that is not there.
func isNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// removeAll deletes what is to go, each by its identity, and waits until all of
// it is gone, with everything that it owns.
func (a *applying) removeAll(ctx context.Context) error {
	planned := byObject(a.planned)
	var going []kube.Ref
	for _, c := range a.now {
		if c.Action != kube.ActionDelete || planned[c.Object].Action != kube.ActionDelete {
			continue
		}
		if err := a.inventory.Held(ctx); err != nil {
			return err
		}
		removed, err := a.remove(ctx, c)
		if err != nil {
			return err
		}
		if removed {
			a.job.Logf("deleting %s", c.Object.Address())
			going = append(going, c.Object)
		}
	}
	return a.cluster.Wait(ctx, going, a.job, kube.WaitOptions{Gone: true})
}

func (a *applying) remove(ctx context.Context, c kube.Change) (bool, error) {
	resource, err := a.cluster.Resource(c.Object.GVK(), c.Object.Namespace)
	if kube.IsUnknownKind(err) {
		return false, nil // its CRD went, and all objects with it
	}
	if err != nil {
		return false, refused(err, c.Object)
	}
	uid, foreground := types.UID(c.UID), metav1.DeletePropagationForeground
	err = resource.Delete(ctx, c.Object.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &foreground,
	})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err): // somebody removed it and made another one
		live, err := a.cluster.Get(ctx, c.Object)
		if err != nil || live == nil {
			return false, err
		}
		return false, kube.Stale(a.job.Subject(), kube.Compare([]kube.Change{c}, []kube.Change{kube.Deleted(c.Object, live)}))
	case err != nil:
		return false, kube.Explain(err, "delete "+c.Object.Address())
	}
	a.wrote = true
	return true, nil
}
