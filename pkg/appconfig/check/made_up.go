package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// MadeUpState is a state for previews without an install: everything that the
// app declares or its templates read is there, and each value is its own path,
// such as "<components.db.outputs.host>". Conditions are decided by these
// texts, and what needs a number, a list or JSON cannot work with them.
func MadeUpState(app *appconfig.App) interpolate.State {
	tree := interpolate.NewTree(madeUpParts(app))
	mark(tree, "")
	var paths [][]string
	for _, block := range Blocks(app) {
		for _, t := range template.In(block.at, block.value) {
			refs, _ := t.References() // Validate reports what does not parse
			for _, ref := range refs {
				if ref.Root == interpolate.RootTree && (len(ref.Path) == 0 || ref.Path[0] != legacyAlias) {
					paths = append(paths, ref.Path)
				}
			}
		}
	}
	// Longer paths first: a value with parts is a map, even if another template
	// reads all of it.
	slices.SortStableFunc(paths, func(a, b []string) int { return len(b) - len(a) })
	for _, path := range paths {
		if len(path) > 1 && path[0] == "components" {
			if c := app.ComponentNamed(path[1]); c != nil {
				path = slices.Clone(path)
				path[1] = c.Name
			}
		}
		addMade(tree, path, "")
	}
	return interpolate.NewState(tree)
}

// legacyAlias is what a tree gets by itself as long as it does not have it. What
// is left of a path below it does not exist.
const legacyAlias = "install"

// madeUpParts declares what an install of the app has, without values.
func madeUpParts(a *appconfig.App) interpolate.Parts {
	parts := interpolate.Parts{
		Install: interpolate.Install{ID: "?", Name: "?"}, Org: interpolate.Named{ID: "?", Name: "?", Status: "?"},
		App: interpolate.App{ID: "?", Name: "?", Status: "?"}, Inputs: map[string]any{}, Stack: interpolate.Stack{Populated: true},
		Sandbox: interpolate.Sandbox{Populated: true}, Components: map[string]interpolate.Component{},
		Actions: map[string]interpolate.Action{}, Secrets: map[string]interpolate.Secret{}, Runner: interpolate.Runner{Populated: true},
	}
	for _, in := range a.Inputs {
		parts.Inputs[in.Name] = "?"
	}
	for _, c := range a.Components {
		parts.Components[c.Name] = interpolate.Component{Populated: true, VarName: c.VarName}
	}
	for _, action := range a.Actions {
		parts.Actions[action.Name] = interpolate.Action{Populated: true}
	}
	for _, s := range a.Secrets {
		parts.Secrets[s.Name] = interpolate.Secret{Exists: true, Value: "?"}
	}
	return parts
}

// madeUp is the text that stands for the value at a path.
func madeUp(path string) string { return "<" + path + ">" }

func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// mark replaces every text of a tree by its path, but for the names by which
// things are found.
func mark(tree map[string]any, path string) {
	for key, value := range tree {
		switch v := value.(type) {
		case map[string]any:
			mark(v, below(path, key))
		case string:
			if key != "var_name" {
				tree[key] = madeUp(below(path, key))
			}
		}
	}
}

// addMade puts a made-up value where a path leads to, unless something is
// there. An element that is only known when rendering stands for all that are
// there, or for one called "*".
func addMade(tree map[string]any, path []string, above string) {
	if len(path) == 0 {
		return
	}
	key := path[0]
	if key == interpolate.Any {
		names := slices.Sorted(maps.Keys(tree))
		if above == "" {
			return // all parts of the tree are there, and what they consist of differs
		}
		if len(path) > 1 { // what has nothing below it is not meant
			names = slices.DeleteFunc(names, func(name string) bool { _, isMap := tree[name].(map[string]any); return !isMap })
		}
		if len(names) == 0 {
			names = []string{interpolate.Any}
		}
		for _, name := range names {
			addOne(tree, name, path[1:], above)
		}
		return
	}
	addOne(tree, key, path[1:], above)
}

func addOne(tree map[string]any, key string, rest []string, above string) {
	here := below(above, key)
	inner, isMap := tree[key].(map[string]any)
	switch {
	case len(rest) > 0:
		if !isMap {
			inner = map[string]any{}
			tree[key] = inner
		}
		addMade(inner, rest, here)
	case isMap && len(inner) == 0:
		inner[interpolate.Any] = madeUp(here + "." + interpolate.Any) // read as a whole
	case tree[key] == nil:
		tree[key] = madeUp(here)
	}
}

// WithoutEscapes gives made-up values back their brackets where a template
// wrote them as JSON.
func WithoutEscapes(rendered string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(rendered)
}
