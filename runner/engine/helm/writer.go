package helm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	helmkube "helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// writer is the client that Helm's actions write with. What they ask to be
// written of the release's own objects is written as the plan showed it, and
// nothing else is; hooks and CRDs are created as asked. Before each write the
// claim on the component is checked.
type writer struct {
	*helmkube.Client // builds lists of objects, reads logs of pods

	// ctx ends when the job is to stop, which every method takes as the next safe
	// point.
	ctx       context.Context //nolint:containedctx // the methods that Helm calls have none
	job       *job.Job
	cluster   *kube.Cluster
	inventory *kube.Inventory
	differ    *differ
	namespace kube.Ref // of the release; it goes last, when all else is gone

	// planned is what was approved, steps are what is to be written for it now,
	// by object, and gone what is to be removed.
	planned map[kube.Ref]kube.Change
	steps   map[kube.Ref]step
	gone    []step

	wrote   bool  // something, so that a failure is no longer without effect
	failure error // the first, as Helm passes on only the text of some
}

var (
	_ helmkube.Interface                    = (*writer)(nil)
	_ helmkube.InterfaceExt                 = (*writer)(nil)
	_ helmkube.InterfaceThreeWayMerge       = (*writer)(nil)
	_ helmkube.InterfaceDeletionPropagation = (*writer)(nil)
)

func (w *writer) plan(changes []kube.Change) {
	w.planned = map[kube.Ref]kube.Change{}
	for _, c := range changes {
		w.planned[keyOf(c.Object)] = c
	}
}

// fail keeps the first failure.
func (w *writer) fail(err error) error {
	if err != nil && w.failure == nil {
		w.failure = err
	}
	return err
}

// ready is asked before each write.
func (w *writer) ready() error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return w.inventory.Held(w.ctx)
}

// Build reads the objects of a stream. What a revision had of a kind that the
// cluster no longer has is left out: it is gone with the kind. Helm's check
// against the server's schema is not repeated, the plan's dry run was stricter.
func (w *writer) Build(reader io.Reader, validate bool) (helmkube.ResourceList, error) {
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	list, err := w.Client.Build(bytes.NewReader(text), false)
	if err == nil || validate || !kube.IsUnknownKind(err) {
		return list, err
	}
	known, err := w.knownKinds(string(text))
	if err != nil {
		return nil, err
	}
	return w.Client.Build(bytes.NewReader(known), false)
}

func (w *writer) knownKinds(text string) ([]byte, error) {
	objects, err := kube.ParseObjects(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, obj := range objects {
		if _, err := w.cluster.Namespaced(obj.GroupVersionKind()); kube.IsUnknownKind(err) {
			continue
		}
		data, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "---\n%s\n", data)
	}
	return b.Bytes(), nil
}

// Create is called for the objects of a first install, for CRDs and for hooks.
func (w *writer) Create(list helmkube.ResourceList) (*helmkube.Result, error) {
	if w.ofRelease(list) {
		return w.Update(nil, list, false)
	}
	var there error
	for _, info := range list {
		err := w.createOther(info)
		if apierrors.IsAlreadyExists(err) {
			there = err // Helm takes that of a CRD for fine
			continue
		}
		if err != nil {
			return nil, w.fail(err)
		}
	}
	return &helmkube.Result{Created: list}, there
}

// ofRelease tells the release's own objects from hooks and CRDs.
func (w *writer) ofRelease(list helmkube.ResourceList) bool {
	for _, info := range list {
		if _, ok := w.steps[infoKey(info)]; ok {
			return true
		}
	}
	return false
}

func (w *writer) createOther(info *resource.Info) error {
	if err := w.ready(); err != nil {
		return err
	}
	obj, err := resource.NewHelper(info.Client, info.Mapping).WithFieldManager(kube.FieldManager).Create(info.Namespace, true, info.Object)
	if apierrors.IsAlreadyExists(err) {
		return err
	}
	if err != nil {
		return kube.Explain(err, "create "+infoRef(info).String())
	}
	w.wrote = true
	w.job.Logf("created %s", infoRef(info))
	return info.Refresh(obj, true)
}

