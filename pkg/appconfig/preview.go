package appconfig

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// Kinds of blocks whose values differ between installs, beside [BlockSandbox]
// and [BlockComponent].
const (
	BlockStack    = "stack"
	BlockRole     = "role" // of permissions and of break glass
	BlockAction   = "action"
	BlockRunbook  = "runbook"
	BlockMetadata = "metadata" // the README and the labels of installs
)

// Block is one part of an app that has templates.
type Block struct {
	Kind string
	Name string // "" for what there is once
	Type string // of a component or a role

	at    Place
	value any
	// lenient blocks are pages for people: what is wrong there is a warning.
	lenient bool
	action  *Action
}

// Blocks lists every part of an app that has templates: the sandbox, then the
// others kind by kind and in order of their names.
func Blocks(app *App) []Block {
	var all []Block
	if s := app.Sandbox; s != nil {
		all = append(all, Block{Kind: BlockSandbox, at: s.At, value: s})
	}
	for i := range app.Components {
		c := &app.Components[i]
		all = append(all, Block{Kind: BlockComponent, Name: c.Name, Type: string(c.Type), at: c.At, value: c})
	}
	if s := app.Stack; s != nil {
		all = append(all, Block{Kind: BlockStack, Type: string(s.Type), at: s.At, value: s})
	}
	for _, roles := range [][]Role{app.Permissions, app.BreakGlass} {
		for i := range roles {
			r := &roles[i]
			all = append(all, Block{Kind: BlockRole, Name: r.Name, Type: string(r.Type), at: r.At, value: r})
		}
	}
	for i := range app.Actions {
		a := &app.Actions[i]
		all = append(all, Block{Kind: BlockAction, Name: a.Name, at: a.At, value: a, action: a})
	}
	for i := range app.Runbooks {
		r := &app.Runbooks[i]
		all = append(all, Block{Kind: BlockRunbook, Name: r.Name, at: r.At, value: r, lenient: true})
	}
	return append(all, Block{Kind: BlockMetadata, at: app.Metadata.At, value: &app.Metadata, lenient: true})
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
}

// Previews renders every value of a block that may be a template with the state
// of an install (see [interpolate.NewState]). The diagnostics name the place and
// the path of everything that cannot be rendered; they are warnings in pages for
// people.
func Previews(app *App, block Block, state interpolate.State, opts PreviewOptions) ([]Preview, []Diagnostic) {
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
	var diags []Diagnostic
	var out []Preview
	for _, t := range templatesOf(block.at, block.value) {
		file, pos := t.position(&app.Origin, 1)
		p := Preview{Key: t.at.Key, File: file, Line: max(pos.Line, 1), Template: t.always || interpolate.IsTemplate(t.text)}
		if block.at.Key != "" {
			p.Key = strings.TrimPrefix(p.Key, block.at.Key+".")
		}
		render := interpolate.Render
		if t.always {
			render = interpolate.RenderAlways
		}
		value, err := render(t.text, state, interpolate.Options{Now: opts.Now, File: file})
		p.Value, p.Sealed = value, t.readsSealed(state, opts.Sealed)
		switch {
		case err != nil && p.Sealed && !isMissing(err):
			p.Value = opts.Sealed
		case err != nil:
			d := app.notRendered(t, p.Key, err)
			if block.lenient {
				d.Severity = Warning
			}
			diags = append(diags, d)
		}
		out = append(out, p)
	}
	return out, SortDiagnostics(diags)
}

// isMissing tells whether a path of the tree could not be followed because
// something is not there, whatever is sealed. A path in what a function made is
// none of the tree.
func isMissing(err error) bool {
	e, ok := errors.AsType[*interpolate.Error](err)
	return ok && hasAnyPrefix(e.Missing, ".nuon.", ".berth.")
}

// readsSealed tells whether a template reads a sealed value, or what is below
// one.
func (t template) readsSealed(state interpolate.State, mark string) bool {
	if mark == "" {
		return false
	}
	refs, _ := t.references() // rendering says what does not parse
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

func (a *App) notRendered(t template, key string, err error) Diagnostic {
	e, ok := errors.AsType[*interpolate.Error](err)
	if !ok {
		e = &interpolate.Error{Message: err.Error()}
	}
	ref := interpolate.Reference{Line: max(e.Line, 1), Column: max(e.Column, 1)}
	file, pos := t.positionOf(&a.Origin, ref)
	d := Diagnostic{Severity: Error, Code: CodeTemplate, File: file, Line: pos.Line, Column: pos.Column, Message: key + ": " + e.Message}
	if e.Missing != "" {
		d.Code = CodeReference
		if e.Nearest == "" { // else the message says it
			d = d.remedy("check the name, and that what makes it is deployed")
		}
	}
	return d
}
