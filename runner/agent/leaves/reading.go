package leaves

import (
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// Reading returns the keys, in order, of the templates that read a sealed value of a
// tree, whatever they make of it. A template that cannot be read is not among them:
// the engine says what is wrong with it.
func Reading(tree any, templates map[string]string) (keys []string) {
	var sealed [][]string
	_, _ = replaceLeaves(tree, nil, func(path []string, leaf any) (any, error) {
		sealed = append(sealed, slices.Clone(path))
		return leaf, nil
	}) // nothing here fails
	for _, key := range slices.Sorted(maps.Keys(templates)) {
		references, err := interpolate.References(templates[key])
		if err != nil {
			continue
		}
		var names Names
		for _, r := range references {
			if r.Root == interpolate.RootTree {
				names = append(names, r.Path)
			}
		}
		if slices.ContainsFunc(sealed, func(path []string) bool { return names.Cover(tree, path) }) {
			keys = append(keys, key)
		}
	}
	return keys
}
