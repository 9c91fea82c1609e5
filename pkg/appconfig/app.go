package appconfig

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
	Includes []Fetch `json:"includes,omitempty"`
	// Fetched lists what was fetched from elsewhere, sorted by place. It is not
	// part of the digest: the contents are where they belong.
	Fetched []Fetched `json:"fetched,omitempty" digest:"-"`

	// Origin says where everything was written. It is not part of the digest:
	// a comment that moves lines does not make another config.
	Origin Origin `json:"origin" digest:"-"`

	// unreadable names the kinds of which at least one file could not be
	// understood, so that Validate does not call its objects unknown too.
	unreadable map[string]bool
}

// Digest identifies what the config means ("sha256:…"). Comments, key order,
// file names and line numbers do not change it; any value does. It does not
// cover local source trees: combine it with their archives' digests.
func (a *App) Digest() string { return digestOf("app", a, includeAll) }

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

// componentNamed finds a component as templates name it: by name or var_name.
func (a *App) componentNamed(name string) *Component {
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
