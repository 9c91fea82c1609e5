package appconfig

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/digest"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/template"
)

// App is a whole app folder, read and canonical: the same folder gives the
// same JSON, byte for byte. Lists are sorted by name where the order in the
// folder has no meaning.
type App struct {
	Metadata    Metadata     `json:"metadata"`
	Sandbox     *Sandbox     `json:"sandbox,omitempty"`
	Runner      *Runner      `json:"runner,omitempty"`
	Stack       *Stack       `json:"stack,omitempty"`
	InputGroups []InputGroup `json:"input_groups,omitempty"`
	Inputs      []Input      `json:"inputs,omitempty"`
	Secrets     []Secret     `json:"secrets,omitempty"`
	Components  []Component  `json:"components,omitempty"`
	Actions     []Action     `json:"actions,omitempty"`

	Permissions        []Role              `json:"permissions,omitempty"`
	BreakGlass         []Role              `json:"break_glass,omitempty"`
	Policies           []Policy            `json:"policies,omitempty"`
	Runbooks           []Runbook           `json:"runbooks,omitempty"`
	Installs           []InstallConfig     `json:"installs,omitempty" digest:"-"` // no part of the app
	InstallsRepo       *InstallsRepo       `json:"installs_repo,omitempty"`
	Branches           []Branch            `json:"branches,omitempty"`
	OperationRoles     *OperationRoles     `json:"operation_roles,omitempty"`
	KubernetesContexts []KubernetesContext `json:"kubernetes_contexts,omitempty"`
	EventTriggers      []EventTrigger      `json:"triggers,omitempty"`
	Installer          *Installer          `json:"installer,omitempty"`

	// Includes lists the files to merge in that stand elsewhere and are not
	// fetched: what the blocks around them say is not all that they will say.
	Includes []fetch.Wanted `json:"includes,omitempty"`
	// Fetched lists what was fetched from elsewhere, sorted by place. It is not
	// part of the digest: the contents are where they belong.
	Fetched []fetch.Fetched `json:"fetched,omitempty" digest:"-"`

	// Origin says where everything was written. It is not part of the digest:
	// a comment that moves lines does not make another config.
	Origin place.Origin `json:"origin" digest:"-"`

	// unreadable names the kinds of which at least one file could not be
	// understood, so that check.Validate does not call its objects unknown too.
	unreadable map[string]bool
	// outputs are what modules at hand declare, by kind and name of their block;
	// nil for an App that was not read from a folder with its sources.
	outputs map[[2]string][]string
}

// Digest identifies what the config means ("sha256:…"). Comments, key order,
// file names and line numbers do not change it; any value does. It does not
// cover local source trees: combine it with their archives' digests.
func (a *App) Digest() string { return digest.Of("app", a, digest.All) }

// Component returns the component with this name, or nil.
func (a *App) Component(name string) *Component {
	for i := range a.Components {
		if a.Components[i].Name == name {
			return &a.Components[i]
		}
	}
	return nil
}

// Action returns the action with this name, or nil.
func (a *App) Action(name string) *Action {
	for i := range a.Actions {
		if a.Actions[i].Name == name {
			return &a.Actions[i]
		}
	}
	return nil
}

// Input returns the input with this name, or nil.
func (a *App) Input(name string) *Input {
	for i := range a.Inputs {
		if a.Inputs[i].Name == name {
			return &a.Inputs[i]
		}
	}
	return nil
}

// Secret returns the secret with this name, or nil.
func (a *App) Secret(name string) *Secret {
	for i := range a.Secrets {
		if a.Secrets[i].Name == name {
			return &a.Secrets[i]
		}
	}
	return nil
}

// Unreadable tells whether a file of one of these kinds could not be read or
// understood, so that what it defines is not known.
func (a *App) Unreadable(kinds ...string) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool { return a.unreadable[kind] })
}

// DeclaredOutputs lists the outputs that the module of a block declares: of the
// sandbox, whose name is "", or of a component; false when the module is not at
// hand, or it is not known what it declares.
func (a *App) DeclaredOutputs(block, name string) ([]string, bool) {
	outputs, known := a.outputs[[2]string{block, name}]
	return outputs, known
}

// ComponentNamed finds a component as templates name it: by name or var_name.
func (a *App) ComponentNamed(name string) *Component {
	if c := a.Component(name); c != nil {
		return c
	}
	for i := range a.Components {
		if a.Components[i].VarName == name {
			return &a.Components[i]
		}
	}
	return nil
}

// ComponentsRead lists the components that stand behind a path of the tree.
func (a *App) ComponentsRead(path []string) []string {
	switch {
	case len(path) >= 2 && path[0] == "components":
		if c := a.ComponentNamed(path[1]); c != nil {
			return []string{c.Name}
		}
	case len(path) >= 3 && path[0] == "actions" && path[1] == "workflows":
		if action := a.Action(path[2]); action != nil {
			return slices.DeleteFunc(slices.Clone(action.Dependencies), func(name string) bool { return a.Component(name) == nil })
		}
	}
	return nil
}

// ClusterMaker returns the component that makes a context's cluster, or "".
func (a *App) ClusterMaker(context string) string {
	for _, k := range a.KubernetesContexts {
		if k.Name == context && a.Component(k.Component) != nil {
			return k.Component
		}
	}
	return ""
}

// ActionNeedsAny tells whether an action needs, by its own word or by what it
// reads, one of the components that are out.
func (a *App) ActionNeedsAny(action *Action, out func(component string) bool) bool {
	if slices.ContainsFunc(action.Dependencies, out) {
		return true
	}
	if made := a.ClusterMaker(action.KubernetesContext); made != "" && out(made) {
		return true
	}
	for _, t := range template.In(action.At, action) {
		refs, err := t.References()
		if err != nil {
			continue // check.Validate reports it
		}
		for _, ref := range refs {
			if slices.ContainsFunc(a.ComponentsRead(ref.Path), out) {
				return true
			}
		}
	}
	return false
}
