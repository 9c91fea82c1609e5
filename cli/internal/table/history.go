package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// History shows the workflows of one install.
func History(now time.Time) output.View[ctlapi.Workflow] {
	return output.View[ctlapi.Workflow]{
		Name: func(w ctlapi.Workflow) string { return w.ID },
		None: "nothing happened to it yet",
		Columns: []output.Column[ctlapi.Workflow]{
			{Head: "#", Cell: func(w ctlapi.Workflow) string { return fmt.Sprint(w.Number) }},
			{Head: "WHAT", Shrinks: true, Cell: what},
			{Head: "RELEASE", Cell: func(w ctlapi.Workflow) string { return api.Number(w.Release) }},
			{Head: "STATE", Cell: func(w ctlapi.Workflow) string { return string(w.State) }},
			{Head: "BY", Shrinks: true, Cell: func(w ctlapi.Workflow) string { return w.CreatedBy }},
			{Head: "AGE", Cell: func(w ctlapi.Workflow) string { return age(now, w.CreatedAt) }},
			{Head: "TOOK", Cell: func(w ctlapi.Workflow) string {
				if w.StartedAt == nil || w.FinishedAt == nil {
					return ""
				}
				return follow.Duration(w.FinishedAt.Sub(*w.StartedAt))
			}},
			{Head: "ID", Wide: true, Cell: func(w ctlapi.Workflow) string { return w.ID }},
			{Head: "ERROR", Wide: true, Cell: func(w ctlapi.Workflow) string { return api.Value(w.Error) }},
		},
	}
}

func what(w ctlapi.Workflow) string {
	text := strings.ReplaceAll(string(w.Kind), "_", " ")
	if w.Action != nil {
		text = "run " + *w.Action
	}
	if w.PlanOnly {
		text = "plan of " + text
	}
	return text
}

// OutputValue is one output of an install.
type OutputValue struct {
	Resource string          `json:"resource"`
	Name     string          `json:"name"`
	Value    json.RawMessage `json:"value"`
	// Sensitive: the value is sealed, and only the install can open it.
	Sensitive bool `json:"sensitive,omitempty"`
}

// Outputs are the outputs of resources, each with those of a resource by name.
func Outputs(resources []ctlapi.Resource) ([]OutputValue, error) {
	var all []OutputValue
	for _, r := range resources {
		var values map[string]json.RawMessage
		if len(r.Outputs) > 0 {
			if err := json.Unmarshal(r.Outputs, &values); err != nil {
				return nil, fmt.Errorf("outputs of %s: %w", r.Name, err)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			all = append(all, outputOf(r.Name, name, values[name]))
		}
	}
	return all, nil
}

// outputOf is one output as an engine reports it, {"value":…,"sensitive":true}, or
// the plain value that a stack gives.
func outputOf(resource, name string, raw json.RawMessage) OutputValue {
	var reported struct {
		Value     json.RawMessage `json:"value"`
		Sensitive bool            `json:"sensitive"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&reported) != nil || reported.Value == nil {
		return OutputValue{Resource: resource, Name: name, Value: raw}
	}
	return OutputValue{Resource: resource, Name: name, Value: reported.Value, Sensitive: reported.Sensitive}
}

// Output shows outputs: texts as they are, all else as JSON.
func Output() output.View[OutputValue] {
	return output.View[OutputValue]{
		Name: func(o OutputValue) string { return o.Resource + "." + o.Name },
		None: "no outputs yet",
		Columns: []output.Column[OutputValue]{
			{Head: "RESOURCE", Shrinks: true, Cell: func(o OutputValue) string { return o.Resource }},
			{Head: "OUTPUT", Shrinks: true, Cell: func(o OutputValue) string { return o.Name }},
			{Head: "VALUE", Shrinks: true, Cell: func(o OutputValue) string {
				var text string
				if json.Unmarshal(o.Value, &text) == nil {
					return text
				}
				return string(o.Value)
			}},
		},
	}
}
