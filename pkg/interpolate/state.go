package interpolate

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// State is what templates read: the roots .nuon, .berth and, in actions,
// .action. Make it with NewState.
type State map[string]any

// NewState wraps a tree (see NewTree), fresh or decoded from JSON. The tree is
// copied, so the caller's is never changed; whole numbers stay whole.
func NewState(tree map[string]any) State {
	nuon, _ := normalise(tree).(map[string]any)
	if nuon == nil {
		nuon = map[string]any{}
	}
	if _, ok := nuon["install"]; !ok {
		nuon["install"] = legacyInstall(nuon)
	}
	if components, ok := nuon["components"].(map[string]any); ok {
		addVarNames(components)
	}
	return State{"nuon": nuon, "berth": nuon}
}

// addVarNames lets templates name a component by its var_name too. A name wins
// over another component's var_name.
func addVarNames(components map[string]any) {
	for _, name := range sortedKeys(components) {
		component, _ := components[name].(map[string]any)
		alias, _ := component["var_name"].(string)
		if _, taken := components[alias]; alias != "" && !taken {
			components[alias] = component
		}
	}
}

// WithActionInputs returns the state with .action.inputs added next to the
// tree.
func (s State) WithActionInputs(inputs map[string]string) State {
	values := map[string]any{}
	for k, v := range inputs {
		values[k] = v
	}
	out := maps.Clone(s)
	out["action"] = map[string]any{"inputs": values}
	return out
}

// legacyInstall is the alias .nuon.install that older apps use.
func legacyInstall(nuon map[string]any) map[string]any {
	install := map[string]any{"id": nuon["id"], "name": nuon["name"]}
	if domain, ok := nuon["domain"].(map[string]any); ok {
		maps.Copy(install, domain)
	}
	if inputs, ok := nuon["inputs"].(map[string]any); ok {
		install["inputs"] = inputs["inputs"]
	}
	if sandbox, ok := nuon["sandbox"].(map[string]any); ok {
		install["sandbox"] = map[string]any{"outputs": sandbox["outputs"]}
	}
	return install
}

// normalise copies a value into maps, lists and scalars as Sprig wants them. A
// JSON number without a fraction becomes an integer, so that 1000000 does not
// print as 1e+06.
func normalise(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = normalise(item)
		}
		return out
	case State:
		return normalise(map[string]any(v))
	case map[string]string:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = item
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = normalise(item)
		}
		return out
	case []string:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = item
		}
		return out
	case float64:
		const exact = 1 << 53 // above it a float64 no longer holds every integer
		if v == math.Trunc(v) && math.Abs(v) <= exact {
			return int64(v)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	}
	return v
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
