package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pick keeps the named fields of an object, or of each object of a list. A
// field that an object may have but has not is null; one that none of them
// has is a mistake, unless there are none.
func pick(data []byte, fields []string) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	items, isList := tree.([]any)
	if !isList {
		items = []any{tree}
	}
	picked := make([]map[string]any, len(items))
	known := map[string]bool{}
	for i, item := range items {
		picked[i] = map[string]any{}
		for _, field := range fields {
			value, ok := at(item, strings.Split(field, "."))
			known[field] = known[field] || ok
			picked[i][field] = value
		}
	}
	for _, field := range fields {
		if len(items) > 0 && !known[field] {
			return nil, fmt.Errorf("there is no field %q; there are: %s", field, strings.Join(keys(items), ", "))
		}
	}
	if !isList {
		return json.Marshal(picked[0])
	}
	return json.Marshal(picked)
}

func at(v any, path []string) (any, bool) {
	for _, key := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

func keys(items []any) []string {
	all := map[string]bool{}
	for _, item := range items {
		object, _ := item.(map[string]any)
		for key := range object {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
