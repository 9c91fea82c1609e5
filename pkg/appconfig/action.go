package appconfig

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/digest"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/stepimage"
)

const (
	// DefaultActionTimeout ends an action that does not say how long it may take.
	DefaultActionTimeout = 5 * time.Minute
	// MaxActionTimeout is the longest timeout that is accepted.
	MaxActionTimeout = time.Hour

	// DefaultUnhealthyAfter failures in a row make a check unhealthy.
	DefaultUnhealthyAfter = 3
	// DefaultHealthyAfter successes in a row make a check healthy again.
	DefaultHealthyAfter = 2
)

// Action is one file under actions/: a script that runs in an install, by hand,
// on a cron, or at a point of its life cycle. The label type = "health-check" or
// is_health_check makes it a health check.
type Action struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// Unique in the app.
	Name string `toml:"name" json:"name" rule:"required"`
	// What it does.
	Description string `toml:"description" json:"description,omitempty"`
	// How long a run may take, at most 1h.
	Timeout place.Duration `toml:"timeout" json:"timeout" default:"5m"`
	// Components that it needs.
	Dependencies []string `toml:"dependencies" json:"dependencies,omitempty"`
	// The role that it runs under; the maintenance role by default.
	Role string `toml:"role" json:"role,omitempty" template:"true"`
	// The break-glass role that it runs under: by hand, or when a role is switched on or off.
	BreakGlassRole string `toml:"break_glass_role" json:"break_glass_role,omitempty" template:"true"`
	// Gives its steps a kubeconfig.
	EnableKubeConfig bool `toml:"enable_kube_config" json:"enable_kube_config" default:"true"`
	// The cluster of that kubeconfig, of kubernetes_contexts.toml.
	KubernetesContext string `toml:"kubernetes_context" json:"kubernetes_context,omitempty" default:"sandbox"`
	// An image that the steps run in, named by host and digest; it needs a runner in a
	// cluster whose engines are Kubernetes Jobs. By default they run in the runner's.
	Image string `toml:"image" json:"image,omitempty" template:"true"`
	// Labels.
	Labels map[string]string `toml:"labels" alias:"label" json:"labels,omitempty"`
	// Values to ask for when it runs.
	Inputs []ActionInput `toml:"inputs" json:"inputs,omitempty"`
	// What starts it.
	Triggers []Trigger `toml:"triggers" json:"triggers,omitempty"`
	// What it runs, one after the other.
	Steps []Step `toml:"steps" json:"steps,omitempty" rule:"required"`
	// Berth's own settings.
	Berth *ActionExtension `toml:"berth" json:"berth,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`

	// ImageDigest is what a release has built of the component that Image names. Only
	// an app that was read from a release has it.
	ImageDigest string `toml:"-" json:"-" digest:"-"`
}

// imageOfComponent is an image that is a component, and nothing else.
var imageOfComponent = regexp.MustCompile(`^\s*\{\{-?\s*\.(?:nuon|berth)\.components\.(\w+)\.outputs\.image\.ref\s*-?\}\}\s*$`)

// PinImages gives each action whose image is a component's the digest that a
// release has of the component. digests are by component name.
func (app *App) PinImages(digests map[string]string) {
	for i := range app.Actions {
		a := &app.Actions[i]
		m := imageOfComponent.FindStringSubmatch(a.Image)
		if m == nil {
			continue
		}
		c := slices.IndexFunc(app.Components, func(c Component) bool { return c.Name == m[1] || c.VarName == m[1] })
		if c >= 0 {
			a.ImageDigest = digests[app.Components[c].Name]
		}
	}
}

// ActionInput is asked for when the action is run and passed as environment.
type ActionInput struct {
	// What templates and the environment call it.
	Name string `toml:"name" json:"name" rule:"required"`
	// What it is.
	Description string `toml:"description" json:"description,omitempty"`
	// Refuses a run without it.
	Required bool `toml:"required" json:"required,omitempty" default:"false"`
}

// Step is one script of an action: either a command or inline contents.
type Step struct {
	// Unique in the action.
	Name string `toml:"name" json:"name" rule:"required"`
	// A command line, or a script of the step's repository; one of these two must be given.
	Command string `toml:"command" json:"command,omitempty" template:"true"`
	// A script: its text, or a file.
	InlineContents *place.Text `toml:"inline_contents" json:"inline_contents,omitempty" template:"true"`
	// Its environment.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" template:"true"`
	// Gives this step a kubeconfig; as the action says by default.
	EnableKubeConfig *bool `toml:"enable_kube_config" json:"enable_kube_config,omitempty"`
	// A repository that everybody can read; `command` works in its directory.
	PublicRepo *Repo `toml:"public_repo" json:"public_repo,omitempty"`
	// A repository that the org's own connection reads; `command` works in its directory.
	ConnectedRepo *Repo `toml:"connected_repo" json:"connected_repo,omitempty"`

	// Artifact is what a release has built of the repository. Only an app that was
	// read from a release has it.
	Artifact *Artifact `toml:"-" json:"-" digest:"-"`
}

// Artifact names what a build left in the org's registry.
type Artifact struct {
	Repository string
	Digest     string // "sha256:…"
}

// HealthCheck returns the thresholds of an action that gives a health verdict,
// or false for any other action. An action is a health check when it has the
// label type = "health-check" or is_health_check, or a [berth.health_check] table; one
// under a break-glass role is none, since that is mostly off.
func (a *Action) HealthCheck() (HealthCheck, bool) {
	thresholds := HealthCheck{UnhealthyAfter: DefaultUnhealthyAfter, HealthyAfter: DefaultHealthyAfter}
	if a.Berth != nil && a.Berth.HealthCheck != nil {
		thresholds = *a.Berth.HealthCheck
	}
	return thresholds, a.asksForCheck() && a.BreakGlassRole == ""
}

