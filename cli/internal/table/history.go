package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Timeline shows what happened to an install.
func Timeline(now time.Time) output.View[ctlapi.TimelineEntry] {
	return output.View[ctlapi.TimelineEntry]{
		Name: func(e ctlapi.TimelineEntry) string { return fmt.Sprint(e.Seq) },
		None: "nothing that matches happened",
		Columns: []output.Column[ctlapi.TimelineEntry]{
			{Head: "AGE", Cell: func(e ctlapi.TimelineEntry) string { return age(now, e.At) }},
			{Head: "TIME", Wide: true, Cell: func(e ctlapi.TimelineEntry) string { return e.At.UTC().Format(time.RFC3339) }},
			{Head: "WHAT", Shrinks: true, Least: 24, Cell: func(e ctlapi.TimelineEntry) string { return e.Text }},
			{Head: "BY", Shrinks: true, Cell: func(e ctlapi.TimelineEntry) string { return api.Value(e.Actor) }},
			{Head: "KIND", Wide: true, Cell: func(e ctlapi.TimelineEntry) string { return e.Kind }},
			{Head: "RESOURCE", Wide: true, Cell: func(e ctlapi.TimelineEntry) string { return api.Value(e.Resource) }},
			{Head: "RELEASE", Wide: true, Cell: func(e ctlapi.TimelineEntry) string { return api.Number(e.Release) }},
			{Head: "WORKFLOW", Wide: true, Cell: func(e ctlapi.TimelineEntry) string { return api.Value(e.WorkflowID) }},
			{Head: "ID", Wide: true, Cell: func(e ctlapi.TimelineEntry) string {
				return cmp.Or(api.Value(e.ChangeID), api.Value(e.RunID), api.Value(e.StepID), api.Value(e.RunnerID))
			}},
			{Head: "SEQ", Wide: true, Cell: func(e ctlapi.TimelineEntry) string { return fmt.Sprint(e.Seq) }},
		},
	}
}

// StateVersion shows versions of a state tree.
func StateVersion(now time.Time) output.View[ctlapi.StateVersion] {
	return output.View[ctlapi.StateVersion]{
		Name: func(v ctlapi.StateVersion) string { return fmt.Sprint(v.Version) },
		None: "no state yet",
		Columns: []output.Column[ctlapi.StateVersion]{
			{Head: "VERSION", Cell: func(v ctlapi.StateVersion) string { return fmt.Sprint(v.Version) }},
			{Head: "AGE", Cell: func(v ctlapi.StateVersion) string { return age(now, v.CreatedAt) }},
			{Head: "TIME", Wide: true, Cell: func(v ctlapi.StateVersion) string { return v.CreatedAt.UTC().Format(time.RFC3339) }},
			{Head: "CHANGED", Shrinks: true, Least: 20, Cell: changedPaths},
			{Head: "BECAUSE", Shrinks: true, Least: 20, Cell: because},
			{Head: "MADE FOR", Wide: true, Cell: func(v ctlapi.StateVersion) string { return v.Cause }},
			{Head: "INPUTS", Wide: true, Cell: func(v ctlapi.StateVersion) string { return fmt.Sprint(v.InputsVersion) }},
			{Head: "RELEASE", Wide: true, Cell: func(v ctlapi.StateVersion) string { return api.Number(v.Release) }},
		},
	}
}

// shownPaths is how many paths stand in a row; the others are counted.
const shownPaths = 3

func changedPaths(v ctlapi.StateVersion) string {
	if v.Version == 1 {
		return "all of it is new"
	}
	if len(v.Changes) == 0 {
		return "nothing that templates read"
	}
	var paths []string
	for _, c := range v.Changes {
		if len(paths) == shownPaths && len(v.Changes) > shownPaths+1 {
			paths = append(paths, fmt.Sprintf("and %d more", len(v.Changes)-shownPaths))
			break
		}
		paths = append(paths, c.Path)
	}
	return strings.Join(paths, ", ")
}

