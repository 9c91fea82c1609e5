package orders

import (
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

func terraformModule(c component) (work jobspec.Work, deployable bool) {
	m := c.TerraformModule
	if m == nil {
		return work, false
	}
	work.TerraformModule = module(m.TerraformVersion, m.Vars, m.EnvVars, m.VarFiles)
	work.TerraformModule.Tool = toolOf(c.Berth)
	work.TerraformModule.InstallVars = c.override.TFVars
	return work, true
}

// sandbox is a Terraform module too, or a program of Pulumi.
func sandbox(spec *jobspec.Spec, raw json.RawMessage) error {
	var s appconfig.Sandbox
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read sandbox revision: %w", err)
	}
	spec.File = s.At.File
	if s.Type == appconfig.SandboxTypePulumi {
		spec.Kind, spec.Pulumi = jobspec.KindPulumi, pulumiSandbox(s)
		return nil
	}
	spec.Kind, spec.TerraformModule = jobspec.KindTerraformModule, module(s.TerraformVersion, s.Vars, s.EnvVars, s.VarFiles)
	spec.TerraformModule.Tool = toolOf(s.Berth)
	return nil
}

// probeModule leaves which program a look at a module needs: the rest is what the plan of
// the live change rendered, which the runner keeps.
func probeModule(w *jobspec.Work) {
	w.TerraformModule = &jobspec.TerraformModule{Tool: w.TerraformModule.Tool, TerraformVersion: w.TerraformModule.TerraformVersion}
}

// toolOf is the tool that an app names for a module, "" for none.
func toolOf(ext *appconfig.BlockExtension) string {
	if ext == nil {
		return ""
	}
	return ext.Tool
}

func module(version string, vars, env map[string]string, files []appconfig.VarFile) *jobspec.TerraformModule {
	m := &jobspec.TerraformModule{TerraformVersion: version, EnvVars: env}
	if len(vars) > 0 {
		m.Vars = make(map[string]any, len(vars))
		for k, v := range vars {
			m.Vars[k] = v
		}
	}
	for _, f := range files {
		m.VarFiles = append(m.VarFiles, f.Contents.Contents)
		m.VarFileNames = append(m.VarFileNames, f.Contents.File)
	}
	return m
}
