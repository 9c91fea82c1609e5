package check

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// Block is one part of an app that has templates.
type Block struct {
	Kind string
	Name string // "" for kinds that exist once
	Type string // of a component or a role

	at    place.Place
	value any
	// lenient blocks are pages for people: what is wrong there is a warning.
	lenient bool
	action  *appconfig.Action
}

// Templates lists what in a block may be a template.
func (b Block) Templates() []template.Value { return template.In(b.at, b.value) }

// Blocks lists every part of an app that has templates: the sandbox, then the
// others kind by kind and in order of their names.
func Blocks(app *appconfig.App) []Block {
	var all []Block
	if s := app.Sandbox; s != nil {
		all = append(all, Block{Kind: appconfig.BlockSandbox, at: s.At, value: s})
	}
	for i := range app.Components {
		c := &app.Components[i]
		all = append(all, Block{Kind: appconfig.BlockComponent, Name: c.Name, Type: string(c.Type), at: c.At, value: c})
	}
	if s := app.Stack; s != nil {
		all = append(all, Block{Kind: appconfig.BlockStack, Type: string(s.Type), at: s.At, value: s})
	}
	if r := app.Runner; r != nil {
		all = append(all, Block{Kind: appconfig.BlockRunner, Type: "runner in " + r.RunnerType, at: r.At, value: r})
	}
	for _, roles := range [][]appconfig.Role{app.Permissions, app.BreakGlass} {
		for i := range roles {
			r := &roles[i]
			all = append(all, Block{Kind: appconfig.BlockRole, Name: r.Name, Type: string(r.Type), at: r.At, value: r})
		}
	}
	if o := app.OperationRoles; o != nil {
		all = append(all, Block{Kind: appconfig.BlockOperationRoles, at: o.At, value: o})
	}
	for i := range app.Policies {
		p := &app.Policies[i]
		all = append(all, Block{Kind: appconfig.BlockPolicy, Name: p.Name, Type: "policy of " + string(p.Type), at: p.At, value: p})
	}
	for i := range app.Actions {
		a := &app.Actions[i]
		all = append(all, Block{Kind: appconfig.BlockAction, Name: a.Name, at: a.At, value: a, action: a})
	}
	for i := range app.Runbooks {
		r := &app.Runbooks[i]
		all = append(all, Block{Kind: appconfig.BlockRunbook, Name: r.Name, at: r.At, value: r, lenient: true})
	}
	return append(all, Block{Kind: appconfig.BlockMetadata, at: app.Metadata.At, value: &app.Metadata, lenient: true})
}

// Preview is one value of a block as an install gets it.
type Preview struct {
	Key string `json:"key"` // such as "vars.region" or "values_file[0].contents"
	// File and Line are where it is written: a values file rather than the key
	// that names it.
	File string `json:"file"`
	Line int    `json:"line"`
	// Template is set for what is rendered, and not for what every install gets
	// as it is written.
	Template bool   `json:"template"`
	Value    string `json:"value"` // "" when it cannot be rendered
	// Sealed is set when it is made of a value that only the install can open,
	// so that it shows what stands for that, or nothing else when that does not
	// render.
	Sealed bool `json:"sealed,omitempty"`
	// Default is set for what the folder leaves out, and the component's plugin
	// fills in.
	Default bool `json:"default,omitempty"`
}

// PreviewOptions adjusts Previews.
type PreviewOptions struct {
	Now time.Time // what `now` returns; with the zero time it is an error
	// Sealed is the text that stands in the state for a value that only the
	// install can open; "" when there is none.
	Sealed string
	// Inputs are what an action is asked for when it is run. Those that it
	// declares and that are not here are their own path in angle brackets.
	Inputs map[string]string
	// Defaults are the keys that CompletePlugins filled in.
	Defaults map[place.Place]bool
}

