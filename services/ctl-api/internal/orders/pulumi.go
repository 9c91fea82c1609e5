package orders

import (
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

func pulumi(c component) (work jobspec.Work, deployable bool) {
	p := c.Pulumi
	if p == nil {
		return work, false
	}
	work.Pulumi = &jobspec.Pulumi{Runtime: p.Runtime, Config: p.Config, EnvVars: p.EnvVars}
	return work, true
}

// pulumiSandbox is a sandbox whose type is pulumi.
func pulumiSandbox(s appconfig.Sandbox) *jobspec.Pulumi {
	return &jobspec.Pulumi{Runtime: s.Runtime, Config: s.PulumiConfig, EnvVars: s.EnvVars}
}
