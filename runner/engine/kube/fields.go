package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
)

// Fields are the fields that differ between two states of an object; nil stands
// for an object that is not there. What the API server keeps for itself
// (status, managedFields, resourceVersion, uid, generation, …) and what names
// the object is left out. In lists whose items all have different names, names
// identify the elements: spec.template.spec.containers[web].image.
func Fields(before, after *unstructured.Unstructured) []Field {
	old, want := leaves(before), leaves(after)
	paths := map[string]bool{}
	for path := range old {
		paths[path] = true
	}
	for path := range want {
		paths[path] = true
	}
	var fields []Field
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		f := Field{Path: path, Before: old[path], After: want[path]}
		if f.Before != f.After && !f.implied(old, want) {
			fields = append(fields, f)
		}
	}
	return fields
}

// implied tells whether a field only says what other fields say already: that a
// table is no longer empty, or that the order of a list changed because an item
// came or went.
func (f Field) implied(before, after map[string]string) bool {
	if list, ok := strings.CutSuffix(f.Path, orderSuffix); ok {
		return sortedNames(f.Before) != sortedNames(f.After) && (hasBelow(before, list) || hasBelow(after, list))
	}
	switch {
	case f.After == "" && empty(f.Before):
		return hasBelow(after, f.Path)
	case f.Before == "" && empty(f.After):
		return hasBelow(before, f.Path)
	}
	return false
}

func empty(value string) bool { return value == "{}" || value == "[]" }

func hasBelow(leaves map[string]string, path string) bool {
	for p := range leaves {
		if rest, ok := strings.CutPrefix(p, path); ok && rest != orderSuffix && rest != "" && (rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func sortedNames(list string) string {
	var names []string
	if json.Unmarshal([]byte(list), &names) != nil {
		return ""
	}
	slices.Sort(names)
	return strings.Join(names, "\n")
}

// serverMetadata are the fields of metadata that the API server keeps, or that
// name the object.
var serverMetadata = []string{
	"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds", "name", "namespace",
}

// leaves are the values of an object by path, as JSON.
func leaves(obj *unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	if obj == nil {
		return found
	}
	for key, value := range obj.Object {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, _ := value.(map[string]any)
			for key, value := range metadata {
				if !slices.Contains(serverMetadata, key) {
					collect(found, join("metadata", key), value)
				}
			}
		default:
			collect(found, join("", key), value)
		}
	}
	return found
}

// orderSuffix marks the path that holds the order of a list told by names.
const orderSuffix = "[order]"

func collect(found map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			collect(found, join(path, key), item)
		}
		if len(v) == 0 {
			found[path] = "{}"
		}
	case []any:
		names, named := itemNames(v)
		for i, item := range v {
			if named {
				collect(found, fmt.Sprintf("%s[%s]", path, bracketed(names[i])), item)
			} else {
				collect(found, fmt.Sprintf("%s[%d]", path, i), item)
			}
		}
		switch {
		case len(v) == 0:
			found[path] = "[]"
		case named && len(v) > 1:
			found[path+orderSuffix] = text(names)
		}
	case nil: // the same as absent, for the API server too
	default:
		found[path] = text(v)
	}
}

// itemNames are the names of the items of a list, when each has one of its own.
func itemNames(list []any) ([]string, bool) {
	var names []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" || slices.Contains(names, name) {
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

func bracketed(name string) string {
	if _, err := strconv.Atoi(name); err == nil || strings.ContainsAny(name, `[]"`) || "["+name+"]" == orderSuffix {
		return strconv.Quote(name)
	}
	return name
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	if strings.ContainsAny(key, ".[]\" /") {
		return path + "[" + strconv.Quote(key) + "]"
	}
	return path + "." + key
}

// text is a value as JSON.
func text(v any) string {
	data, err := job.Marshal(v)
	if err != nil {
		return strconv.Quote(fmt.Sprint(v)) // nothing that came as JSON gets here
	}
	return string(data)
}
