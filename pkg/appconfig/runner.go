package appconfig

import (
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Runner is runner.toml: what runs the jobs of an install.
type Runner struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// Where it runs. The names with a dash are older ones.
	RunnerType string `toml:"runner_type" json:"runner_type" rule:"required" enum:"aws,azure,gcp,local,aws-ecs,aws-eks,azure-aks,azure-acs"`
	// Where Helm keeps its releases.
	HelmDriver string `toml:"helm_driver" json:"helm_driver,omitempty" enum:"configmap,secret"`
	// Environment of the runner, such as HELM_MAX_HISTORY.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" template:"true"`
	// A script that the runner's machine runs first.
	InitScriptURL string `toml:"init_script_url" json:"init_script_url,omitempty"`
	// The size of the runner's machine, in the cloud's own words.
	InstanceType string `toml:"instance_type" json:"instance_type,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// Platform is the cloud that the runner runs in: "aws", "azure" or "gcp", and
// "" when it runs in none.
func (r *Runner) Platform() string {
	platform, _, _ := strings.Cut(r.RunnerType, "-")
	if platform == "local" {
		return ""
	}
	return platform
}
