package orders

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/stepimage"
	"github.com/berth-dev/berth/services/internal/fault"
)

// scriptTime is how long a script may take when nobody says.
const scriptTime = 5 * time.Minute

// Script is a script that is part of no release, as the row of its workflow keeps it.
type Script struct {
	Name string            `json:"name,omitempty"`
	Text string            `json:"text"`
	Env  map[string]string `json:"env,omitempty"`
	// Secret are the names of its sensitive variables, sorted; Sealed holds their
	// values, sealed at rest for this text alone.
	Secret []string `json:"secret,omitempty"`
	Sealed []byte   `json:"sealed,omitempty"`

	TimeoutSeconds int    `json:"timeout_seconds,omitempty"`
	Kubeconfig     bool   `json:"kubeconfig,omitempty"`
	Context        string `json:"context,omitempty"`
	Image          string `json:"image,omitempty"`
	Component      string `json:"component,omitempty"`
}

// envName is a name that every shell takes.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Check says what is wrong with a script whatever the install is.
//
// Errors: ErrInvalid.
func (s Script) Check() error {
	if strings.TrimSpace(s.Text) == "" {
		return fault.Newf(fault.ErrInvalid, "the script is empty")
	}
	if strings.ContainsRune(s.Text, 0) {
		return fault.Newf(fault.ErrInvalid, "the script is no text: it has a zero byte")
	}
	for _, name := range append(slices.Sorted(maps.Keys(s.Env)), s.Secret...) {
		if !envName.MatchString(name) {
			return fault.Newf(fault.ErrInvalid, "%q cannot be the name of an environment variable: letters, digits and _ can, and no digit first", name)
		}
	}
	for _, name := range s.Secret {
		if _, twice := s.Env[name]; twice {
			return fault.Newf(fault.ErrInvalid, "environment variable %s is given twice, in env and in sensitive_env", name)
		}
	}
	if s.Image != "" && !strings.Contains(s.Image, "{{") {
		if err := stepimage.Check(s.Image); err != nil {
			return fault.With(fault.Newf(fault.ErrInvalid, "image: %v", err), fault.Remedy("%s", stepimage.Remedy))
		}
	}
	return nil
}

// Fits says what of a script the app does not have.
//
// Errors: ErrInvalid, naming what was probably meant.
func (s Script) Fits(app *appconfig.App) error {
	if s.Context == "" || s.Context == appconfig.SandboxContext || app.ClusterMaker(s.Context) != "" {
		return nil
	}
	names := []string{appconfig.SandboxContext}
	for _, k := range app.KubernetesContexts {
		names = append(names, k.Name)
	}
	return fault.Newf(fault.ErrInvalid, "the release has no kubernetes_context %q%s", s.Context, meant(s.Context, names))
}

// Action is what its runs are listed under. No action of an app has such a name.
func (s Script) Action() string {
	name := s.Name
	if name == "" {
		name = "unnamed"
	}
	return "script/" + name
}

// Timeout is how long it may take.
func (s Script) Timeout() time.Duration {
	if s.TimeoutSeconds == 0 {
		return scriptTime
	}
	return time.Duration(s.TimeoutSeconds) * time.Second
}

// Digest names the text, to which sealed values are bound.
func (s Script) Digest() string { return capsule.DigestBytes([]byte(s.Text)) }

// Order turns it into what the engine works from. A sensitive variable reads its value in
// the tree, as a template, so that the spec holds none.
func (s Script) Order(app *appconfig.App) *jobspec.Action {
	step := jobspec.ActionStep{Name: "script", InlineContents: s.Text, EnvVars: map[string]string{}, NoKubeConfig: !s.Kubeconfig && s.Context == ""}
	maps.Copy(step.EnvVars, s.Env)
	for _, name := range s.Secret {
		step.EnvVars[name] = fmt.Sprintf("{{ .nuon.%s.env.%s }}", interpolate.ScriptKey, name)
	}
	return &jobspec.Action{Name: s.Action(), Steps: []jobspec.ActionStep{step}, Image: s.Image, Cluster: cluster(app, s.Context), AdHoc: true}
}
