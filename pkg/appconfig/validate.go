package appconfig

import (
	"slices"

	"github.com/berth-dev/berth/pkg/alongside"
)

// Validate checks the rules between blocks: names are used once, and what is
// named exists, in templates too; no component waits for itself. It is pure:
// it reads nothing but the App. Load has checked each block on its own.
func Validate(app *App) []Diagnostic {
	// Most of the time goes into parsing what the app's files contain.
	contents := alongside.Run(func() []Diagnostic {
		v := newValidator(app)
		v.contents()
		_, cycles := NewGraph(app)
		return append(v.diags, cycles...)
	})
	v := newValidator(app)
	v.names()
	v.groups()
	v.dependencies()
	v.actions()
	v.remediations()
	v.roles()
	v.policies()
	v.runbooks()
	v.installs()
	v.branches()
	v.operationRoles()
	v.roleNames()
	v.kubernetesContexts()
	v.eventTriggers()
	v.templates()
	return SortDiagnostics(append(v.diags, contents()...))
}

func newValidator(app *App) *validator {
	return &validator{checker: checker{origin: &app.Origin}, app: app}
}

type validator struct {
	checker
	app          *App
	components   []string        // names
	known        map[string]bool // files whose contents are checked
	parsed       int             // bytes of contents that are checked
	skipped      int             // contents that are too large to be checked
	firstSkipped Place
}

// names reports names that are used twice.
func (v *validator) names() {
	inputs, groups, secrets, actions := v.once("input"), v.once("input group"), v.once("secret"), v.once("action")
	for _, in := range v.app.Inputs {
		inputs(in.At, in.Name)
	}
	for _, g := range v.app.InputGroups {
		groups(g.At, g.Name)
	}
	for _, s := range v.app.Secrets {
		secrets(s.At, s.Name)
	}
	for _, a := range v.app.Actions {
		actions(a.At, a.Name)
	}
	components := v.once("component")
	owner := map[string]string{} // of each name that templates may use
	for _, c := range v.app.Components {
		components(c.At, c.Name)
		owner[c.Name] = c.Name
	}
	for _, c := range v.app.Components {
		if c.VarName == "" || c.VarName == c.Name {
			continue
		}
		if other, taken := owner[c.VarName]; taken {
			v.add(Error, CodeDuplicate, c.At.key("var_name"), "var_name %q is already a name of component %q", c.VarName, other)
			continue
		}
		owner[c.VarName] = c.Name
	}
	v.innerNames()
}

// innerNames reports names that are used twice inside of one block.
func (v *validator) innerNames() {
	for _, a := range v.app.Actions {
		once := v.once("input")
		for i, in := range a.Inputs {
			once(a.At.key("inputs").item(i), in.Name)
		}
	}
	for _, r := range v.app.Runbooks {
		once := v.once("input")
		for i, in := range r.Inputs {
			once(r.At.key("input").item(i), in.Name)
		}
	}
	if v.app.Stack == nil {
		return
	}
	once := v.once("nested stack")
	for i, nested := range v.app.Stack.CustomNestedStacks {
		once(v.app.Stack.At.key("custom_nested_stacks").item(i), nested.Name)
	}
}

// once returns a function that reports the second use of a name.
func (v *validator) once(what string) func(at Place, name string) {
	first := map[string]Place{}
	return func(at Place, name string) {
		if name == "" {
			return
		}
		if other, taken := first[name]; taken {
			v.add(Error, CodeDuplicate, at.key("name"), "%s %q is already defined at %s", what, name, v.origin.where(other.key("name")))
			return
		}
		first[name] = at
	}
}

func (v *validator) groups() {
	var names []string
	for _, g := range v.app.InputGroups {
		names = append(names, g.Name)
	}
	for _, in := range v.app.Inputs {
		v.exists(in.At.key("group"), "input group", in.Group, names, "input_groups", "inputs")
	}
}

func (v *validator) dependencies() {
	names := v.componentNames()
	for _, c := range v.app.Components {
		for i, dep := range c.Dependencies {
			at := c.At.key("dependencies").item(i)
			if dep == c.Name {
				v.add(Error, CodeCycle, at, "component %q depends on itself", c.Name)
				continue
			}
			v.exists(at, "component", dep, names, "components")
		}
	}
}

func (v *validator) actions() {
	names := v.componentNames()
	for _, a := range v.app.Actions {
		for i, dep := range a.Dependencies {
			at := a.At.key("dependencies").item(i)
			v.exists(at, "component", dep, names, "components")
			if slices.Contains(a.Dependencies[:i], dep) {
				v.add(Error, CodeDuplicate, at, "action %q depends on %q twice", a.Name, dep)
			}
		}
		for i, t := range a.Triggers {
			v.exists(a.At.key("triggers").item(i).key("component_name"), "component", t.ComponentName, names, "components")
		}
	}
}

// exists reports a name that is not among those defined. It stays silent when a
// file that may define it could not be read.
func (v *validator) exists(at Place, what, name string, defined []string, kinds ...string) {
	if name == "" || slices.Contains(defined, name) || v.partlyUnreadable(kinds...) {
		return
	}
	d := v.at(Error, CodeReference, at, "%s %q does not exist", what, name)
	v.diags = append(v.diags, v.suggest(d, name, defined))
}

func (v *validator) partlyUnreadable(kinds ...string) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool { return v.app.unreadable[kind] })
}

func (v *validator) componentNames() []string {
	if v.components == nil {
		for _, c := range v.app.Components {
			v.components = append(v.components, c.Name)
		}
	}
	return v.components
}
