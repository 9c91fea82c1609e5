package terraform

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

// inputs are the rendered values that a module is run with. They may hold
// secrets.
type inputs struct {
	Vars     map[string]any    `json:"vars"`
	VarFiles []string          `json:"var_files"`
	EnvVars  map[string]string `json:"env_vars"`
}

// varPrefix marks environment variables that Terraform takes for variables.
const varPrefix = "TF_VAR_"

// renderEnv renders the environment of a component, TF_VAR_… included.
func renderEnv(j *job.Job, spec *jobspec.TerraformModule) (map[string]string, error) {
	env, err := j.RenderEnv("env_vars", spec.EnvVars)
	if err != nil {
		return nil, err
	}
	plain := map[string]string{}
	for name, v := range env {
		if !strings.HasPrefix(name, varPrefix) {
			plain[name] = v
		}
	}
	return env, checkEnvVars(plain)
}

// renderInputs renders everything that the module reads. A TF_VAR_… of the
// environment becomes a variable, below vars of the same name.
func renderInputs(j *job.Job, m *module.Module, env map[string]string) (inputs, error) {
	spec := j.Spec.TerraformModule
	in := inputs{Vars: map[string]any{}, VarFiles: []string{}, EnvVars: map[string]string{}}
	for name, v := range env {
		variable, isVar := strings.CutPrefix(name, varPrefix)
		if !isVar {
			in.EnvVars[name] = v
			continue
		}
		// Terraform ignores those that are not declared.
		if declared, ok := m.Variables[variable]; ok {
			value, err := declared.Parse(v)
			if err != nil {
				return in, job.Wrongf("", "env_vars.%s: %v", name, err)
			}
			in.Vars[variable] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Vars)) {
		declared, ok := m.Variables[name]
		if !ok {
			warnUndeclared(j, "vars."+name, name, m)
			continue
		}
		value, err := renderVar(j, declared, spec.Vars[name])
		if err != nil {
			return in, err
		}
		in.Vars[name] = value
	}
	for i, contents := range spec.VarFiles {
		text, err := j.RenderFile(fmt.Sprintf("var_file %d", i+1), job.NameOf(spec.VarFileNames, i), contents)
		if err != nil {
			return in, err
		}
		in.VarFiles = append(in.VarFiles, text)
	}
	own, err := renderInstallVars(j, m)
	maps.Copy(in.Vars, own)
	return in, err
}

// renderInstallVars renders what the install says itself of variables.
func renderInstallVars(j *job.Job, m *module.Module) (map[string]any, error) {
	const place = "tf_vars of the install"
	text, err := j.RenderFile(place, place, j.Spec.TerraformModule.InstallVars)
	if err != nil || text == "" {
		return nil, err
	}
	values, err := module.ParseVars(text)
	if err != nil {
		return nil, job.Wrongf("correct it, also where it has templates in it", "%s: %s: %v", j.Subject(), place, err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := m.Variables[name]; !ok {
			warnUndeclared(j, place, name, m)
			delete(values, name)
		}
	}
	return values, nil
}

func renderVar(j *job.Job, declared module.Variable, given any) (any, error) {
	what := "vars." + declared.Name
	text, isText := given.(string)
	if !isText {
		return j.RenderTree(what, given) // a list or a table of the app folder keeps its shape
	}
	if declared.Kind == module.Collection || declared.Kind == module.Any {
		value, ok, err := j.RenderValue(what, text)
		if err != nil {
			return nil, err
		}
		if _, isText := value.(string); ok && !isText {
			return value, nil
		}
	}
	rendered, err := j.Render(what, text)
	if err != nil {
		return nil, err
	}
	value, err := declared.Parse(rendered)
	if err != nil {
		return nil, job.Wrongf(fmt.Sprintf("the module declares it in %s", declared.At), "%s: %v", what, err)
	}
	return value, nil
}

// warnUndeclared says in the log that a value is dropped: the module has no
// variable for it, and Terraform itself would only warn.
func warnUndeclared(j *job.Job, place, name string, m *module.Module) {
	j.Logf("Warning: %s: the module of %s declares no variable %q, so its value is dropped; %s", place, j.Subject(), name, undeclaredRemedy(name, m))
}

func undeclaredRemedy(name string, m *module.Module) string {
	var similar []string
	squeezed := strings.NewReplacer("_", "", "-", "")
	for declared := range m.Variables {
		if strings.EqualFold(squeezed.Replace(declared), squeezed.Replace(name)) {
			similar = append(similar, declared)
		}
	}
	if len(similar) > 0 {
		return fmt.Sprintf("did you mean %q?", slices.Sorted(slices.Values(similar))[0])
	}
	if len(m.Variables) == 0 {
		return "the module declares no variables at all: remove it, or declare it"
	}
	return "it declares " + strings.Join(slices.Sorted(maps.Keys(m.Variables)), ", ")
}

// write writes the inputs as files that Terraform reads, and returns their
// paths, the one that wins last.
func (in inputs) write(dir string) ([]string, error) {
	var paths []string
	for i, contents := range in.VarFiles {
		name := fmt.Sprintf("var_file_%02d.tfvars", i+1)
		if strings.HasPrefix(strings.TrimSpace(contents), "{") {
			name += ".json"
		}
		path := filepath.Join(dir, name)
		if err := job.WriteFile(path, []byte(contents)); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	path := filepath.Join(dir, "vars.tfvars.json")
	if err := job.WriteJSON(path, in.Vars); err != nil {
		return nil, err
	}
	return append(paths, path), nil
}
