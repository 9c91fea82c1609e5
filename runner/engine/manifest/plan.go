package manifest

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Plan says what an apply would do, by dry runs on the server, and pins the
// objects. It changes nothing.
func Plan(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	c, err := kube.Connect(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	namespace, err := renderNamespace(j)
	if err != nil {
		return jobspec.Result{}, err
	}
	m := component{
		cluster: c, inventory: c.InventoryOf(j, namespace),
		createNamespace: j.Spec.KubernetesManifest.CreateNamespace, destroy: j.Spec.Destroy,
		objects: []*unstructured.Unstructured{},
	}
	rendered := inputs{Namespace: namespace}
	if !m.destroy { // what the manifest's templates read may be gone by then
		if m.objects, rendered.Manifest, err = render(j, c, namespace); err != nil {
			return jobspec.Result{}, err
		}
	}
	record, err := m.inventory.Load(ctx)
	if err != nil {
		return jobspec.Result{}, err
	}
	before := previous(j, namespace)
	changes, err := m.changes(ctx, record, before)
	if err != nil {
		return jobspec.Result{}, err
	}
	if m.destroy {
		end, err := m.end(ctx, changes)
		if err != nil {
			return jobspec.Result{}, err
		}
		changes = append(changes, end...)
	}
	changes = kube.Settle(before, changes)
	plan := intent{
		Namespace: namespace, CreateNamespace: m.createNamespace, Destroy: m.destroy,
		FieldManager: kube.FieldManager, Objects: m.objects, Changes: changes,
	}
	if err := plan.write(j, rendered, m.known(ctx, changes)); err != nil {
		return jobspec.Result{}, err
	}
	return m.planned(ctx, j, changes)
}

// known is what carrying the changes out takes.
func (m component) known(ctx context.Context, changes []kube.Change) footprint.Known {
	if kube.NoChange(changes) {
		return footprint.Known{}
	}
	described := map[kube.Ref]bool{}
	for _, ref := range m.refs() {
		described[ref] = true
	}
	needs := kube.NeedsOf(changes, func(ref kube.Ref) kube.Verbs {
		if isNamespace(ref) && !described[ref] {
			return kube.Patches // it is only made
		}
		return kube.Applies
	})
	return footprint.Known{Uses: m.cluster.Uses(ctx, append(needs, kube.RecordsIn(m.inventory.Namespace, "ConfigMap")...))}
}

// end is what a teardown ends with: the inventory goes, and the namespace if it
// was made for this install and nothing in it is protected.
func (m component) end(ctx context.Context, changes []kube.Change) ([]kube.Change, error) {
	ref := m.inventory.Ref()
	live, err := m.cluster.Get(ctx, ref)
	if err != nil {
		return nil, kube.Explain(err, "read "+ref.Address())
	}
	list := kube.Deleted(ref, live)
	list.Reason = "the list of the objects of this component"
	namespace, err := m.cluster.NamespaceRelease(ctx, m.inventory)
	if err != nil {
		return nil, err
	}
	if namespace.Action != kube.ActionNone && keepsIn(changes, m.inventory.Namespace) {
		namespace.Action, namespace.Reason = kube.ActionKeep, "something in it is protected"
	}
	return []kube.Change{list, namespace}, nil
}

// keepsIn tells whether something in a namespace stays.
func keepsIn(changes []kube.Change, namespace string) bool {
	for _, c := range changes {
		if c.Action == kube.ActionKeep && c.Object.Namespace == namespace {
			return true
		}
	}
	return false
}

// planned completes the result of a plan. One that changes nothing has outputs.
func (m component) planned(ctx context.Context, j *job.Job, changes []kube.Change) (jobspec.Result, error) {
	summary := kube.Summarise(changes, nil)
	for _, o := range summary.Objects {
		j.Logf("%s %s", o.Action, o.Address)
	}
	result := jobspec.Result{NoChange: summary.NoChange}
	if !summary.NoChange {
		j.Logf("%d to create, %d to update, %d to replace, %d to delete", summary.Create, summary.Update, summary.Replace, summary.Delete)
		return result, nil
	}
	j.Logf("nothing to do for %s", j.Subject())
	if m.destroy {
		return result, nil
	}
	return m.withOutputs(ctx, j, result)
}

// withOutputs adds what other components may want to know.
func (m component) withOutputs(ctx context.Context, j *job.Job, result jobspec.Result) (jobspec.Result, error) {
	var err error
	if result.Outputs, err = m.cluster.Outputs(ctx, m.refs()); err != nil {
		return result, err
	}
	return result, j.LeaveJSON(ctx, "outputs.json", result.Outputs)
}

// refs name the targets.
func (m component) refs() []kube.Ref {
	refs := make([]kube.Ref, len(m.objects))
	for i, o := range m.objects {
		refs[i] = kube.RefOf(o)
	}
	return refs
}
