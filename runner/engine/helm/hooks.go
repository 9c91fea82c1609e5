package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// hook is a hook of a release as it goes into the canonical plan.
type hook struct {
	Name     string              `json:"name"`
	Kind     string              `json:"kind"`
	Events   []release.HookEvent `json:"events"`
	Weight   int                 `json:"weight"`
	Manifest string              `json:"manifest"`
}

func hooksOf(list []*release.Hook) []hook {
	out := make([]hook, len(list))
	for i, h := range list {
		out[i] = hook{Name: h.Name, Kind: h.Kind, Events: h.Events, Weight: h.Weight, Manifest: h.Manifest}
	}
	return out
}

// events are those of which hooks run in a mode.
func (m mode) events() []release.HookEvent {
	switch m {
	case modeInstall:
		return []release.HookEvent{release.HookPreInstall, release.HookPostInstall}
	case modeUpgrade:
		return []release.HookEvent{release.HookPreUpgrade, release.HookPostUpgrade}
	case modeUninstall:
		return []release.HookEvent{release.HookPreDelete, release.HookPostDelete}
	}
	return nil
}

// hookChanges tells people which hooks run, in the order in which they do, and
// what they are.
func hookChanges(list []hook, m mode, key jobspec.DigestKey) []jobspec.ObjectChange {
	var out []jobspec.ObjectChange
	for _, event := range m.events() {
		for _, h := range runningAt(list, event) {
			out = append(out, jobspec.ObjectChange{
				Address: fmt.Sprintf("%s %s", h.Kind, h.Name), Action: "run", Reason: fmt.Sprintf("%s hook", event),
				Fields: hookFields(h, key),
			})
		}
	}
	return out
}

// runningAt are the hooks of an event, in the order in which they run.
func runningAt(list []hook, event release.HookEvent) []hook {
	running := slices.DeleteFunc(slices.Clone(list), func(h hook) bool { return !slices.Contains(h.Events, event) })
	slices.SortStableFunc(running, func(a, b hook) int { return a.Weight - b.Weight })
	return running
}

// tryHooks asks the server, at the plan, whether it would take the objects of the
// hooks that run: else they would stop an apply in its middle. What is made on
// the way only, a kind or a namespace, cannot be tried.
func (p *planning) tryHooks(ctx context.Context, d *differ) error {
	var refused []*job.Failure
	var untried []string
	tried := map[string]bool{}
	for _, event := range p.mode.events() {
		for _, h := range runningAt(p.hooks, event) {
			if tried[h.Manifest] {
				continue // it runs before and after
			}
			tried[h.Manifest] = true
			objects, err := kube.ParseObjects(h.Manifest)
			if err != nil {
				return p.wrong(fmt.Errorf("hook %s %s: %w", h.Kind, h.Name, err))
			}
			for _, obj := range objects {
				err := d.tryHook(ctx, obj, p.in.Namespace)
				f, isRefused := errors.AsType[*kube.Refusal](err)
				switch {
				case errors.Is(err, errUntried):
					untried = append(untried, h.Kind+" "+h.Name)
				case isRefused:
					said := *f.Failure
					said.Message = fmt.Sprintf("%s hook: %s", event, said.Message)
					refused = append(refused, &said)
				case err != nil:
					return err
				}
			}
		}
	}
	if len(untried) > 0 {
		p.notes = append(p.notes, "could not be tried before the apply: "+strings.Join(untried, ", "))
	}
	return kube.All(refused)
}

// documents are what rules are held against: the objects of the release, and those of the
// hooks that run.
func (p *planning) documents() ([]policy.Document, error) {
	list, err := kube.Documents(p.job, p.changes, p.objects)
	if err != nil || p.noChange {
		return list, err
	}
	objects, err := p.hookObjects(p.hooks, p.mode)
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		d, err := kube.Document(p.job, kube.RefOf(obj), policy.Create, obj, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// hookObjects are the objects of the hooks that run in a mode, each once.
func (p *planning) hookObjects(hooks []hook, m mode) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	seen := map[string]bool{}
	for _, event := range m.events() {
		for _, h := range runningAt(hooks, event) {
			if seen[h.Manifest] {
				continue // it runs before and after
			}
			seen[h.Manifest] = true
			objects, err := kube.ParseObjects(h.Manifest)
			if err != nil {
				return nil, p.wrong(err)
			}
			for _, obj := range objects {
				// A kind that is not known yet is one that the chart brings, and Helm
				// makes it in the release's namespace.
				if namespaced, err := p.cluster.Namespaced(obj.GroupVersionKind()); (err != nil || namespaced) && obj.GetNamespace() == "" {
					obj.SetNamespace(p.in.Namespace)
				}
				all = append(all, obj)
			}
		}
	}
	return all, nil
}

// errUntried: whether the server would take an object cannot be found out yet.
var errUntried = errors.New("cannot be tried")

// tryHook asks as Helm does when it makes the object: what the server ignores is
// no fault.
func (d *differ) tryHook(ctx context.Context, obj *unstructured.Unstructured, namespace string) error {
	namespaced, err := d.cluster.Namespaced(obj.GroupVersionKind())
	if kube.IsUnknownKind(err) {
		return errUntried // of a CRD that the chart brings
	}
	doing := "create " + kube.RefOf(obj).String()
	if err != nil {
		return kube.Explain(err, doing)
	}
	if namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(namespace)
	}
	if d.absent[obj.GetNamespace()] {
		return errUntried
	}
	resource, err := d.cluster.Resource(obj.GroupVersionKind(), obj.GetNamespace())
	if err != nil {
		return kube.Explain(err, doing)
	}
	_, err = resource.Create(ctx, obj, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: kube.FieldManager})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return nil // Helm removes what an earlier run has left
	case strings.Contains(err.Error(), "does not support dry run"), apierrors.IsNotFound(err):
		return errUntried // a webhook's choice, or a namespace that another hook makes
	}
	return kube.MarkRefusal(kube.Explain(err, doing), err)
}

// hookFields are the fields of the objects that a hook makes, without the values
// of Secrets.
func hookFields(h hook, key jobspec.DigestKey) []jobspec.FieldChange {
	objects, err := kube.ParseObjects(h.Manifest)
	if err != nil { // the API server will say so too
		return []jobspec.FieldChange{{Path: "manifest", After: "(cannot be read)"}}
	}
	var fields []jobspec.FieldChange
	for _, obj := range objects {
		fields = append(fields, kube.Diff(nil, obj, key)...)
	}
	return fields
}
