package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// side by side dry runs of one plan
const maxDryRuns = 8

// step is what happens to one object: the change, and how it is written.
type step struct {
	kube.Change
	target *unstructured.Unstructured // nil for one that goes
	patch  patch
	going  bool // another object of that name is just being removed
}

// a differ finds out what a release would change, by dry runs on the server.
type differ struct {
	cluster       *kube.Cluster
	owner         owner
	takeOwnership bool
	// absent are namespaces that are not there yet, own the kinds that the chart
	// brings: nothing in them can be tried.
	absent map[string]bool
	own    kinds
	// past are the objects of the revisions that the release follows, base those
	// of the deployed one.
	past map[kube.Ref][]*unstructured.Unstructured
	base map[kube.Ref]bool
}

// wanted are the steps for the objects that the release is to have, in order.
func (d *differ) wanted(ctx context.Context, targets []*unstructured.Unstructured) ([]step, error) {
	steps := make([]step, len(targets))
	foreign := make([]string, len(targets))
	refused := make([]*job.Failure, len(targets))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxDryRuns)
	for i, target := range targets {
		g.Go(func() error {
			var err error
			steps[i], err = d.step(gctx, target)
			if f, ok := errors.AsType[*foreignError](err); ok {
				foreign[i] = f.Error()
				return nil
			}
			if f, ok := errors.AsType[*kube.Refusal](err); ok {
				refused[i] = f.Failure
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := kube.All(refused); err != nil {
		return nil, err
	}
	foreign = slices.DeleteFunc(foreign, func(s string) bool { return s == "" })
	if len(foreign) > 0 {
		return nil, job.Failf("remove them, or set take_ownership to take over those of no release",
			"release %s would take what is not its own: %s", d.owner.name, strings.Join(foreign, "; "))
	}
	return steps, nil
}

// foreignError is of an object that is there and not of this release.
type foreignError struct {
	ref   kube.Ref
	owner owner
}

func (e *foreignError) Error() string {
	if e.owner == (owner{}) {
		return e.ref.Address() + " belongs to no release"
	}
	return fmt.Sprintf("%s belongs to release %s in namespace %s", e.ref.Address(), e.owner.name, e.owner.namespace)
}

// step is the one of an object that the release is to have. Controllers write to
// objects all the time; a dry run that one of them outran is done again.
func (d *differ) step(ctx context.Context, target *unstructured.Unstructured) (step, error) {
	var s step
	look := func() (err error) {
		s, err = d.look(ctx, target)
		return err
	}
	err := kube.OnConflict(look, ctx.Err)
	if apierrors.IsConflict(err) {
		err = kube.Explain(err, "try a change of "+kube.RefOf(target).String())
	}
	return s, err
}

func (d *differ) look(ctx context.Context, target *unstructured.Unstructured) (step, error) {
	ref := kube.RefOf(target)
	live, err := d.cluster.Get(ctx, ref)
	if err != nil {
		return step{}, kube.Explain(err, "read "+ref.String())
	}
	if live == nil {
		return step{Change: kube.Created(target), target: target}, d.tryCreate(ctx, target)
	}
	if live.GetDeletionTimestamp() != nil {
		return step{Change: kube.Created(target), target: target, going: true}, nil
	}
	original, adopted := target, false
	switch versions := d.past[keyOf(ref)]; {
	case !d.owner.owns(live) && !d.base[keyOf(ref)]:
		if adopted = d.takeOwnership && ownerOf(live) == (owner{}); !adopted {
			return step{}, &foreignError{ref, ownerOf(live)}
		}
	case len(versions) > 0:
		if original, err = remembered(versions); err != nil {
			return step{}, fmt.Errorf("%s: %w", ref, err)
		}
	}
	p, err := threeWay(original, target, live)
	if err != nil {
		return step{}, fmt.Errorf("%s: %w", ref, err)
	}
	after := live
	if !p.empty() {
		if after, err = d.write(ctx, ref, live, p, []string{metav1.DryRunAll}); err != nil {
			return step{}, err
		}
	}
	s := step{Change: kube.Updated(live, after), target: target, patch: p}
	if adopted {
		s.Reason = takenOver
	}
	return s, nil
}

// tryCreate asks the server whether it would take a new object.
func (d *differ) tryCreate(ctx context.Context, target *unstructured.Unstructured) error {
	if _, own := d.own[target.GroupVersionKind().GroupKind()]; own || d.absent[target.GetNamespace()] {
		return nil
	}
	err := d.create(ctx, target, []string{metav1.DryRunAll})
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = nil // somebody makes it just now: the apply sees that
	}
	return err
}

func (d *differ) create(ctx context.Context, target *unstructured.Unstructured, dryRun []string) error {
	resource, err := d.cluster.Resource(target.GroupVersionKind(), target.GetNamespace())
	if err != nil {
		return kube.Explain(err, "create "+kube.RefOf(target).String())
	}
	_, err = resource.Create(ctx, target, metav1.CreateOptions{
		DryRun: dryRun, FieldManager: kube.FieldManager, FieldValidation: metav1.FieldValidationStrict,
	})
	return explainWrite(err, "create", kube.RefOf(target))
}

// write sends a patch for exactly the version of the object that was read.
func (d *differ) write(ctx context.Context, ref kube.Ref, live *unstructured.Unstructured, p patch, dryRun []string) (*unstructured.Unstructured, error) {
	body, err := p.at(live)
	if err != nil {
		return nil, err
	}
	resource, err := d.cluster.Resource(ref.GVK(), ref.Namespace)
	if err != nil {
		return nil, kube.Explain(err, "change "+ref.String())
	}
	obj, err := resource.Patch(ctx, ref.Name, p.kind, body, metav1.PatchOptions{
		DryRun: dryRun, FieldManager: kube.FieldManager, FieldValidation: metav1.FieldValidationStrict,
	})
	return obj, explainWrite(err, "change", ref)
}

// explainWrite keeps the errors after which a write is tried again.
func explainWrite(err error, doing string, ref kube.Ref) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return err
	}
	return kube.MarkRefusal(kube.Explain(err, doing+" "+ref.String()), err)
}

