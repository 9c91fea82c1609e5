package interpolate

import (
	"maps"
	"slices"
)

// shape is what stands below a part of the tree. The zero value is a single
// value, with nothing below it.
type shape struct {
	parts map[string]shape // by name
	each  *shape           // what every named thing consists of; nil when names are fixed
	open  bool             // anything may be below: outputs, inputs and other free maps
}

// fixed is a part with the given values, and the given parts below it.
func fixed(below map[string]shape, values ...string) shape {
	parts := maps.Clone(below)
	if parts == nil {
		parts = map[string]shape{}
	}
	for _, name := range values {
		parts[name] = shape{}
	}
	return shape{parts: parts}
}

func named(each shape) shape { return shape{each: &each} }

var anything = shape{open: true}

// treeShape is the tree that NewTree makes, with the aliases of older apps.
var treeShape = fixed(map[string]shape{
	"org":           fixed(nil, "populated", "id", "name", "status"),
	"app":           fixed(map[string]shape{"variables": anything}, "populated", "id", "name", "status"),
	"inputs":        fixed(map[string]shape{"inputs": anything}, "populated"),
	"install_stack": fixed(map[string]shape{"outputs": anything}, "populated", "status", "quick_link_url", "template_url", "template_json", "checksum"),
	"sandbox":       fixed(map[string]shape{"outputs": anything, "recent_runs": anything}, "populated", "status", "type", "version"),
	"components": named(fixed(map[string]shape{"outputs": anything, "image": anything},
		"populated", "name", "var_name", "status", "build_id", "component_id", "install_component_id")),
	"actions": fixed(map[string]shape{
		"workflows": named(fixed(map[string]shape{"outputs": anything}, "populated", "status", "id", "updated_at")),
	}, "populated"),
	"secrets": named(fixed(nil, "name", "arn", "kubernetes_namespace", "kubernetes_name", "kubernetes_key", "timestamp", "length", "exists", "version", "value")),
	"runner":  fixed(nil, "populated", "id", "runner_group_id", "status"),
	"domain":  fixed(nil, "public_domain", "internal_domain"),
	"cloud_account": fixed(map[string]shape{
		"aws": fixed(nil, "region"), "azure": fixed(nil, "location"), "gcp": anything,
	}),
	"install": legacyShape,
}, "id", "name")

// legacyShape is what older apps find below .nuon.install.
var legacyShape = fixed(map[string]shape{
	"sandbox": fixed(map[string]shape{"outputs": anything}), "inputs": anything,
}, "id", "name", "public_domain", "internal_domain")

// Misfit is where a path of the tree leaves what there can be.
type Misfit struct {
	Name  string   // the part that does not exist
	Above []string // the path above it
	Among []string // what there is instead, sorted; nothing below a single value
}

// Misfit tells whether the tree can never have what is read, whatever the install:
// a part that is fixed and has another name. What is below outputs, inputs and
// other free maps may be anything, and so may the names of components and the like.
func (r Reference) Misfit() (Misfit, bool) {
	if r.Root != RootTree {
		return Misfit{}, false
	}
	at, path := treeShape, r.Path
	if r.Legacy && len(path) > 1 && path[0] == "sandbox" {
		path = append([]string{"install"}, path...) // which has less of it
	}
	for i, name := range path {
		switch {
		case at.open:
			return Misfit{}, false
		case at.each != nil:
			at = *at.each
			continue
		case name == Any:
			return Misfit{}, false
		}
		next, ok := at.parts[name]
		if !ok {
			return Misfit{Name: name, Above: path[:i], Among: slices.Sorted(maps.Keys(at.parts))}, true
		}
		at = next
	}
	return Misfit{}, false
}
