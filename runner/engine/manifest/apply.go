package manifest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Apply does what in/pinned holds, if the cluster is still as it was planned
// for, or as it is wanted already.
func Apply(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	p, err := readPinned(j)
	if err != nil {
		return jobspec.Result{}, err
	}
	c, err := kube.Connect(ctx, j)
	if unbegun := job.Unbegun(ctx, j); unbegun != nil {
		return jobspec.Result{}, unbegun
	}
	if err != nil {
		return jobspec.Result{}, err
	}
	a := &applying{
		component: component{
			cluster: c, inventory: c.InventoryOf(j, p.Namespace),
			createNamespace: p.CreateNamespace, destroy: p.Destroy, objects: p.Objects,
		},
		job: j, planned: kube.Unpin(p.Changes),
	}
	if p.Destroy {
		return jobspec.Result{}, a.partly(a.teardown(ctx))
	}
	if err := a.partly(a.rollOut(ctx)); err != nil {
		return jobspec.Result{}, err
	}
	return a.withOutputs(ctx, j, jobspec.Result{})
}

// applying is an apply in progress.
type applying struct {
	component
	job     *job.Job
	planned []kube.Change
	record  kube.Record // the inventory, as we left it
	now     []kube.Change
	wrote   bool // at least one write was made
}

// rollOut makes, changes and prunes.
func (a *applying) rollOut(ctx context.Context) error {
	if err := a.begin(ctx); err != nil {
		return err
	}
	if err := a.inventory.Keep(ctx, &a.record, a.claimed()); err != nil {
		return err
	}
	if err := a.writeAll(ctx); err != nil {
		return err
	}
	if err := a.cluster.Wait(ctx, a.refs(), a.job, kube.WaitOptions{FailFast: true, Jobs: true}); err != nil {
		return err
	}
	// What is replaced serves until here.
	if err := a.removeAll(ctx); err != nil {
		return err
	}
	return a.inventory.Keep(ctx, &a.record, append(a.refs(), a.kept()...))
}

// claimed are the objects that are recorded before the first write: what is
// there, and all that may be made. What is taken over is recorded once it is
// ours.
func (a *applying) claimed() []kube.Ref {
	var objects []kube.Ref
	now := byObject(a.now)
	for _, ref := range a.refs() {
		if !strings.HasPrefix(now[ref].Reason, takenOver) {
			objects = append(objects, ref)
		}
	}
	for _, ref := range a.record.Objects {
		if !slices.ContainsFunc(objects, ref.Same) {
			objects = append(objects, ref)
		}
	}
	return objects
}

// begin claims the component and finds out whether the plan still holds.
func (a *applying) begin(ctx context.Context) error {
	namespace := a.inventory.Namespace
	_, missing, err := a.namespaces(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(missing, namespace) {
		// The inventory is in it, so there is nothing to claim yet; it is only
		// made when everything else is as it was planned.
		if err := a.compare(ctx); err != nil {
			return err
		}
		if err := a.cluster.EnsureNamespace(ctx, namespace, a.inventory.Install, true); err != nil {
			return err
		}
		a.job.Logf("created namespace %s", namespace)
	}
	if a.record, err = a.inventory.Claim(ctx, a.job.Spec.Fence); err != nil {
		return err
	}
	return a.compare(ctx)
}

// compare finds out what is to be done now, and fails when that is not what was
// planned.
func (a *applying) compare(ctx context.Context) error {
	var err error
	if a.now, err = a.changes(ctx, a.record, a.planned); err != nil {
		return err
	}
	if differs := kube.Compare(a.planned, a.now); len(differs) > 0 {
		return kube.Stale(a.job.Subject(), differs)
	}
	return nil
}

// kept are the objects that left the manifest and stay.
func (a *applying) kept() []kube.Ref {
	var kept []kube.Ref
	for _, c := range a.now {
		if c.Action == kube.ActionKeep {
			kept = append(kept, c.Object)
		}
	}
	return kept
}

// teardown removes everything, in the order of the plan, and waits for it.
func (a *applying) teardown(ctx context.Context) error {
	var err error
	if a.record, err = a.inventory.Load(ctx); err != nil {
		return err
	}
	if err := a.compare(ctx); err != nil {
		return err
	}
	toDelete := slices.ContainsFunc(a.now, func(c kube.Change) bool { return c.Action == kube.ActionDelete })
	if a.record.Exists || toDelete {
		if a.record, err = a.inventory.Claim(ctx, a.job.Spec.Fence); err != nil {
			return err
		}
	}
	if err := a.removeAll(ctx); err != nil {
		return err
	}
	kept := keepsIn(a.now, a.inventory.Namespace)
	if kept {
		if err := a.cluster.KeepNamespace(ctx, a.inventory); err != nil {
			return err
		}
	}
	if err := a.inventory.Delete(ctx); err != nil || kept {
		return err
	}
	removed, err := a.cluster.ReleaseNamespace(ctx, a.inventory)
	if removed && err == nil {
		a.job.Logf("removed namespace %s", a.inventory.Namespace)
	}
	return err
}

// partly corrects what a failure says of its outcome: stale and refused mean
// that nothing was done.
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