// unwanted are the steps for objects of the revisions before that are not
// wanted any more, in the order of removal.
func (d *differ) unwanted(ctx context.Context, order []kube.Ref, wanted []*unstructured.Unstructured) ([]step, error) {
	keep := map[kube.Ref]bool{}
	for _, obj := range wanted {
		keep[refKey(obj)] = true
	}
	var refs []kube.Ref
	for _, key := range order {
		if !keep[key] {
			versions := d.past[key]
			refs = append(refs, kube.RefOf(versions[len(versions)-1]))
		}
	}
	kube.SortForDelete(refs)
	return d.removals(ctx, refs)
}

// removals are the steps that remove objects, as far as they are there, belong
// to the release and may go.
func (d *differ) removals(ctx context.Context, refs []kube.Ref) ([]step, error) {
	steps := make([]step, len(refs))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxDryRuns)
	for i, ref := range refs {
		g.Go(func() error {
			var err error
			steps[i], err = d.removal(gctx, ref)
			return err
		})
	}
	return steps, g.Wait()
}

func (d *differ) removal(ctx context.Context, ref kube.Ref) (step, error) {
	live, err := d.cluster.Get(ctx, ref)
	if err != nil {
		return step{}, kube.Explain(err, "read "+ref.String())
	}
	s := step{Change: kube.Deleted(ref, live)}
	switch {
	case live == nil:
	case !d.owner.owns(live):
		s.Action = kube.ActionNone // it is somebody else's by now
	case kept(live):
		s.Action, s.Reason = kube.ActionKeep, keptByPolicy
	case d.base[keyOf(ref)]:
		s.Reason = noLongerInChart
	default:
		s.Reason = leftByAnAttempt
	}
	return s, nil
}

func changesOf(steps []step) []kube.Change {
	out := make([]kube.Change, len(steps))
	for i, s := range steps {
		out[i] = s.Change
	}
	return out
}
