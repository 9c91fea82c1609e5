package secretsync

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Apply does what in/pinned holds, if the cluster is still as it was planned for, or as it
// is wanted already.
func Apply(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	p, targets, err := readPinned(j)
	if err != nil {
		return jobspec.Result{}, err
	}
	a := &applying{syncing: syncing{job: j, destroy: p.Destroy, targets: targets}, planned: kube.Unpin(p.Changes)}
	err = a.connect(ctx)
	if unbegun := job.Unbegun(ctx, j); unbegun != nil {
		return jobspec.Result{}, unbegun
	}
	if err != nil {
		return jobspec.Result{}, err
	}
	if a.destroy {
		return jobspec.Result{}, a.partly(a.teardown(ctx))
	}
	if err := a.partly(a.rollOut(ctx)); err != nil {
		return jobspec.Result{}, err
	}
	return a.withOutputs(ctx, jobspec.Result{})
}

// applying is an apply in progress.
type applying struct {
	syncing
	planned []kube.Change
	record  kube.Record // the inventory, as we left it
	now     []kube.Change
	wrote   bool // at least one write was made
}

// rollOut makes namespaces and copies, and removes what is no longer wanted. What may be
// made is recorded first.
func (a *applying) rollOut(ctx context.Context) (err error) {
	if a.record, err = a.inventory.Load(ctx); err != nil {
		return err
	}
	if err := a.compare(ctx); err != nil {
		return err
	}
	own := a.inventory.Namespace
	if err := a.cluster.EnsureNamespace(ctx, own, a.inventory.Install, true); err != nil {
		return err
	}
	if a.record, err = a.inventory.Claim(ctx, a.job.Spec.Fence); err != nil {
		return err
	}
	if err := a.compare(ctx); err != nil {
		return err
	}
	if err := a.inventory.Keep(ctx, &a.record, union(a.record.Objects, a.madeSpaces(), a.refs())); err != nil {
		return err
	}
	for _, name := range a.spaces() {
		if err := a.cluster.EnsureNamespace(ctx, name, a.inventory.Install, true); err != nil {
			return err
		}
	}
	for _, t := range a.targets {
		if err := a.put(ctx, t); err != nil {
			return err
		}
	}
	if err := a.removeAll(ctx); err != nil {
		return err
	}
	return a.inventory.Keep(ctx, &a.record, union(a.refs(), spacesOf(a.record.Objects)))
}

// compare finds out what is to be done now, and fails when that is not what was planned.
func (a *applying) compare(ctx context.Context) (err error) {
	if a.now, err = a.changes(ctx, a.record, a.planned); err != nil {
		return err
	}
	if differs := kube.Compare(a.planned, a.now); len(differs) > 0 {
		return kube.Stale(a.job.Subject(), differs)
	}
	return nil
}

// put brings one copy about. A new one is created, so that one which appears meanwhile is
// never written to; a copy that is there is replaced in the version in which it was found.
func (a *applying) put(ctx context.Context, t target) error {
	client := a.cluster.Client.CoreV1().Secrets(t.Namespace)
	ref := t.ref()
	planned := find(a.planned, ref)
	now := find(a.now, ref)
	write := func() error {
		if now.Action == kube.ActionNone {
			return nil
		}
		if err := a.inventory.Held(ctx); err != nil {
			return err
		}
		object := t.object(a.inventory.Install)
		if now.Live == nil {
			if err := a.makeWay(ctx, ref); err != nil {
				return err
			}
			_, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: kube.FieldManager})
			return err
		}
		object.UID, object.ResourceVersion = now.Live.GetUID(), now.Live.GetResourceVersion()
		_, err := client.Update(ctx, object, metav1.UpdateOptions{FieldManager: kube.FieldManager})
		return err
	}
	again := func() error {
		live, err := a.get(ctx, ref)
		if err != nil {
			return err
		}
		change, refusal := t.change(live, a.inventory.Install)
		if refusal != nil {
			return refusal
		}
		if differs := kube.Compare([]kube.Change{planned}, []kube.Change{change}); len(differs) > 0 {
			return kube.Stale(a.job.Subject(), differs)
		}
		now = change
		return nil
	}
	if err := kube.OnConflict(write, again); err != nil {
		return kube.Explain(err, "write "+ref.Address())
	}
	if now.Action != kube.ActionNone {
		a.wrote = true
		a.job.Logf("%s %s", map[bool]string{true: "created", false: "updated"}[now.Live == nil], ref.Address())
	}
	return nil
}