// asksForCheck tells whether the action says of itself that it is a health check.
func (a *Action) asksForCheck() bool {
	return a.Berth != nil && a.Berth.HealthCheck != nil || slices.ContainsFunc(slices.Collect(maps.Keys(a.Labels)), a.isHealthLabel)
}

// Unattended tells whether the action runs by itself on a schedule and may change
// something. An action under a break-glass role never runs by itself.
func (a *Action) Unattended() bool {
	_, check := a.HealthCheck()
	return a.scheduled() && !check && a.BreakGlassRole == ""
}

func (a *Action) scheduled() bool {
	return slices.ContainsFunc(a.Triggers, func(t Trigger) bool { return t.Type == TriggerCron })
}

// isHealthLabel tells whether a label of the action makes it a health check.
func (a *Action) isHealthLabel(label string) bool {
	value := a.Labels[label]
	return label == "type" && value == "health-check" || label == "is_health_check" && (value == "" || value == "true")
}

// OtherLabels tells whether the action has labels that say something else.
func (a *Action) OtherLabels() bool {
	for label := range a.Labels {
		if !a.isHealthLabel(label) {
			return true
		}
	}
	return false
}

// Digest identifies what the action does and when.
func (a *Action) Digest() string { return digest.Of("action", a, digest.All) }

func (a *Action) check(c *checker) {
	c.name(a.At, "action", a.Name)
	if a.IsProbe() {
		c.Add(place.Error, place.CodeValue, a.At.Below("name"), "action %q: names that begin with %s are those of the probes of components", a.Name, jobspec.AppProbePrefix)
	}
	c.positive(a.At.Below("timeout"), a.Timeout)
	if a.Timeout == 0 {
		a.Timeout = place.Duration(DefaultActionTimeout)
	}
	if a.Timeout.Std() > MaxActionTimeout {
		c.Add(place.Error, place.CodeValue, a.At.Below("timeout"), "timeout of action %q is %s; the longest is %s", a.Name, a.Timeout, MaxActionTimeout)
	}
	if a.BreakGlassRole != "" && a.asksForCheck() {
		c.Diags = append(c.Diags, c.At(place.Warning, place.CodeExclusive, a.At, "action %q runs under a break-glass role, which is off until the customer switches it on, so it is no health check", a.Name).
			WithRemedy("take the role away, or what makes it a health check"))
	}
	a.checkImage(c)
	if a.Berth != nil {
		c.guardrails(a.At.Below("berth.guardrails"), a.Berth.Guardrails)
		c.tools(a.At.Below("berth.tools"), a.Berth.Tools)
	}
	if hc := a.healthTable(); hc != nil {
		at := a.At.Below("berth.health_check")
		hc.check(c, at, HealthCheck{UnhealthyAfter: DefaultUnhealthyAfter, HealthyAfter: DefaultHealthyAfter})
		if hc.Remediation != "" && !a.scheduled() {
			c.Diags = append(c.Diags, c.At(place.Warning, place.CodeExclusive, at.Below("remediation"), "remediation does nothing: health check %q runs on no schedule", a.Name).
				WithRemedy("give it a trigger of type cron"))
		}
	}
	for i := range a.Triggers {
		a.Triggers[i].check(c, a, a.At.Below("triggers").Item(i))
	}
	for i := range a.Steps {
		a.Steps[i].check(c, a, a.At.Below("steps").Item(i))
	}
}

// checkImage refuses an image that may be another one tomorrow. Nobody approves a
// plan of a check, so a template can only be a component there: the release says
// which image that is.
func (a *Action) checkImage(c *checker) {
	_, check := a.HealthCheck()
	var err error
	switch {
	case a.Image == "":
	case !interpolate.IsTemplate(a.Image):
		err = stepimage.Check(a.Image)
	case check && !imageOfComponent.MatchString(a.Image):
		err = errors.New("the image of a health check is a name with a digest, or exactly one component's")
	}
	if err != nil {
		c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, a.At.Below("image"), "action %q: %v", a.Name, err).WithRemedy(stepimage.Remedy))
	}
}

func (a *Action) healthTable() *HealthCheck {
	if a.Berth == nil {
		return nil
	}
	return a.Berth.HealthCheck
}

func (s *Step) check(c *checker, a *Action, at place.Place) {
	hasRepo := s.PublicRepo != nil || s.ConnectedRepo != nil
	switch {
	case s.Command == "" && s.InlineContents == nil && c.Misspelt(at, "command", "inline_contents"):
	case s.Command == "" && s.InlineContents == nil:
		c.Add(place.Error, place.CodeMissing, at, "step %q needs command or inline_contents", s.Name)
	case s.Command != "" && s.InlineContents != nil:
		c.Add(place.Error, place.CodeExclusive, at, "step %q has both command and inline_contents", s.Name)
	case s.InlineContents != nil && hasRepo:
		c.Add(place.Error, place.CodeExclusive, at, "step %q has a repository, which goes with command, not with inline_contents", s.Name)
	}
	if s.PublicRepo != nil && s.ConnectedRepo != nil {
		c.Add(place.Error, place.CodeExclusive, at, "step %q has both public_repo and connected_repo", s.Name)
	}
	first := slices.IndexFunc(a.Steps, func(other Step) bool { return other.Name == s.Name })
	if &a.Steps[first] != s {
		c.Add(place.Error, place.CodeDuplicate, at.Below("name"), "action %q has two steps called %q", a.Name, s.Name)
	}
}
