package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// templates checks every template of the app: it parses, and what it reads can
// be there when it is rendered.
func (v *validator) templates() {
	for _, b := range templateBlocks(v.app) {
		v.templatesIn(b.at, b.block, b.scope)
	}
}

// templateBlock is a block of the app that may hold templates.
type templateBlock struct {
	at    place.Place
	block any
	scope scope
}

// templateBlocks lists all of them.
func templateBlocks(a *appconfig.App) []templateBlock {
	var all []templateBlock
	add := func(at place.Place, block any, s scope) { all = append(all, templateBlock{at, block, s}) }
	add(a.Metadata.At, &a.Metadata, scope{lenient: true})
	if a.Sandbox != nil {
		add(a.Sandbox.At, a.Sandbox, scope{beforeComponents: true})
	}
	if a.Stack != nil {
		add(a.Stack.At, a.Stack, scope{beforeStack: true})
	}
	if a.Runner != nil {
		add(a.Runner.At, a.Runner, scope{})
	}
	for i := range a.Secrets {
		add(a.Secrets[i].At, &a.Secrets[i], scope{})
	}
	for i := range a.Installs {
		in := &a.Installs[i]
		add(in.At.Below("stack_overrides"), in.StackOverrides, scope{beforeStack: true})
		for _, name := range slices.Sorted(maps.Keys(in.Components)) {
			add(in.At.Below("components").Below(name), in.Components[name], scope{component: name})
		}
	}
	for i := range a.Permissions {
		add(a.Permissions[i].At, &a.Permissions[i], scope{})
	}
	for i := range a.BreakGlass {
		add(a.BreakGlass[i].At, &a.BreakGlass[i], scope{})
	}
	for i := range a.Policies {
		add(a.Policies[i].At, &a.Policies[i], scope{})
	}
	if a.OperationRoles != nil {
		add(a.OperationRoles.At, a.OperationRoles, scope{})
	}
	for i := range a.Components {
		add(a.Components[i].At, &a.Components[i], scope{component: a.Components[i].Name})
	}
	for i := range a.Actions {
		add(a.Actions[i].At, &a.Actions[i], scope{action: &a.Actions[i]})
	}
	for i := range a.Runbooks {
		add(a.Runbooks[i].At, &a.Runbooks[i], scope{lenient: true})
	}
	return all
}

// scope says when a template is rendered, so what it may read.
type scope struct {
	lenient          bool              // a README: mistakes are warnings
	beforeStack      bool              // only what exists before the customer applies the stack
	beforeComponents bool              // the sandbox comes before every component
	component        string            // the component that it belongs to
	action           *appconfig.Action // the action that it belongs to
}

func (v *validator) templatesIn(at place.Place, block any, s scope) {
	for _, t := range template.In(at, block) {
		for _, l := range interpolate.Literals(t.Text) {
			if l.Dotless {
				v.Diags = append(v.Diags, t.AtColumn(v.Origin, place.Diagnostic{
					Severity: place.Warning, Code: place.CodeTemplate, Line: l.Line, Column: l.Column,
					Message: shortened(l.Text) + " has no dot in front of the root, so it stays as it is", Remedy: "write {{ .nuon… }}",
				}))
			}
		}
		refs, err := t.References()
		if err != nil {
			v.badTemplate(t, err, s)
			continue
		}
		for _, ref := range refs {
			if d, ok := v.reference(t, ref, s); ok {
				v.Diags = append(v.Diags, d)
			}
		}
	}
}

