package helm

import (
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/action"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// uninstall plans the removal of a release: of the objects of its deployed
// revision and of all that attempts after it may have left.
func (p *planning) uninstall(ctx context.Context) error {
	p.mode, p.live = modeUninstall, p.standing.last()
	before, follows := previous(p.job, p.in, p.mode)
	d, _, order, err := newDiffer(p.cluster, p.in, p.standing, nil)
	if err != nil {
		return err
	}
	refs := uninstallRefs(d, order, before.Changes, p.in.Namespace)
	steps, err := d.removals(ctx, refs)
	if err != nil {
		return err
	}
	p.changes = changesOf(steps)
	for i := range p.changes {
		if p.changes[i].Action == kube.ActionDelete {
			p.changes[i].Reason = "" // all goes, for one reason
		}
	}
	inventory := p.cluster.InventoryOf(p.job, p.in.Namespace)
	record, err := inventory.Load(ctx)
	if err != nil {
		return err
	}
	namespace, err := p.cluster.NamespaceRelease(ctx, inventory)
	if err != nil {
		return err
	}
	if keepsIn(p.changes, p.in.Namespace) {
		namespace.Action, namespace.Reason = kube.ActionNone, ""
	}
	p.changes = append(p.changes, namespace)
	if p.standing.Last != nil {
		p.hooks = hooksOf(p.standing.Last.Hooks)
	}
	settled := len(p.at.copies) == 0 && p.at.gone == 0
	if p.noChange = p.standing.Last == nil && !record.Exists && settled && kube.NoChange(p.changes); p.noChange {
		return nil
	}
	p.settle(before, follows)
	if !follows {
		return nil
	}
	p.live = max(p.live, before.Live)
	if p.standing.Last == nil {
		p.hooks = before.Hooks // they have run, and it is the same removal
	}
	return nil
}

// uninstallRefs are the objects that may have to go, in order: those of the
// revisions, and those of a removal that was not finished.
func uninstallRefs(d *differ, order []kube.Ref, before []kube.Pinned, namespace string) []kube.Ref {
	var refs []kube.Ref
	known := map[kube.Ref]bool{{Kind: "Namespace", Name: namespace}: true} // has a rule of its own
	for _, key := range order {
		if !known[key] {
			versions := d.past[key]
			refs, known[key] = append(refs, kube.RefOf(versions[len(versions)-1])), true
		}
	}
	for _, c := range before {
		if key := keyOf(c.Object); !known[key] {
			refs, known[key] = append(refs, c.Object), true
		}
	}
	kube.SortForDelete(refs)
	return refs
}

// keepsIn tells whether something in the namespace is protected.
func keepsIn(changes []kube.Change, namespace string) bool {
	for _, c := range changes {
		if c.Action == kube.ActionKeep && c.Object.Namespace == namespace {
			return true
		}
	}
	return false
}

// uninstall removes a release, and its namespace by its rule.
func (a *applying) uninstall(ctx context.Context) error {
	namespace := kube.Ref{Version: "v1", Kind: "Namespace", Name: a.Namespace}
	if found, err := a.cluster.Get(ctx, namespace); err != nil {
		return kube.Explain(err, "read namespace "+a.Namespace)
	} else if found == nil {
		a.job.Logf("namespace %s is gone, and all of release %s with it", a.Namespace, a.ReleaseName)
		return a.forget()
	} else if found.GetDeletionTimestamp() != nil {
		// Nothing can be claimed in it any more, and all in it goes.
		a.job.Logf("namespace %s is being removed, and all of release %s with it", a.Namespace, a.ReleaseName)
		return errors.Join(a.forget(), a.cluster.Wait(ctx, []kube.Ref{namespace}, a.job, kube.WaitOptions{Gone: true}))
	}
	if err := a.claim(ctx); err != nil {
		return err
	}
	d, _, order, err := newDiffer(a.cluster, a.inputs, a.standing, nil)
	if err != nil {
		return err
	}
	steps, err := d.removals(ctx, uninstallRefs(d, order, a.Changes, a.Namespace))
	if err != nil {
		return err
	}
	now := changesOf(steps)
	release, err := a.cluster.NamespaceRelease(ctx, a.inventory)
	if err != nil {
		return err
	}
	if keepsIn(now, a.Namespace) {
		release.Action = kube.ActionNone
	}
	if differs := kube.Compare(a.planned, append(now, release)); len(differs) > 0 {
		return kube.Stale(a.job.Subject(), differs)
	}
	if err := a.prepare(ctx, d, nil, steps); err != nil {
		return err
	}
	for _, name := range a.at.copies {
		if err := a.keeping.clear(name, a.guard(ctx)); err != nil {
			return err
		}
	}
	if err := a.remove(ctx); err != nil {
		return a.explain(nil, err)
	}
	return a.leave(ctx, keepsIn(now, a.Namespace))
}

// forget drops what the control plane keeps of a release that went with its namespace.
func (a *applying) forget() error {
	if a.keeping.held == nil {
		return nil
	}
	return a.keeping.held.Drop(a.Namespace, a.ReleaseName)
}

// remove lets Helm uninstall, and removes what it does not know of.
func (a *applying) remove(ctx context.Context) error {
	if ctx.Err() != nil {
		return &job.Failure{Message: "the teardown of " + a.job.Subject() + " was not begun"}
	}
	if a.standing.Last != nil {
		un := action.NewUninstall(a.config)
		un.Wait, un.Timeout = true, a.timeout(ctx)
		if _, err := un.Run(a.ReleaseName); err != nil {
			return err
		}
	}
	if err := a.writer.removeGone(); err != nil {
		return err
	}
	return a.cluster.Wait(ctx, a.writer.removed(), a.job, kube.WaitOptions{Gone: true})
}

// leave gives up the component and the namespace.
func (a *applying) leave(ctx context.Context, keeps bool) error {
	a.job.Logf("release %s is removed", a.ReleaseName)
	if err := a.inventory.Delete(ctx); err != nil {
		return err
	}
	if keeps {
		a.job.Logf("namespace %s stays: something in it is protected", a.Namespace)
		return a.cluster.KeepNamespace(ctx, a.inventory)
	}
	removed, err := a.cluster.ReleaseNamespace(ctx, a.inventory)
	if removed && err == nil {
		a.job.Logf("namespace %s, which was made for this install, is removed", a.Namespace)
	}
	return err
}
