package helm

import (
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// patch is a write to an object that is there.
type patch struct {
	kind types.PatchType
	data []byte
}

func (p patch) empty() bool { return len(p.data) == 0 || string(p.data) == "{}" }

// at is the patch for exactly one version of one object: written to any other,
// the server answers with a conflict.
func (p patch) at(live *unstructured.Unstructured) ([]byte, error) {
	var body map[string]any
	if err := json.Unmarshal(p.data, &body); err != nil {
		return nil, err
	}
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = string(live.GetUID()), live.GetResourceVersion()
	body["metadata"] = metadata
	return json.Marshal(body)
}

// threeWay is what Helm would send: fields that were in original and are not in
// target go, fields of target that live has otherwise are set, and all others
// stay. Kinds that are compiled in are merged strategically, others as plain
// JSON. (Helm itself compares custom resources only with their last revision,
// so it does not see what was edited; here they are treated like all others.)
func threeWay(original, target, live *unstructured.Unstructured) (patch, error) {
	var sides [3][]byte
	for i, obj := range []*unstructured.Unstructured{original, target, live} {
		data, err := json.Marshal(obj.Object)
		if err != nil {
			return patch{}, err
		}
		sides[i] = data
	}
	typed, ok := typedObject(target)
	if !ok {
		data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(sides[0], sides[1], sides[2])
		return patch{types.MergePatchType, data}, err
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return patch{}, err
	}
	data, err := strategicpatch.CreateThreeWayMergePatch(sides[0], sides[1], sides[2], meta, true)
	return patch{types.StrategicMergePatchType, data}, err
}

func typedObject(obj *unstructured.Unstructured) (runtime.Object, bool) {
	typed, err := scheme.Scheme.New(obj.GroupVersionKind())
	return typed, err == nil
}

// remembered merges what several revisions wanted of one object, oldest first:
// all that one of them may have written, so that all of it can be taken back.
func remembered(versions []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	merged := versions[0]
	for _, next := range versions[1:] {
		if next.GroupVersionKind() != merged.GroupVersionKind() {
			merged = next
			continue
		}
		a, err := json.Marshal(merged.Object)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(next.Object)
		if err != nil {
			return nil, err
		}
		var both []byte
		if typed, ok := typedObject(next); ok {
			both, err = strategicpatch.StrategicMergePatch(a, b, typed)
		} else {
			both, err = jsonpatch.MergePatch(a, b)
		}
		if err != nil {
			return nil, err
		}
		merged = &unstructured.Unstructured{}
		if err := json.Unmarshal(both, &merged.Object); err != nil {
			return nil, err
		}
	}
	return merged, nil
}
