package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// component is what a manifest wants of a cluster.
type component struct {
	cluster         *kube.Cluster
	inventory       *kube.Inventory
	createNamespace bool
	destroy         bool
	// objects are the targets in the order of installing; none for a teardown.
	objects []*unstructured.Unstructured
}

// dryRuns is how many objects are asked for at the same time.
const dryRuns = 8

// changes are what has to be done now, in the order of doing it: the namespace,
// the targets, then what goes. record is the inventory; previous are the changes
// of a plan whose deletes may have been done already.
func (m component) changes(ctx context.Context, record kube.Record, previous []kube.Change) ([]kube.Change, error) {
	changes, missing, err := m.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	others, err := m.inventory.Others(ctx)
	if err != nil {
		return nil, err
	}
	wanted := make([]kube.Change, len(m.objects))
	refusals := make([]*job.Failure, len(m.objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dryRuns)
	for i, target := range m.objects {
		group.Go(func() (err error) {
			later := slices.Contains(missing, target.GetNamespace())
			wanted[i], err = m.change(ctx, target, owners{record.Objects, others}, later)
			if f, ok := errors.AsType[*kube.Refusal](err); ok {
				refusals[i] = f.Failure
				return nil
			}
			return err
		})
	}
	going := m.going(record, previous)
	gone := make([]kube.Change, len(going))
	for i, p := range going {
		group.Go(func() (err error) {
			gone[i], err = m.removal(ctx, p, others)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := kube.All(refusals); err != nil {
		return nil, err
	}
	return slices.Concat(changes, wanted, gone), nil
}

// namespaces gives the change of the component's own namespace, unless that is a
// target itself, and the names of those that an apply makes before objects can be
// in them.
func (m component) namespaces(ctx context.Context) (own []kube.Change, missing []string, err error) {
	if m.destroy {
		return nil, nil, nil
	}
	isTarget := false
	for _, target := range m.objects {
		ref := kube.RefOf(target)
		if !isNamespace(ref) {
			continue
		}
		isTarget = isTarget || ref.Name == m.inventory.Namespace
		live, err := m.cluster.Get(ctx, ref)
		if err != nil {
			return nil, nil, kube.Explain(err, "read "+ref.Address())
		}
		if live == nil || live.GetDeletionTimestamp() != nil {
			missing = append(missing, ref.Name)
		}
	}
	if isTarget {
		return nil, missing, nil
	}
	change, err := m.cluster.NamespaceChange(ctx, m.inventory.Namespace, m.inventory.Install, m.createNamespace)
	if err != nil {
		return nil, nil, err
	}
	if change.Action == kube.ActionCreate {
		missing = append(missing, m.inventory.Namespace)
	}
	return []kube.Change{change}, missing, nil
}

// owners are the objects of this component, and of others with their names.
type owners struct {
	own    []kube.Ref
	others map[kube.Ref]string
}

// change is what has to be done with a target. later: its namespace is only made
// by the apply, so that there can be no dry run.
func (m component) change(ctx context.Context, target *unstructured.Unstructured, of owners, later bool) (kube.Change, error) {
	ref := kube.RefOf(target)
	if later {
		return kube.Created(target), nil
	}
	live, err := m.cluster.Get(ctx, ref)
	if err != nil {
		return kube.Change{}, kube.Explain(err, "read "+ref.Address())
	}
	recorded := slices.ContainsFunc(of.own, ref.Same)
	halfMade := m.halfMade(live)
	going := live != nil && live.GetDeletionTimestamp() != nil // made once the old one is gone
	if going || halfMade && !recorded {
		return kube.Created(target), nil
	}
	other := ref.OwnedBy(of.others)
	ours := recorded || other == "" && appliedByUs(live)
	after, takes, err := dryRun(ctx, m.cluster, target, live)
	switch {
	case live == nil && (err == nil || kube.IsUnknownKind(err)): // place has seen its CRD among the targets
		return kube.Created(target), nil
	case err != nil && ours && live != nil:
		return m.refusedUpdate(ctx, live, target, err)
	case err != nil:
		return kube.Change{}, kube.MarkRefusal(refused(err, ref), err)
	}
	change := kube.Updated(live, after)
	change.Takes = takes
	changes := change.Action != kube.ActionNone || len(takes) > 0
	switch {
	case halfMade && changes:
		return kube.Created(target), nil
	case ours:
		return change, nil
	}
	return takeOver(change, other)
}

// takeOver makes an object ours that another component has, or that nobody has.
func takeOver(change kube.Change, component string) (kube.Change, error) {
	change.Action, change.Reason = kube.ActionUpdate, takenOver
	if component != "" {
		change.Reason += " from component " + component
		return change, nil
	}
	if release := helmRelease(change.Live); release != "" {
		return kube.Change{}, job.Failf("rename it in one of the two", "%s belongs to the Helm release %s", change.Object.Address(), release)
	}
	return change, nil
}

// takenOver is the reason of an update of an object that somebody else made. It
// may have no fields: what is wanted is there, and becomes ours.
const takenOver = "it is there already and is taken over"

// halfMade tells whether a namespace is one that an apply of this install made
// and has not applied to yet, as far as the server knows: it counts as not there,
// unless the inventory has it and nothing is left to be applied. A manifest that
// says no more than its name leaves no trace on the server.
func (m component) halfMade(live *unstructured.Unstructured) bool {
	return live != nil && isNamespace(kube.RefOf(live)) && live.GetLabels()[kube.LabelCreatedFor] == m.inventory.Install && !appliedByUs(live)
}

// A leaving object was of the component and is no longer. uid is set for one
// that only a plan knows: an apply has removed it from the inventory.
type leaving struct {
	kube.Ref
	uid string
}

// going are the objects that leave, in the order of deleting.
func (m component) going(record kube.Record, previous []kube.Change) []leaving {
	refs, uids := slices.Clone(record.Objects), map[kube.Ref]string{}
	for _, p := range previous {
		if p.Action == kube.ActionDelete && !slices.ContainsFunc(refs, p.Object.Same) {
			refs, uids[p.Object] = append(refs, p.Object), p.UID
		}
	}
	kube.SortForDelete(refs)
	var going []leaving
	for _, ref := range refs {
		wanted := slices.ContainsFunc(m.objects, func(o *unstructured.Unstructured) bool { return ref.Same(kube.RefOf(o)) })
		// A teardown ends with these, see Plan.
		ours := ref.Same(m.inventory.Ref()) || isNamespace(ref) && ref.Name == m.inventory.Namespace
		if !wanted && !ours {
			going = append(going, leaving{ref, uids[ref]})
		}
	}
	return going
}

// removal is what happens to an object that leaves.
func (m component) removal(ctx context.Context, p leaving, others map[kube.Ref]string) (kube.Change, error) {
	if p.OwnedBy(others) != "" {
		return kube.Change{Object: p.Ref}, nil // it moved there
	}
	live, err := m.cluster.Get(ctx, p.Ref)
	if err != nil {
		return kube.Change{}, kube.Explain(err, "read "+p.Address())
	}
	if live != nil && p.uid != "" && p.uid != string(live.GetUID()) {
		live = nil // ours is gone; somebody made another one
	}
	change := kube.Deleted(p.Ref, live)
	if live == nil {
		return change, nil
	}
	if why := protection(p.Ref, live, m.destroy, m.inventory.Install); why != "" {
		change.Action, change.Reason = kube.ActionKeep, why
		return change, nil
	}
	if isNamespace(p.Ref) {
		there := *m.inventory
		there.Namespace = p.Name
		return m.cluster.NamespaceRelease(ctx, &there)
	}
	return change, nil
}

const (
	annotationPrune = "berth.dev/prune"
	pruneNever      = "never"
	pruneAlways     = "always"
)

// holders are the kinds with which data of others goes.
var holders = []string{"Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "PersistentVolume", "PersistentVolumeClaim"}

// protection says why an object that is no longer wanted stays; "" when it goes.
func protection(ref kube.Ref, live *unstructured.Unstructured, destroy bool, install string) string {
	prune := live.GetAnnotations()[annotationPrune]
	switch {
	case prune == pruneNever:
		return fmt.Sprintf("protected by its annotation %s=%s", annotationPrune, pruneNever)
	case isNamespace(ref) && live.GetLabels()[kube.LabelCreatedFor] != install:
		return "it was there before"
	case !destroy && prune != pruneAlways && slices.Contains(holders, ref.GVK().GroupKind().String()):
		return fmt.Sprintf("a %s is not pruned without the annotation %s=%s", ref.Kind, annotationPrune, pruneAlways)
	}
	return ""
}
