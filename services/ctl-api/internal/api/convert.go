package api

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/internal/optional"
)

func ref(id, name string) apigen.Ref { return apigen.Ref{ID: id, Name: name} }

// decode reads a column of a row that we wrote ourselves; an empty one is none.
func decode(what string, raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

func labelsOf(raw json.RawMessage) (apigen.Labels, error) {
	labels := apigen.Labels{}
	return labels, decode("labels", raw, &labels)
}

// labelsJSON encodes labels for a column; nil is the empty object.
func labelsJSON(labels *apigen.Labels) json.RawMessage {
	all := map[string]string{}
	maps.Copy(all, optional.Value(labels))
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings only
	}
	return raw
}

// convert turns the items of a list; never nil, so that JSON shows [].
func convert[A, B any](items []A, fn func(A) B) []B {
	out := make([]B, 0, len(items))
	for _, item := range items {
		out = append(out, fn(item))
	}
	return out
}

// convertAll is convert for items that may be damaged rows; the first that is
// ends it.
func convertAll[A, B any](items []A, fn func(A) (B, error)) ([]B, error) {
	out := make([]B, 0, len(items))
	for _, item := range items {
		b, err := fn(item)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
