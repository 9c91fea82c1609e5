package appconfig

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// templates checks every template of the app: it parses, and what it reads can
// be there when it is rendered.
func (v *validator) templates() {
	a := v.app
	v.templatesIn(a.Metadata.At, &a.Metadata, scope{lenient: true})
	if a.Sandbox != nil {
		v.templatesIn(a.Sandbox.At, a.Sandbox, scope{beforeComponents: true})
	}
	if a.Stack != nil {
		v.templatesIn(a.Stack.At, a.Stack, scope{beforeStack: true})
	}
	for i := range a.Secrets {
		v.templatesIn(a.Secrets[i].At, &a.Secrets[i], scope{})
	}
	for i := range a.Components {
		v.templatesIn(a.Components[i].At, &a.Components[i], scope{component: a.Components[i].Name})
	}
	for i := range a.Actions {
		v.templatesIn(a.Actions[i].At, &a.Actions[i], scope{action: &a.Actions[i]})
	}
}

// scope says when a template is rendered, so what it may read.
type scope struct {
	lenient          bool    // a README: mistakes are warnings
	beforeStack      bool    // only what exists before the customer applies the stack
	beforeComponents bool    // the sandbox comes before every component
	component        string  // the component that it belongs to
	action           *Action // the action that it belongs to
}

// dotless finds {{nuon.install.id}}: without the first dot it stays literal.
var dotless = regexp.MustCompile(`\{\{-?\s*(nuon|berth)\.`)

func (v *validator) templatesIn(at Place, block any, s scope) {
	for _, t := range templatesOf(at, block) {
		if loc := dotless.FindStringIndex(t.text); loc != nil {
			line := strings.Count(t.text[:loc[0]], "\n") + 1
			v.diags = append(v.diags, t.diagnose(v.origin, Warning, CodeTemplate, line, "%q has no dot in front of the root, so it stays as it is",
				t.text[loc[0]:loc[1]]).remedy("write {{ .nuon… }}"))
		}
		refs, err := t.references()
		if err != nil {
			v.badTemplate(t, err, s)
			continue
		}
		for _, ref := range refs {
			if d, ok := v.reference(t, ref, s); ok {
				v.diags = append(v.diags, d)
			}
		}
	}
}

func (v *validator) badTemplate(t template, err error, s scope) {
	line, message := 1, err.Error()
	if e, ok := errors.AsType[*interpolate.Error](err); ok {
		line, message = max(e.Line, 1), e.Message
	}
	v.diags = append(v.diags, t.diagnose(v.origin, s.severity(), CodeTemplate, line, "template does not parse: %s", message))
}

func (s scope) severity() Severity {
	if s.lenient {
		return Warning
	}
	return Error
}

// topLevel lists what stands directly below .nuon.
var topLevel = []string{
	"id", "name", "org", "app", "inputs", "install_stack", "sandbox", "components", "actions", "secrets",
	"runner", "domain", "cloud_account", "install",
}

// reference tells what is wrong with one path that a template reads.
func (v *validator) reference(t template, ref interpolate.Reference, s scope) (Diagnostic, bool) {
	wrong := func(severity Severity, code Code, format string, args ...any) (Diagnostic, bool) {
		return t.diagnose(v.origin, severity, code, ref.Line, format, args...), true
	}
	missing := func(what, name string, defined []string, kinds ...string) (Diagnostic, bool) {
		if name == interpolate.Any || slices.Contains(defined, name) || v.partlyUnreadable(kinds...) {
			return Diagnostic{}, false
		}
		d, _ := wrong(s.severity(), CodeReference, "%s: %s %q does not exist", ref, what, name)
		if near := nearest(name, defined); near != "" {
			d = d.remedy("did you mean %q?", near)
		}
		return d, true
	}
	path := ref.Path
	switch {
	case ref.Root == interpolate.RootAction:
		return v.actionReference(ref, s, missing, wrong)
	case ref.Root != interpolate.RootTree:
		return wrong(s.severity(), CodeReference, "%s does not exist: the tree begins with .nuon or .berth", ref)
	case len(path) == 0 || path[0] == interpolate.Any:
		return v.untraced(ref, s, wrong)
	case !slices.Contains(topLevel, path[0]):
		return missing("part of the tree", path[0], topLevel)
	case s.beforeStack && !slices.Contains([]string{"id", "name", "org", "app", "inputs", "install"}, path[0]):
		return wrong(Error, CodeReference, "%s is not known yet when the stack is made; only inputs, the install's id and name, app and org are", ref)
	}
	switch path[0] {
	case "inputs":
		return v.inputReference(ref, s, missing, wrong)
	case "components":
		if len(path) < 2 || path[1] == interpolate.Any {
			return v.untraced(ref, s, wrong)
		}
		if s.beforeComponents {
			return wrong(Warning, CodeReference, "%s is not there when the sandbox is first provisioned, since components come after it", ref)
		}
		if c := v.app.componentNamed(path[1]); c != nil {
			if c.Name == s.component {
				return wrong(Error, CodeCycle, "component %q reads its own outputs: %s", c.Name, ref)
			}
			return Diagnostic{}, false
		}
		return missing("component", path[1], v.componentNames(), "components")
	case "secrets":
		if len(path) >= 2 {
			var names []string
			for _, s := range v.app.Secrets {
				names = append(names, s.Name)
			}
			return missing("secret", path[1], names, "secrets")
		}
	case "actions":
		if len(path) >= 3 && path[1] == "workflows" {
			var names []string
			for _, a := range v.app.Actions {
				names = append(names, a.Name)
			}
			return missing("action", path[2], names, "actions")
		}
	}
	return Diagnostic{}, false
}

type (
	missingFunc func(what, name string, defined []string, kinds ...string) (Diagnostic, bool)
	wrongFunc   func(severity Severity, code Code, format string, args ...any) (Diagnostic, bool)
)

func (v *validator) inputReference(ref interpolate.Reference, s scope, missing missingFunc, wrong wrongFunc) (Diagnostic, bool) {
	path := ref.Path
	var names []string
	for _, in := range v.app.Inputs {
		names = append(names, in.Name)
	}
	switch {
	case len(path) >= 3 && path[1] == "inputs":
		return missing("input", path[2], names, "inputs")
	case len(path) >= 2 && path[1] != "inputs" && path[1] != "populated" && path[1] != interpolate.Any:
		d, ok := wrong(s.severity(), CodeReference, "%s does not exist", ref)
		return d.remedy("inputs are below .nuon.inputs.inputs"), ok
	}
	return Diagnostic{}, false
}

func (v *validator) actionReference(ref interpolate.Reference, s scope, missing missingFunc, wrong wrongFunc) (Diagnostic, bool) {
	if s.action == nil {
		return wrong(s.severity(), CodeReference, "%s can only be read inside actions", ref)
	}
	if len(ref.Path) < 2 || ref.Path[0] != "inputs" {
		return Diagnostic{}, false
	}
	var names []string
	for _, in := range s.action.Inputs {
		names = append(names, in.Name)
	}
	return missing("input of the action", ref.Path[1], names)
}

// untraced warns where a component reads "some component": the order cannot
// follow from that.
func (v *validator) untraced(ref interpolate.Reference, s scope, wrong wrongFunc) (Diagnostic, bool) {
	if s.component == "" {
		return Diagnostic{}, false
	}
	d, ok := wrong(Warning, CodeUntraced, "%s reads components whose names are computed, so they make no dependency", ref)
	return d.remedy("name them in dependencies of component %q", s.component), ok
}
