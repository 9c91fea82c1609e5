package kube

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Diff is Fields for people: values of Secrets are replaced, by digests when there is a key.
func Diff(before, after *unstructured.Unstructured, key jobspec.DigestKey) []jobspec.FieldChange {
	obj := after
	if obj == nil {
		obj = before
	}
	if obj == nil {
		return nil
	}
	return shownFields(RefOf(obj), Fields(before, after), key)
}

// Summarise tells people what changes do, in their order. Values of Secrets are
// replaced, by digests when there is a key; ActionNone is left out. NoChange holds when
// nothing is done.
func Summarise(changes []Change, key jobspec.DigestKey) jobspec.PlanSummary {
	s := jobspec.PlanSummary{}
	for _, c := range changes {
		switch c.Action {
		case ActionNone:
			continue
		case ActionCreate:
			s.Create++
		case ActionUpdate:
			s.Update++
		case ActionReplace:
			s.Replace++
		case ActionDelete:
			s.Delete++
		case ActionKeep: // shown, but nothing that is done
		}
		s.Objects = append(s.Objects, jobspec.ObjectChange{
			Address: c.Object.Address(), Action: string(c.Action),
			Fields: shownFields(c.Object, c.Fields, key), Reason: c.reason(),
		})
	}
	s.NoChange = NoChange(changes)
	return s
}

// NoChange tells whether changes do nothing. What is kept is shown, and nothing is done.
func NoChange(changes []Change) bool {
	return !slices.ContainsFunc(changes, func(c Change) bool { return c.Action != ActionNone && c.Action != ActionKeep })
}

// reason adds from whom fields are taken.
func (c Change) reason() string {
	var parts []string
	if c.Reason != "" {
		parts = append(parts, c.Reason)
	}
	for _, t := range c.Takes {
		parts = append(parts, fmt.Sprintf("takes %s, owned by %s", t.Path, t.Owner))
	}
	return strings.Join(parts, "; ")
}

func shownFields(ref Ref, fields []Field, key jobspec.DigestKey) []jobspec.FieldChange {
	var out []jobspec.FieldChange
	for _, f := range fields {
		out = append(out, jobspec.FieldChange{
			Path: f.Path, Before: shown(ref, f.Path, f.Before, key), After: shown(ref, f.Path, f.After, key),
		})
	}
	return out
}

// shown is a value as people may see it.
func shown(ref Ref, path, value string, key jobspec.DigestKey) string {
	switch {
	case value == "":
		return ""
	case secret(ref, path):
		return key.Show([]byte(value), ref.Address(), path)
	}
	return value
}

// lastApplied holds the whole object once more, written by kubectl apply.
const lastApplied = `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`

// secret tells whether a field holds a secret value.
func secret(ref Ref, path string) bool {
	if ref.Group != "" || ref.Kind != "Secret" {
		return false
	}
	for _, prefix := range []string{"data", "stringData", lastApplied} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}