// shortened keeps a long literal from filling a screen.
func shortened(text string) string {
	const longest = 60
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

func (v *validator) badTemplate(t template.Value, err error, s scope) {
	line, column, message := 1, 1, err.Error()
	if e, ok := errors.AsType[*interpolate.Error](err); ok {
		line, column, message = max(e.Line, 1), e.Column, e.Message
	}
	v.Diags = append(v.Diags, t.AtColumn(v.Origin, place.Diagnostic{
		Severity: s.severity(), Code: place.CodeTemplate, Line: line, Column: column, Message: "template does not parse: " + message,
	}))
}

func (s scope) severity() place.Severity {
	if s.lenient {
		return place.Warning
	}
	return place.Error
}

// topLevel lists what stands directly below .nuon.
var topLevel = []string{
	"id", "name", "org", "app", "inputs", "install_stack", "sandbox", "components", "actions", "secrets",
	"runner", "domain", "cloud_account", "install",
}

// reference tells what is wrong with one path that a template reads.
func (v *validator) reference(t template.Value, ref interpolate.Reference, s scope) (place.Diagnostic, bool) {
	wrong := func(severity place.Severity, code place.Code, format string, args ...any) (place.Diagnostic, bool) {
		return t.AtColumn(v.Origin, place.Diagnostic{
			Severity: severity, Code: code, Line: ref.Line, Column: ref.Column, Message: fmt.Sprintf(format, args...),
		}), true
	}
	missing := func(name string, among definedNames) (place.Diagnostic, bool) {
		if name == interpolate.Any || v.mayDefine(among, name) {
			return place.Diagnostic{}, false
		}
		d, _ := wrong(s.severity(), place.CodeReference, "%s: %s %q does not exist", ref, among.what, name)
		return v.Suggest(d, name, among.names), true
	}
	switch {
	case ref.Root == interpolate.RootAction:
		return v.actionReference(ref, s, missing, wrong)
	case ref.Root != interpolate.RootTree:
		return wrong(s.severity(), place.CodeReference, "%s does not exist: the tree begins with .nuon or .berth", ref)
	case ref.Kind == interpolate.KindUnknown:
		return missing(ref.Path[0], definedNames{what: "part of the tree", names: topLevel})
	case s.beforeStack && !slices.Contains(beforeStack, ref.Kind):
		return wrong(place.Error, place.CodeReference, "%s is not known yet when the stack is made; only inputs, the install's id and name, app and org are", ref)
	}
	if d, ok := v.namedReference(ref, s, missing, wrong); ok {
		return d, true
	}
	return v.fixedPart(ref, s, wrong)
}

// namedReference checks what templates name: inputs, components, secrets, actions.
func (v *validator) namedReference(ref interpolate.Reference, s scope, missing missingFunc, wrong wrongFunc) (place.Diagnostic, bool) {
	switch ref.Kind {
	case interpolate.KindTree:
		return v.untraced(ref, s, wrong)
	case interpolate.KindInput:
		return v.inputReference(ref, s, missing, wrong)
	case interpolate.KindComponent, interpolate.KindImage:
		return v.componentReference(ref, s, missing, wrong)
	case interpolate.KindSecret:
		if ref.Name != "" {
			return missing(ref.Name, v.secretNames())
		}
	case interpolate.KindAction:
		if ref.Name != "" {
			return missing(ref.Name, v.actionNames())
		}
	}
	return place.Diagnostic{}, false
}

// fixedPart checks the names that are the same in every app, at every level, and
// the outputs that a module at hand declares.
func (v *validator) fixedPart(ref interpolate.Reference, s scope, wrong wrongFunc) (place.Diagnostic, bool) {
	if m, bad := ref.Misfit(); bad {
		above := "." + strings.Join(append([]string{ref.Root}, m.Above...), ".")
		d, _ := wrong(s.severity(), place.CodeReference, "%s.%s does not exist", above, m.Name)
		switch near := v.Near(m.Name, m.Among); {
		case near != "":
			d = d.WithRemedy("did you mean %q?", near)
		case above == ".nuon.install" && v.Near(m.Name, topLevel) != "":
			d = d.WithRemedy("did you mean %q?", ".nuon."+v.Near(m.Name, topLevel))
		case len(m.Among) == 0:
			d = d.WithRemedy("%s is a single value", above)
		default:
			d = d.WithRemedy("there is %s", strings.Join(m.Among, ", "))
		}
		return d, true
	}
	block, name, output := outputRead(ref)
	if block == appconfig.BlockComponent {
		if c := v.app.ComponentNamed(name); c != nil {
			name = c.Name // not its var_name
		}
	}
	declared, known := v.app.DeclaredOutputs(block, name)
	if !known || slices.Contains(declared, output) {
		return place.Diagnostic{}, false
	}
	what := "the sandbox"
	if block == appconfig.BlockComponent {
		what = fmt.Sprintf("component %q", name)
	}
	ref.Path = ref.Path[:slices.Index(ref.Path, "outputs")+2] // once, whatever is read below it
	d, _ := wrong(s.severity(), place.CodeReference, "%s: the module of %s has no output %q", ref, what, output)
	return v.Suggest(d, output, declared), true
}

// outputRead says whose output a reference reads; block is "" when it reads none.
func outputRead(ref interpolate.Reference) (block, name, output string) {
	p := ref.Path
	switch {
	case len(p) >= 3 && p[0] == "sandbox" && p[1] == "outputs" && p[2] != interpolate.Any:
		return appconfig.BlockSandbox, "", p[2]
	case len(p) >= 4 && p[0] == "components" && p[1] != interpolate.Any && p[2] == "outputs" && p[3] != interpolate.Any:
		return appconfig.BlockComponent, p[1], p[3]
	}
	return "", "", ""
}

// beforeStack lists what is there before the customer applies the stack. All of
// the tree counts: it is there, with less in it.
var beforeStack = []interpolate.Kind{
	interpolate.KindInput, interpolate.KindInstall, interpolate.KindOrg, interpolate.KindApp, interpolate.KindTree,
}

func (v *validator) componentReference(ref interpolate.Reference, s scope, missing missingFunc, wrong wrongFunc) (place.Diagnostic, bool) {
	if ref.Dynamic {
		return v.untraced(ref, s, wrong)
	}
	if s.beforeComponents {
		return wrong(place.Warning, place.CodeReference, "%s is not there when the sandbox is first provisioned, since components come after it", ref)
	}
	c := v.app.ComponentNamed(ref.Name)
	switch {
	case c == nil:
		return missing(ref.Name, v.components())
	case c.Name == s.component:
		return wrong(place.Error, place.CodeCycle, "component %q reads its own outputs: %s", c.Name, ref)
	}
	return place.Diagnostic{}, false
}

type (
	missingFunc func(name string, among definedNames) (place.Diagnostic, bool)
	wrongFunc   func(severity place.Severity, code place.Code, format string, args ...any) (place.Diagnostic, bool)
)

func (v *validator) inputReference(ref interpolate.Reference, s scope, missing missingFunc, wrong wrongFunc) (place.Diagnostic, bool) {
	path := ref.Path
	switch {
	case len(path) >= 3 && path[1] == "inputs":
		return missing(path[2], v.inputNames())
	case len(path) >= 2 && path[1] != "inputs" && path[1] != "populated" && path[1] != interpolate.Any:
		d, ok := wrong(s.severity(), place.CodeReference, "%s does not exist", ref)
		return d.WithRemedy("inputs are below .nuon.inputs.inputs"), ok
	}
	return place.Diagnostic{}, false
}

func (v *validator) actionReference(ref interpolate.Reference, s scope, missing missingFunc, wrong wrongFunc) (place.Diagnostic, bool) {
	if s.action == nil {
		return wrong(s.severity(), place.CodeReference, "%s can only be read inside actions", ref)
	}
	if len(ref.Path) > 0 && ref.Path[0] != "inputs" && ref.Path[0] != interpolate.Any {
		return missing(ref.Path[0], definedNames{what: "part of .action", names: []string{"inputs"}})
	}
	if len(ref.Path) < 2 {
		return place.Diagnostic{}, false
	}
	inputs := namesOf("input of the action", s.action.Inputs, func(in *appconfig.ActionInput) string { return in.Name })
	return missing(ref.Path[1], inputs)
}

// untraced warns where a component reads "some component": the order cannot
// follow from that.
func (v *validator) untraced(ref interpolate.Reference, s scope, wrong wrongFunc) (place.Diagnostic, bool) {
	if s.component == "" {
		return place.Diagnostic{}, false
	}
	d, ok := wrong(place.Warning, place.CodeUntraced, "%s reads components whose names are computed, so they make no dependency", ref)
	return d.WithRemedy("name them in dependencies of component %q", s.component), ok
}
