package rehearsal

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// fit changes made-up values with which a template does not render, where another
// type would do: a name says little about what it stands for.
func (b *builder) fit(app *appconfig.App) {
	state := b.trial(app)
	for _, t := range templates(app) {
		refs, err := t.References()
		if err != nil || renders(t, state) {
			continue
		}
		for _, ref := range refs {
			path, ok := ofCloud(app, ref)
			if ok && b.source[strings.Join(path, ".")] == MadeUp && b.fitOne(t, path, state) {
				break
			}
		}
	}
}

// fitOne tries other types at a path, and keeps the first that renders.
func (b *builder) fitOne(t template.Value, path []string, state interpolate.State) bool {
	tree, _ := state[interpolate.RootTree].(map[string]any)
	was, mine := b.at(path), b.mapAt(path[:len(path)-1])
	inTrial := (&builder{tree: tree}).mapAt(path[:len(path)-1])
	if mine == nil || inTrial == nil {
		return false
	}
	one := fmt.Sprint(b.single(path))
	for _, other := range []any{
		[]any{one + "-0", one + "-1", one + "-2"}, one + "-0," + one + "-1," + one + "-2", 1, true,
		map[string]any{"rehearsal": one}, "1.31.0", "2024-01-01", "2024-01-01T00:00:00Z", `{"rehearsal": "` + one + `"}`, `["` + one + `"]`,
		base64.StdEncoding.EncodeToString([]byte(one)), longListOf(one),
	} {
		inTrial[last(path)] = other
		if renders(t, state) {
			mine[last(path)] = other
			return true
		}
	}
	inTrial[last(path)] = was
	return false
}

// longList is the longest list that is tried.
const longList = 10

// longListOf is a list for templates that take one far behind.
func longListOf(one string) []any {
	items := make([]any, longList)
	for i := range items {
		items[i] = fmt.Sprintf("%s-%d", one, i)
	}
	return items
}

// trial is a state in which everything is there: what a cloud gives, defaults of
// inputs, and texts for the rest.
func (b *builder) trial(app *appconfig.App) interpolate.State {
	made, _ := check.MadeUpState(app)[interpolate.RootTree].(map[string]any)
	delete(made, "install") // NewState makes the alias again
	if inputs, ok := made["inputs"].(map[string]any); ok {
		if values, ok := inputs["inputs"].(map[string]any); ok {
			for _, in := range app.Inputs {
				if in.Default != nil {
					values[in.Name] = *in.Default
				}
			}
		}
	}
	overlay(made, b.tree)
	return interpolate.NewState(made)
}

func overlay(to, from map[string]any) {
	for key, value := range from {
		below, ok := value.(map[string]any)
		there, isMap := to[key].(map[string]any)
		if ok && isMap {
			overlay(there, below)
			continue
		}
		if ok {
			value = maps.Clone(below)
		}
		to[key] = value
	}
}

func renders(t template.Value, state interpolate.State) bool {
	render := interpolate.Render
	if t.Always {
		render = interpolate.RenderAlways
	}
	_, err := render(t.Text, state, interpolate.Options{Now: time.Unix(0, 0).UTC()})
	return err == nil
}
