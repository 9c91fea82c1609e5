package kube

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Documents are what rules are held against: one for each object that a plan wants or
// removes, with what the API server would make of it where a dry run told. A wanted object
// that stays as it is has an update from itself to itself.
func Documents(j *job.Job, changes []Change, wanted []*unstructured.Unstructured) ([]policy.Document, error) {
	targets := map[Ref]*unstructured.Unstructured{}
	for _, target := range wanted {
		targets[RefOf(target).key()] = target
	}
	var list []policy.Document
	add := func(ref Ref, o policy.Operation, body, old *unstructured.Unstructured) error {
		d, err := Document(j, ref, o, body, old)
		list = append(list, d)
		return err
	}
	for _, c := range changes {
		target, isWanted := targets[c.Object.key()]
		after := c.After
		if after == nil {
			after = target
		}
		var err error
		switch c.Action {
		case ActionCreate:
			err = add(c.Object, policy.Create, after, nil)
		case ActionUpdate:
			err = add(c.Object, policy.Update, after, c.Live)
		case ActionReplace:
			if err = add(c.Object, policy.Delete, nil, c.Live); err == nil {
				err = add(c.Object, policy.Create, after, nil)
			}
		case ActionDelete:
			err = add(c.Object, policy.Delete, nil, c.Live)
		case ActionNone, ActionKeep:
			if isWanted && c.Live != nil {
				err = add(c.Object, policy.Update, c.Live, c.Live)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Document is that of one object.
func Document(j *job.Job, ref Ref, o policy.Operation, body, old *unstructured.Unstructured) (d policy.Document, err error) {
	d = documents.Of(j, policy.FormObject, ref.Shown())
	d.Operation = o
	if d.Body, err = judged(body); err == nil {
		d.Old, err = judged(old)
	}
	if err != nil {
		return d, fmt.Errorf("document of %s: %w", ref, err)
	}
	return d, nil
}

// judged is an object without what the API server keeps for itself.
func judged(obj *unstructured.Unstructured) ([]byte, error) {
	if obj == nil {
		return nil, nil
	}
	obj = &unstructured.Unstructured{Object: shallow(obj.Object)}
	if metadata, ok := obj.Object["metadata"].(map[string]any); ok {
		metadata = shallow(metadata)
		delete(metadata, "managedFields")
		obj.Object["metadata"] = metadata
	}
	return job.Marshal(obj.Object)
}

// Bare are objects without what Secrets hold.
func Bare(objects []*unstructured.Unstructured) (list []json.RawMessage, err error) {
	for _, obj := range objects {
		bare := obj.Object
		if obj.GetKind() == "Secret" {
			bare = map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": "Secret", "metadata": map[string]any{"name": obj.GetName(), "namespace": obj.GetNamespace()}}
		}
		raw, err := job.Marshal(bare)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", RefOf(obj), err)
		}
		list = append(list, raw)
	}
	return list, nil
}

func shallow(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