// because is what explains a version: of the first, what it was made for.
func because(v ctlapi.StateVersion) string {
	var texts []string
	for _, e := range v.Because {
		texts = append(texts, e.Text)
	}
	if len(texts) == 0 || v.Version == 1 {
		return v.Cause
	}
	slices.Reverse(texts) // in the order in which it happened
	return strings.Join(texts, "; ")
}

// TreeChange shows paths that differ.
func TreeChange() output.View[ctlapi.TreeChange] {
	return output.View[ctlapi.TreeChange]{
		Name: func(c ctlapi.TreeChange) string { return c.Path },
		None: "no differences",
		Columns: []output.Column[ctlapi.TreeChange]{
			{Head: "", Cell: func(c ctlapi.TreeChange) string { return marks[c.Op] }},
			{Head: "PATH", Shrinks: true, Least: 24, Cell: func(c ctlapi.TreeChange) string { return c.Path }},
			{Head: "BEFORE", Shrinks: true, Cell: func(c ctlapi.TreeChange) string { return plain(c.Old) }},
			{Head: "AFTER", Shrinks: true, Cell: func(c ctlapi.TreeChange) string {
				if c.Op == ctlapi.TreeChangeOpReplaced {
					return "(sealed, replaced)"
				}
				return plain(c.New)
			}},
		},
	}
}

var marks = map[ctlapi.TreeChangeOp]string{
	ctlapi.TreeChangeOpAdded: "+", ctlapi.TreeChangeOpRemoved: "-", ctlapi.TreeChangeOpChanged: "~", ctlapi.TreeChangeOpReplaced: "~",
}

// plain is a JSON value as people write it: a text without quotes.
func plain(raw *json.RawMessage) string {
	if raw == nil {
		return ""
	}
	var text string
	if json.Unmarshal(*raw, &text) == nil && text != "" {
		return text
	}
	return string(*raw)
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

// OneChange shows a path that differs in one line.
func OneChange(c ctlapi.TreeChange) string {
	switch c.Op {
	case ctlapi.TreeChangeOpAdded:
		return "+ " + c.Path + " = " + plain(c.New)
	case ctlapi.TreeChangeOpRemoved:
		return "- " + c.Path + " (was " + plain(c.Old) + ")"
	case ctlapi.TreeChangeOpReplaced:
		return "~ " + c.Path + ": (sealed, replaced)"
	}
	return "~ " + c.Path + ": " + plain(c.Old) + " → " + plain(c.New)
}

// SnapshotResource shows what resources were.
func SnapshotResource() output.View[ctlapi.SnapshotResource] {
	return output.View[ctlapi.SnapshotResource]{
		Name: func(r ctlapi.SnapshotResource) string { return r.Name },
		None: "no resources",
		Columns: []output.Column[ctlapi.SnapshotResource]{
			{Head: "RESOURCE", Shrinks: true, Cell: func(r ctlapi.SnapshotResource) string { return r.Name }},
			{Head: "KIND", Shrinks: true, Cell: func(r ctlapi.SnapshotResource) string { return r.Kind }},
			{Head: "STATE", Shrinks: true, Cell: func(r ctlapi.SnapshotResource) string { return r.State }},
			{Head: "RELEASE", Cell: func(r ctlapi.SnapshotResource) string { return api.Number(r.Release) }},
			{Head: "INPUTS", Cell: func(r ctlapi.SnapshotResource) string {
				if r.InputsVersion == nil {
					return ""
				}
				return fmt.Sprint(*r.InputsVersion)
			}},
			{Head: "HEALTH", Shrinks: true, Cell: func(r ctlapi.SnapshotResource) string { return r.Health }},
			{Head: "DRIFT", Shrinks: true, Yields: true, Cell: func(r ctlapi.SnapshotResource) string { return r.Drift }},
			{Head: "ARTIFACT", Wide: true, Cell: func(r ctlapi.SnapshotResource) string { return api.Value(r.ArtifactDigest) }},
		},
	}
}
