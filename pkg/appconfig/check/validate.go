package check

import (
	"slices"

	"github.com/berth-dev/berth/pkg/alongside"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Validate checks the rules between blocks: names are used once, and what is
// named exists, in templates too; no component waits for itself. It is pure:
// it reads nothing but the App. Load has checked each block on its own.
func Validate(app *appconfig.App) []place.Diagnostic {
	// Most of the time goes into parsing what the app's files contain.
	contents := alongside.Run(func() []place.Diagnostic {
		v := newValidator(app)
		v.contents()
		_, cycles := graph.New(app)
		return append(v.Diags, cycles...)
	})
	v := newValidator(app)
	v.names()
	v.groups()
	v.dependencies()
	v.actions()
	v.remediations()
	v.requiredChecks()
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
	return place.Sort(append(v.Diags, contents()...))
}

func newValidator(app *appconfig.App) *validator {
	return &validator{Report: place.Report{Origin: &app.Origin}, app: app}
}

type validator struct {
	place.Report
	app            *appconfig.App
	componentNames *definedNames   // of components
	known          map[string]bool // files whose contents are checked
	parsed         int             // bytes of contents that are checked
	skipped        int             // contents that are too large to be checked
	firstSkipped   place.Place
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
			v.Add(place.Error, place.CodeDuplicate, c.At.Below("var_name"), "var_name %q is already a name of component %q", c.VarName, other)
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
			once(a.At.Below("inputs").Item(i), in.Name)
		}
	}
	for _, r := range v.app.Runbooks {
		once := v.once("input")
		for i, in := range r.Inputs {
			once(r.At.Below("input").Item(i), in.Name)
		}
	}
	if v.app.Stack == nil {
		return
	}
	once := v.once("nested stack")
	for i, nested := range v.app.Stack.CustomNestedStacks {
		once(v.app.Stack.At.Below("custom_nested_stacks").Item(i), nested.Name)
	}
}

// once returns a function that reports the second use of a name.
func (v *validator) once(what string) func(at place.Place, name string) {
	first := map[string]place.Place{}
	return func(at place.Place, name string) {
		if name == "" {
			return
		}
		if other, taken := first[name]; taken {
			v.Add(place.Error, place.CodeDuplicate, at.Below("name"), "%s %q is already defined at %s", what, name, v.Origin.Where(other.Below("name")))
			return
		}
		first[name] = at
	}
}

func (v *validator) groups() {
	groups := namesOf("input group", v.app.InputGroups, func(g *appconfig.InputGroup) string { return g.Name }, "input_groups", "inputs")
	for _, in := range v.app.Inputs {
		v.exists(in.At.Below("group"), in.Group, groups)
	}
}

func (v *validator) dependencies() {
	components := v.components()
	for _, c := range v.app.Components {
		for i, dep := range c.Dependencies {
			at := c.At.Below("dependencies").Item(i)
			if dep == c.Name {
				v.Add(place.Error, place.CodeCycle, at, "component %q depends on itself", c.Name)
				continue
			}
			v.exists(at, dep, components)
		}
	}
}

func (v *validator) actions() {
	components := v.components()
	for _, a := range v.app.Actions {
		v.imageNeedsPods(&a)
		for i, dep := range a.Dependencies {
			at := a.At.Below("dependencies").Item(i)
			v.exists(at, dep, components)
			if slices.Contains(a.Dependencies[:i], dep) {
				v.Add(place.Error, place.CodeDuplicate, at, "action %q depends on %q twice", a.Name, dep)
			}
		}
		for i, t := range a.Triggers {
			v.exists(a.At.Below("triggers").Item(i).Below("component_name"), t.ComponentName, components)
		}
	}
}

// imageNeedsPods warns of steps in an image where the app's stack has no runner that
// can start one. An install may have another stack, so it is no error.
func (v *validator) imageNeedsPods(a *appconfig.Action) {
	if a.Image == "" || v.app.Stack == nil || v.app.Stack.Type != appconfig.StackLocal {
		return
	}
	v.Diags = append(v.Diags, v.At(place.Warning, place.CodeValue, a.At.Below("image"),
		"action %q runs its steps in an image, which takes a runner whose engines are pods: the runner of a local stack refuses it", a.Name).
		WithRemedy(`set type = "kubernetes" in stack.toml, or leave out image`))
}

// kubernetesContexts checks that contexts and their makers exist.
func (v *validator) kubernetesContexts() {
	once, components := v.once("kubernetes context"), v.components()
	contexts := definedNames{what: "kubernetes context", names: []string{appconfig.SandboxContext}, kinds: []string{"kubernetes_contexts"}}
	for _, k := range v.app.KubernetesContexts {
		once(k.At, k.Name)
		contexts.names = append(contexts.names, k.Name)
		v.exists(k.At.Below("component"), k.Component, components)
		if c := v.app.Component(k.Component); c != nil && (c.HelmChart != nil || c.KubernetesManifest != nil || c.ContainerImage != nil || c.DockerBuild != nil || c.Job != nil) {
			v.Diags = append(v.Diags, v.At(place.Error, place.CodeValue, k.At.Below("component"), "component %q is of type %s, which makes no cluster", c.Name, c.Type).
				WithRemedy("name one of type terraform_module or pulumi"))
		}
	}
	for _, c := range v.app.Components {
		v.exists(c.At.Below("kubernetes_context"), c.KubernetesContext, contexts)
		if made := v.app.ClusterMaker(c.KubernetesContext); made != "" && made != c.Name && c.HelmChart == nil && c.KubernetesManifest == nil {
			v.Add(place.Note, place.CodeValue, c.At.Below("kubernetes_context"), "component %q of type %s is not deployed to a cluster: kubernetes_context only has it come after %q", c.Name, c.Type, made)
		}
		if v.app.ClusterMaker(c.KubernetesContext) == c.Name && c.Name != "" {
			v.Add(place.Error, place.CodeCycle, c.At.Below("kubernetes_context"), "component %q is deployed to the cluster that it makes itself", c.Name)
		}
	}
	for _, a := range v.app.Actions {
		v.exists(a.At.Below("kubernetes_context"), a.KubernetesContext, contexts)
	}
}
