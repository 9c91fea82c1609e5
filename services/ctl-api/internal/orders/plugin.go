package orders

import (
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// pluginOf is a component whose type is a plugin's.
func pluginOf(c component) (work jobspec.Work, deployable bool) {
	if c.Plugin == nil || c.Berth == nil || c.Berth.Plugin == nil {
		return work, false
	}
	grant := c.Berth.Plugin
	work.Plugin = &jobspec.Plugin{
		Type: string(c.Type), Signer: grant.Signer,
		Network: grant.Network, Hosts: grant.Hosts, InstallDir: grant.InstallDir, Paths: grant.Paths, Roles: grant.Roles, State: grant.State, Config: c.Plugin,
	}
	return work, true
}

// PluginScript is what a runner accepts of a component whose type is a plugin's;
// found is false for any other. spec is the block of the app folder as JSON.
func PluginScript(spec json.RawMessage, artifact jobspec.Artifact) (s jobspec.Script, found bool, err error) {
	c := component{Component: &appconfig.Component{}}
	if err := json.Unmarshal(spec, c.Component); err != nil {
		return s, false, fmt.Errorf("read component revision: %w", err)
	}
	work, found := pluginOf(c)
	if !found {
		return s, false, nil
	}
	return jobspec.PluginScript(c.Name, *work.Plugin, artifact), true, nil
}