// Previews renders every value of a block that may be a template with the state
// of an install (see [interpolate.NewState]). The diagnostics name the place and
// the path of everything that cannot be rendered; they are warnings in pages for
// people.
func Previews(app *appconfig.App, block Block, state interpolate.State, opts PreviewOptions) ([]Preview, []place.Diagnostic) {
	if block.action != nil {
		inputs := maps.Clone(opts.Inputs)
		if inputs == nil {
			inputs = map[string]string{}
		}
		for _, in := range block.action.Inputs {
			if _, given := inputs[in.Name]; !given {
				inputs[in.Name] = madeUp("action.inputs." + in.Name)
			}
		}
		state = state.WithActionInputs(inputs)
	}
	var diags []place.Diagnostic
	var out []Preview
	for _, t := range template.In(block.at, block.value) {
		file, pos := t.Position(&app.Origin, 1)
		p := Preview{Key: t.At.Key, Default: isDefault(t.At, opts.Defaults), File: file, Line: max(pos.Line, 1), Template: t.Always || interpolate.IsTemplate(t.Text)}
		if block.at.Key != "" {
			p.Key = strings.TrimPrefix(p.Key, block.at.Key+".")
		}
		render := interpolate.Render
		if t.Always {
			render = interpolate.RenderAlways
		}
		value, err := render(t.Text, state, interpolate.Options{Now: opts.Now, File: file})
		p.Value, p.Sealed = value, readsSealed(t, state, opts.Sealed)
		switch {
		case err != nil && p.Sealed && !isMissing(err):
			p.Value = opts.Sealed
		case err != nil:
			d := notRendered(app, t, p.Key, err)
			if block.lenient {
				d.Severity = place.Warning
			}
			diags = append(diags, d)
		}
		out = append(out, p)
	}
	return out, place.Sort(diags)
}

func isDefault(at place.Place, defaults map[place.Place]bool) bool {
	for ; at.Key != "" && len(defaults) > 0; at = at.Parent() {
		if defaults[at] {
			return true
		}
	}
	return false
}

// NotRendered says of each key of a block why it does not render, by the key that
// [Preview] has.
func NotRendered(app *appconfig.App, block Block, state interpolate.State, opts PreviewOptions) map[string]string {
	why := map[string]string{}
	for _, t := range template.In(block.at, block.value) {
		render := interpolate.Render
		if t.Always {
			render = interpolate.RenderAlways
		}
		key := t.At.Key
		if block.at.Key != "" {
			key = strings.TrimPrefix(key, block.at.Key+".")
		}
		if _, err := render(t.Text, state, interpolate.Options{Now: opts.Now}); err != nil {
			why[key] = notRendered(app, t, key, err).Message
		}
	}
	return why
}

// isMissing tells whether a path of the tree could not be followed because
// something is not there, whatever is sealed. A path in what a function made is
// none of the tree.
func isMissing(err error) bool {
	e, ok := errors.AsType[*interpolate.Error](err)
	return ok && (strings.HasPrefix(e.Missing, ".nuon.") || strings.HasPrefix(e.Missing, ".berth."))
}

// readsSealed tells whether a template reads a sealed value, or what is below
// one.
func readsSealed(t template.Value, state interpolate.State, mark string) bool {
	if mark == "" {
		return false
	}
	refs, _ := t.References() // rendering says what does not parse
	return slices.ContainsFunc(refs, func(ref interpolate.Reference) bool {
		return ref.Root == interpolate.RootTree && leadsToSealed(state[interpolate.RootTree], ref.Path, mark)
	})
}

// leadsToSealed tells whether a path ends at, goes through, or has below it a
// sealed value.
func leadsToSealed(at any, path []string, mark string) bool {
	switch v := at.(type) {
	case string:
		return v == mark
	case []any:
		for _, item := range v {
			if leadsToSealed(item, path[min(len(path), 1):], mark) {
				return true
			}
		}
	case map[string]any:
		if len(path) > 0 && path[0] != interpolate.Any {
			return leadsToSealed(v[path[0]], path[1:], mark)
		}
		for _, item := range v {
			if leadsToSealed(item, path[min(len(path), 1):], mark) {
				return true
			}
		}
	}
	return false
}

func notRendered(a *appconfig.App, t template.Value, key string, err error) place.Diagnostic {
	e, ok := errors.AsType[*interpolate.Error](err)
	if !ok {
		e = &interpolate.Error{Message: err.Error()}
	}
	ref := interpolate.Reference{Line: max(e.Line, 1), Column: max(e.Column, 1)}
	file, pos := t.PositionOf(&a.Origin, ref)
	d := place.Diagnostic{Severity: place.Error, Code: place.CodeTemplate, File: file, Line: pos.Line, Column: pos.Column, Message: key + ": " + e.Message}
	if e.Missing != "" {
		d.Code = place.CodeReference
		if e.Nearest == "" { // else the message says it
			d = d.WithRemedy("check the name, and that what makes it is deployed")
		}
	}
	return d
}