// makeWay waits until a copy that is just being removed is gone.
func (a *applying) makeWay(ctx context.Context, ref kube.Ref) error {
	live, err := a.get(ctx, ref)
	if err != nil || live == nil || live.DeletionTimestamp == nil {
		return err
	}
	return a.cluster.Wait(ctx, []kube.Ref{ref}, a.job, kube.WaitOptions{Gone: true})
}

// removeAll removes the copies that the plan removes, each by its identity and only while it
// is still a copy of the install.
func (a *applying) removeAll(ctx context.Context) error {
	var going []kube.Ref
	for _, c := range a.now {
		if c.Object.Kind != "Secret" || c.Action != kube.ActionDelete || find(a.planned, c.Object).Action != kube.ActionDelete {
			continue
		}
		if err := a.inventory.Held(ctx); err != nil {
			return err
		}
		uid, version := types.UID(c.UID), c.Live.GetResourceVersion()
		err := a.cluster.Client.CoreV1().Secrets(c.Object.Namespace).Delete(ctx, c.Object.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsConflict(err):
			return kube.Stale(a.job.Subject(), []jobspec.Difference{{Field: c.Object.String(), Want: "as it was planned", Got: "changed by somebody else"}})
		case err != nil:
			return kube.Explain(err, "remove "+c.Object.Address())
		}
		a.wrote = true
		a.job.Logf("removed %s", c.Object.Address())
		going = append(going, c.Object)
	}
	return a.cluster.Wait(ctx, going, a.job, kube.WaitOptions{Gone: true})
}

// teardown removes every copy, what was made for them, and the inventory.
func (a *applying) teardown(ctx context.Context) (err error) {
	if a.record, err = a.inventory.Load(ctx); err != nil {
		return err
	}
	if err := a.compare(ctx); err != nil {
		return err
	}
	if a.record.Exists {
		if a.record, err = a.inventory.Claim(ctx, a.job.Spec.Fence); err != nil {
			return err
		}
	}
	if err := a.removeAll(ctx); err != nil {
		return err
	}
	for _, ref := range spacesOf(a.record.Objects) {
		if ref.Name == a.inventory.Namespace {
			continue
		}
		if err := a.release(ctx, a.in(ref.Name)); err != nil {
			return err
		}
	}
	if err := a.inventory.Delete(ctx); err != nil {
		return err
	}
	return a.release(ctx, a.inventory)
}

// release removes a namespace that nothing needs any more, if the plan said so.
func (a *applying) release(ctx context.Context, in *kube.Inventory) error {
	if find(a.planned, spaceRef(in.Namespace)).Action != kube.ActionDelete {
		return nil
	}
	removed, err := a.cluster.ReleaseNamespace(ctx, in)
	if removed && err == nil {
		a.wrote = true
		a.job.Logf("removed namespace %s", in.Namespace)
	}
	return err
}

func (a *applying) refs() (refs []kube.Ref) {
	for _, t := range a.targets {
		refs = append(refs, t.ref())
	}
	return refs
}

// madeSpaces are the namespaces that this apply makes, by its plan.
func (a *applying) madeSpaces() (refs []kube.Ref) {
	for _, c := range a.planned {
		if c.Object.Kind == "Namespace" && c.Action == kube.ActionCreate {
			refs = append(refs, spaceRef(c.Object.Name))
		}
	}
	return refs
}

func spaceRef(name string) kube.Ref { return kube.Ref{Version: "v1", Kind: "Namespace", Name: name} }

func spacesOf(refs []kube.Ref) []kube.Ref {
	return slices.DeleteFunc(slices.Clone(refs), func(r kube.Ref) bool { return r.Kind != "Namespace" })
}

// union lists every object once, in order.
func union(lists ...[]kube.Ref) (all []kube.Ref) {
	for _, ref := range slices.Concat(lists...) {
		if !slices.ContainsFunc(all, ref.Same) {
			all = append(all, ref)
		}
	}
	return all
}

// find is the change of an object; one that does nothing when there is none.
func find(changes []kube.Change, ref kube.Ref) kube.Change {
	i := slices.IndexFunc(changes, func(c kube.Change) bool { return c.Object.Same(ref) })
	if i < 0 {
		return kube.Change{Object: ref}
	}
	return changes[i]
}

// partly corrects what a failure says of its outcome: stale and refused mean that nothing
// was done.
func (a *applying) partly(err error) error {
	f, ok := errors.AsType[*job.Failure](err)
	if !ok || !a.wrote || f.Outcome != jobspec.OutcomeStale && f.Outcome != jobspec.OutcomeRefused {
		return err
	}
	partly := *f
	partly.Outcome = jobspec.OutcomeFailed
	partly.Message = "a part was written, then " + f.Message
	return &partly
}
