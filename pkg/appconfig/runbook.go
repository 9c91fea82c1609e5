package appconfig

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Runbook is one file under runbooks/: steps that are run one after the other
// in an install.
type Runbook struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// Unique in the app.
	Name string `toml:"name" json:"name" rule:"required"`
	// What it does.
	Description string `toml:"description" json:"description,omitempty"`
	// Its page, in Markdown. A file's path is relative to the app folder.
	Readme *place.Text `toml:"readme" json:"readme,omitempty" template:"always" base:"."`
	// Labels.
	Labels map[string]string `toml:"labels" json:"labels,omitempty"`
	// Components that it needs.
	Dependencies []string `toml:"dependencies" json:"dependencies,omitempty"`
	// The role of steps that name none.
	Role string `toml:"role" json:"role,omitempty" template:"true"`
	// Values to ask for when it runs.
	Inputs []RunbookInput `toml:"input" alias:"inputs" json:"input,omitempty"`
	// What it runs.
	Steps []RunbookStep `toml:"steps" json:"steps,omitempty" rule:"required"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// RunbookInput is asked for when the runbook is run.
type RunbookInput struct {
	// What templates call it.
	Name string `toml:"name" json:"name" rule:"required"`
	// Its label.
	DisplayName string `toml:"display_name" json:"display_name,omitempty"`
	// What it is.
	Description string `toml:"description" json:"description,omitempty"`
	// The type of its value.
	Type InputType `toml:"type" json:"type,omitempty" enum:"string,number,list,json,bool" default:"string"`
	// Refuses a run without it.
	Required bool `toml:"required" json:"required,omitempty" default:"false"`
}

// RunbookStepType says what a step of a runbook does.
type RunbookStepType string

const (
	RunbookDeploy             RunbookStepType = "deploy" // also written component_deploy
	RunbookAction             RunbookStepType = "action"
	RunbookSandboxProvision   RunbookStepType = "sandbox_provision"
	RunbookSandboxReprovision RunbookStepType = "sandbox_reprovision"
	RunbookSandboxDeprovision RunbookStepType = "sandbox_deprovision"
)

// RunbookStep is one step of a runbook. One of type action names an action, or
// is one itself.
type RunbookStep struct {
	// Unique in the runbook.
	Name string `toml:"name" json:"name" rule:"required"`
	// What it does; "component_deploy" is "deploy".
	Type RunbookStepType `toml:"type" json:"type" rule:"required" enum:"deploy,component_deploy,action,sandbox_provision,sandbox_reprovision,sandbox_deprovision"`
	// The component that is deployed.
	ComponentName string `toml:"component_name" json:"component_name,omitempty"`
	// Deploys what the component needs, too.
	DeployDependencies bool `toml:"deploy_dependencies" json:"deploy_dependencies,omitempty" default:"false"`
	// Leaves out the components after a step of the sandbox.
	SkipComponentDeploys bool `toml:"skip_component_deploys" json:"skip_component_deploys,omitempty" default:"false"`
	// The action that is run.
	ActionName string `toml:"action_name" json:"action_name,omitempty"`
	// A command line, instead of an action.
	Command string `toml:"command" json:"command,omitempty" template:"true"`
	// A script, instead of an action: its text, or a file.
	InlineContents *place.Text `toml:"inline_contents" json:"inline_contents,omitempty" template:"true"`
	// Environment of the command or script.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" template:"true"`
	// How long the step may take, at most 1h; 5m for a command or script.
	Timeout place.Duration `toml:"timeout" json:"timeout,omitzero"`
	// The role that it runs under; the runbook's by default.
	Role string `toml:"role" json:"role,omitempty" template:"true"`
}

// Runbook returns the runbook with this name, or nil.
func (a *App) Runbook(name string) *Runbook {
	for i := range a.Runbooks {
		if a.Runbooks[i].Name == name {
			return &a.Runbooks[i]
		}
	}
	return nil
}

func (r *Runbook) check(c *checker) {
	c.name(r.At, "runbook", r.Name)
	for i := range r.Steps {
		s := &r.Steps[i]
		at := r.At.Below("steps").Item(i)
		if s.Type == "component_deploy" {
			s.Type = RunbookDeploy
		}
		s.check(c, at)
		first := slices.IndexFunc(r.Steps, func(other RunbookStep) bool { return other.Name == s.Name })
		if first < i && s.Name != "" {
			c.Add(place.Error, place.CodeDuplicate, at.Below("name"), "runbook %q has two steps called %q", r.Name, s.Name)
		}
	}
}

func (s *RunbookStep) check(c *checker, at place.Place) {
	c.positive(at.Below("timeout"), s.Timeout)
	if s.Timeout.Std() > MaxActionTimeout {
		c.Add(place.Error, place.CodeValue, at.Below("timeout"), "timeout of step %q is %s; the longest is %s", s.Name, s.Timeout, MaxActionTimeout)
	}
	given := 0
	for _, is := range []bool{s.ActionName != "", s.Command != "", s.InlineContents != nil} {
		if is {
			given++
		}
	}
	switch s.Type {
	case RunbookDeploy:
		if s.ComponentName == "" && !c.Misspelt(at, "component_name") {
			c.Add(place.Error, place.CodeMissing, at, "step %q deploys a component, so it needs component_name", s.Name)
		}
	case RunbookAction:
		if given == 0 && !c.Misspelt(at, "action_name", "command", "inline_contents") {
			c.Add(place.Error, place.CodeMissing, at, "step %q needs action_name, command or inline_contents", s.Name)
		}
	}
	if given > 1 {
		c.Add(place.Error, place.CodeExclusive, at, "step %q can have only one of action_name, command and inline_contents", s.Name)
	}
	if s.Type != RunbookAction && s.Type != "" && given > 0 {
		c.Add(place.Warning, place.CodeValue, at, "step %q is of type %q, so its action does nothing", s.Name, s.Type)
	}
}
