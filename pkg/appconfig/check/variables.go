package check

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// Kinds of a VariableRead.
const (
	ReadBySandbox   = "sandbox"
	ReadByComponent = "component"
	ReadByAction    = "action"
)

// VariableRead is a place of the folder where a template reads a variable of the
// app, below .nuon.app.variables. The folder does not declare these: the control
// plane has them.
type VariableRead struct {
	Kind string // what reads it; "" for what is never deployed, such as a README
	Name string // of the component or action, and "sandbox"
	// Variable is the one that is read; "" when its name is only known when the
	// template is rendered, so it may be any.
	Variable     string
	Reference    string // the path as templates have it
	File         string
	Line, Column int
}

// VariableReads lists the variables of the app that templates of the folder read,
// in loaded files too. Templates that do not parse read none; Validate reports
// them.
func VariableReads(app *appconfig.App) []VariableRead {
	return variableReads(app, func(string) bool { return true })
}

// NamedVariableReads is VariableReads without those whose names templates
// compute. It looks only into templates that can name a variable.
func NamedVariableReads(app *appconfig.App) []VariableRead {
	all := variableReads(app, func(text string) bool { return strings.Contains(text, "variables") })
	return slices.DeleteFunc(all, func(r VariableRead) bool { return r.Variable == "" })
}

func variableReads(app *appconfig.App, worthwhile func(text string) bool) []VariableRead {
	var all []VariableRead
	for _, b := range templateBlocks(app) {
		kind, name := b.scope.reader()
		for _, t := range template.In(b.at, b.block) {
			if !worthwhile(t.Text) {
				continue
			}
			refs, err := t.References()
			if err != nil {
				continue
			}
			for _, ref := range refs {
				if !readsVariable(ref) {
					continue
				}
				file, pos := t.PositionOf(&app.Origin, ref)
				all = append(all, VariableRead{
					Kind: kind, Name: name, Variable: ref.Name, Reference: ref.String(), File: file, Line: pos.Line, Column: pos.Column,
				})
			}
		}
	}
	return all
}

// readsVariable: one by its name, or whichever the template computes.
func readsVariable(ref interpolate.Reference) bool {
	switch ref.Kind {
	case interpolate.KindApp:
		return ref.Name != "" || ref.Dynamic
	case interpolate.KindTree:
		return true
	}
	return false
}

// reader is what a template belongs to, of the things that are deployed or run.
func (s scope) reader() (kind, name string) {
	switch {
	case s.component != "":
		return ReadByComponent, s.component
	case s.action != nil:
		return ReadByAction, s.action.Name
	case s.beforeComponents:
		return ReadBySandbox, appconfig.BlockSandbox
	}
	return "", ""
}