// Update writes the release's objects: what is to be, in order, then what is to
// go. Helm's idea of the original is not needed, since the plan has its own.
func (w *writer) Update(_, target helmkube.ResourceList, _ bool) (*helmkube.Result, error) {
	result := &helmkube.Result{}
	defer w.job.Show(jobspec.Progress{})
	for i, info := range target {
		s, ok := w.steps[infoKey(info)]
		if !ok {
			return result, w.fail(job.Refusef("plan again", "%s is not in the plan", infoRef(info)))
		}
		w.job.Show(kube.Applying(infoRef(info), i, len(target)))
		if err := w.put(s); err != nil {
			return result, w.fail(err)
		}
		if s.Action == kube.ActionCreate {
			result.Created = append(result.Created, info)
		} else {
			result.Updated = append(result.Updated, info)
		}
	}
	return result, w.fail(w.removeGone())
}

// UpdateThreeWayMerge is Update: all kinds are merged that way.
func (w *writer) UpdateThreeWayMerge(original, target helmkube.ResourceList, force bool) (*helmkube.Result, error) {
	return w.Update(original, target, force)
}

// Delete is called for hooks, by their delete policies.
func (w *writer) Delete(list helmkube.ResourceList) (*helmkube.Result, []error) {
	if err := w.ready(); err != nil {
		return nil, []error{w.fail(err)}
	}
	return w.Client.Delete(list)
}

// DeleteWithPropagationPolicy is called by an uninstall, for the objects of the
// last revision. What goes is what the plan showed.
func (w *writer) DeleteWithPropagationPolicy(list helmkube.ResourceList, _ metav1.DeletionPropagation) (*helmkube.Result, []error) {
	if err := w.removeGone(); err != nil {
		return nil, []error{w.fail(err)}
	}
	return &helmkube.Result{Deleted: list}, nil
}

// Wait waits until objects are ready, and says which is not.
func (w *writer) Wait(list helmkube.ResourceList, timeout time.Duration) error {
	return w.wait(infoRefs(list), timeout, kube.WaitOptions{FailFast: true})
}

// WaitWithJobs is Wait: a Job is ready when it is done.
func (w *writer) WaitWithJobs(list helmkube.ResourceList, timeout time.Duration) error {
	return w.Wait(list, timeout)
}

// WaitForDelete waits until objects are gone: hooks, or all that a teardown
// removes.
func (w *writer) WaitForDelete(list helmkube.ResourceList, timeout time.Duration) error {
	var refs []kube.Ref
	teardown := false
	for _, info := range list {
		if _, ok := w.planned[infoKey(info)]; ok {
			teardown = true
		} else {
			refs = append(refs, infoRef(info))
		}
	}
	if teardown {
		refs = w.removed()
	}
	return w.wait(refs, timeout, kube.WaitOptions{Gone: true})
}

// removed are the release's objects that the plan removes.
func (w *writer) removed() []kube.Ref {
	var refs []kube.Ref
	for key, c := range w.planned {
		if c.Action == kube.ActionDelete && key != w.namespace {
			refs = append(refs, c.Object)
		}
	}
	kube.SortForDelete(refs)
	return refs
}

func (w *writer) wait(refs []kube.Ref, timeout time.Duration, opts kube.WaitOptions) error {
	ctx, cancel := context.WithTimeoutCause(w.ctx, timeout, job.ErrTimeout)
	defer cancel()
	return w.fail(w.cluster.Wait(ctx, refs, w.job, opts))
}

func infoRef(info *resource.Info) kube.Ref {
	gvk := info.Mapping.GroupVersionKind
	return kube.Ref{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: info.Namespace, Name: info.Name}
}

func infoKey(info *resource.Info) kube.Ref { return keyOf(infoRef(info)) }

func infoRefs(list helmkube.ResourceList) []kube.Ref {
	refs := make([]kube.Ref, len(list))
	for i, info := range list {
		refs[i] = infoRef(info)
	}
	return refs
}
