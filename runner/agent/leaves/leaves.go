// Package leaves opens sealed values in the state tree of an install: those that
// are named, and no others.
package leaves

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
)

// Open is a copy of a tree in which the named leaves are in clear. A value
// that stands in another place than it was sealed for does not open.
func Open(open seal.Opener, tree any, named Names, purposes seal.Leaves) (any, error) {
	return replaceLeaves(tree, nil, func(path []string, leaf any) (any, error) {
		if !named.Cover(tree, path) {
			return leaf, nil
		}
		return seal.OpenLeaves(open, leaf, func([]string) (seal.Purpose, bool) { return purposes(path) })
	})
}

// Outputs are the outputs of a component in the state of a job, with every sealed
// value of them in clear.
func Outputs(open seal.Opener, spec jobspec.Spec, component string) (map[string]any, error) {
	var tree map[string]any
	if len(spec.State) > 0 {
		if err := json.Unmarshal(spec.State, &tree); err != nil {
			return nil, errors.New("cannot be read: the state of the job is not JSON")
		}
	}
	purposes := interpolate.SealedLeaves(spec.OrgID, spec.InstallID, tree)
	opened, err := Open(open, tree, Names{{"components", component, "outputs"}}, purposes)
	if err != nil {
		return nil, fmt.Errorf("cannot be opened here: %w", err)
	}
	for _, key := range []string{"components", component, "outputs"} {
		below, _ := opened.(map[string]any)
		opened = below[key]
	}
	outputs, _ := opened.(map[string]any)
	if len(outputs) == 0 {
		return nil, errors.New("are not there yet")
	}
	return outputs, nil
}

// replaceLeaves calls open with each sealed value of a tree and its path.
func replaceLeaves(node any, path []string, open func(path []string, leaf any) (any, error)) (any, error) {
	switch v := node.(type) {
	case map[string]any:
		if _, sealed := v[sealedKey].(string); sealed && len(v) == 1 {
			out, err := open(path, v)
			if err != nil {
				return nil, fmt.Errorf("at %s: %w", strings.Join(path, "."), err)
			}
			return out, nil
		}
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			child, err := replaceLeaves(v[key], append(slices.Clip(path), key), open)
			if err != nil {
				return nil, err
			}
			out[key] = child
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			child, err := replaceLeaves(item, append(slices.Clip(path), strconv.Itoa(i)), open)
			if err != nil {
				return nil, err
			}
			out[i] = child
		}
		return out, nil
	}
	return node, nil
}

// sealedKey is the only key of an object that stands for a sealed value, see
// package seal.
const sealedKey = "$sealed"

// Names are the paths of the tree that templates name, without duplicates.
type Names [][]string

// Always are read for the environment of every tool and script.
func Always() Names { return Names{{"name"}, {"app", "id"}, {"app", "name"}} }

// Cover says whether a leaf at path is named: by itself, by something above it,
// or by something inside of it.
func (n Names) Cover(tree any, path []string) bool {
	return slices.ContainsFunc(n, func(name []string) bool {
		for i := range min(len(name), len(path)) {
			if name[i] != interpolate.Any && name[i] != path[i] && !isAlias(tree, path[:i+1], name[i]) {
				return false
			}
		}
		return true
	})
}

// isAlias says whether name means the component at path: each may also be called
// by its var_name.
func isAlias(tree any, path []string, name string) bool {
	if len(path) != 2 || path[0] != "components" {
		return false
	}
	root, _ := tree.(map[string]any)
	components, _ := root["components"].(map[string]any)
	component, _ := components[path[1]].(map[string]any)
	alias, _ := component["var_name"].(string)
	return alias != "" && alias == name
}
