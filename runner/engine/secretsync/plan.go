package secretsync

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Plan says which copies an apply would make, change and remove, and pins their values. It
// changes nothing.
func Plan(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	s := syncing{job: j, destroy: j.Spec.Destroy}
	if !s.destroy {
		var without []string
		var err error
		if s.targets, without, err = wanted(j); err != nil {
			return jobspec.Result{}, err
		}
		for _, name := range without {
			j.Logf("secret %s has no value, so it is not copied", name)
		}
	}
	if err := s.connect(ctx); err != nil {
		return jobspec.Result{}, err
	}
	record, err := s.inventory.Load(ctx)
	if err != nil {
		return jobspec.Result{}, err
	}
	before := previous(j)
	changes, err := s.changes(ctx, record, before)
	if err != nil {
		return jobspec.Result{}, err
	}
	changes = kube.Settle(before, changes)
	if err := s.write(ctx, changes); err != nil {
		return jobspec.Result{}, err
	}
	summary := kube.Summarise(changes, nil)
	for _, o := range summary.Objects {
		j.Logf("%s %s", o.Action, o.Address)
	}
	if summary.NoChange && !s.destroy {
		return s.withOutputs(ctx, jobspec.Result{NoChange: true})
	}
	return jobspec.Result{NoChange: summary.NoChange}, nil
}

// syncing is what a job wants of the cluster.
type syncing struct {
	job       *job.Job
	cluster   *kube.Cluster
	inventory *kube.Inventory
	destroy   bool
	targets   []target // none for a teardown
}

func (s *syncing) connect(ctx context.Context) (err error) {
	if s.cluster, err = kube.Connect(ctx, s.job); err != nil {
		return err
	}
	s.inventory = s.cluster.InventoryOf(s.job, kube.NamespaceOf(s.job.Spec.InstallID, ""))
	return nil
}

// changes are what has to be done now, in the order of doing it: namespaces, copies, what
// goes. previous are those of a plan whose deletes may have been done already.
func (s *syncing) changes(ctx context.Context, record kube.Record, previous []kube.Change) ([]kube.Change, error) {
	changes, err := s.namespaces(ctx, record)
	if err != nil {
		return nil, err
	}
	var refusals []*job.Failure
	for _, t := range s.targets {
		live, err := s.get(ctx, t.ref())
		if err != nil {
			return nil, err
		}
		change, refusal := t.change(live, s.inventory.Install)
		if refusal != nil {
			refusals = append(refusals, refusal)
			continue
		}
		changes = append(changes, change)
	}
	if err := kube.All(refusals); err != nil {
		return nil, err
	}
	gone, err := s.going(ctx, record, previous)
	return append(changes, gone...), err
}

// namespaces are those of the inventory and of all copies: one that is missing is made,
// since the sync comes before the components that live there.
func (s *syncing) namespaces(ctx context.Context, record kube.Record) (changes []kube.Change, err error) {
	if s.destroy || len(s.targets) == 0 && !record.Exists {
		return nil, nil
	}
	for _, name := range s.spaces() {
		change, err := s.cluster.NamespaceChange(ctx, name, s.inventory.Install, true)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// spaces are the namespaces of the inventory and of the copies, each once, the
// inventory's first.
func (s *syncing) spaces() []string {
	names := []string{s.inventory.Namespace}
	for _, t := range s.targets {
		if !slices.Contains(names, t.Namespace) {
			names = append(names, t.Namespace)
		}
	}
	return names
}

// going are the changes of what is recorded, or was about to be removed, and is not wanted.
// Namespaces go with a teardown alone.
func (s *syncing) going(ctx context.Context, record kube.Record, previous []kube.Change) (changes []kube.Change, err error) {
	refs := slices.Clone(record.Objects)
	for _, p := range previous {
		if p.Action == kube.ActionDelete && !slices.ContainsFunc(refs, p.Object.Same) {
			refs = append(refs, p.Object)
		}
	}
	kube.SortForDelete(refs)
	for _, ref := range refs {
		if ref.Kind != "Secret" || slices.ContainsFunc(s.targets, func(t target) bool { return t.ref().Same(ref) }) {
			continue
		}
		live, err := s.get(ctx, ref)
		if err != nil {
			return nil, err
		}
		if live != nil && !ours(live, s.inventory.Install) {
			s.job.Logf("%s is no longer a copy of this install: it stays", ref.Address())
		}
		changes = append(changes, removal(ref, live, s.inventory.Install))
	}
	if !s.destroy {
		return changes, nil
	}
	end, err := s.end(ctx, refs)
	return append(changes, end...), err
}

// end is what a teardown ends with: the namespaces that were made for copies, the
// inventory, and its namespace.
func (s *syncing) end(ctx context.Context, refs []kube.Ref) (changes []kube.Change, err error) {
	for _, ref := range refs {
		if ref.Kind == "Namespace" && ref.Name != s.inventory.Namespace {
			change, err := s.cluster.NamespaceRelease(ctx, s.in(ref.Name))
			if err != nil {
				return nil, err
			}
			changes = append(changes, change)
		}
	}
	list, err := s.cluster.Get(ctx, s.inventory.Ref())
	if err != nil {
		return nil, kube.Explain(err, "read "+s.inventory.Ref().Address())
	}
	change := kube.Deleted(s.inventory.Ref(), list)
	change.Reason = "the list of the copies"
	own, err := s.cluster.NamespaceRelease(ctx, s.inventory)
	return append(changes, change, own), err
}

// in is the inventory as if it were in another namespace: that one is released when no
// component has its own there.
func (s *syncing) in(namespace string) *kube.Inventory {
	there := *s.inventory
	there.Namespace = namespace
	return &there
}

// get reads a Secret; nil when it, or its namespace, is not there.
func (s *syncing) get(ctx context.Context, ref kube.Ref) (*corev1.Secret, error) {
	live, err := s.cluster.Client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, kube.Explain(err, "read "+ref.Address())
}

// withOutputs adds which copies there are.
func (s *syncing) withOutputs(ctx context.Context, result jobspec.Result) (jobspec.Result, error) {
	data, err := job.Marshal(copied(s.targets))
	if err != nil {
		return result, err
	}
	result.Outputs = jobspec.Outputs{jobspec.CopiesOutput: {Value: data}}
	return result, s.job.LeaveJSON(ctx, "outputs.json", result.Outputs)
}
