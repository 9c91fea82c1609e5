package terraform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

// rehearsedFile, in pinned/, says what a plan of a rehearsal put in the place of
// the module, so that its apply does the same.
const rehearsedFile = "rehearsed.json"

// onThisMachine are the providers that need no cloud and no cluster. A module that
// has others is rehearsed.
var onThisMachine = []string{
	"hashicorp/random", "hashicorp/null", "hashicorp/local", "hashicorp/time", "hashicorp/tls", "hashicorp/archive",
	"hashicorp/template", "hashicorp/external", "hashicorp/cloudinit",
}

// Why a stand-in takes the place of a module.
const (
	whySandbox  = "the sandbox needs a cloud, so a stand-in gives the outputs that the app reads"
	whyRendered = "there is no cluster, so it was rendered and checked, and not applied"
	whyDestroy  = "only the stand-in is removed; nothing else was made"
)

// rehearse decides how a module of a rehearsal is planned: nil as it is.
func rehearse(ctx context.Context, j *job.Job, env map[string]string) (*standIn, error) {
	r := j.Spec.Rehearsal
	if r == nil {
		return nil, nil
	}
	said := jobspec.Rehearsed{How: jobspec.RehearsedStandIn, Why: whySandbox, MadeUp: r.MadeUp}
	if r.Why != "" {
		said.How, said.Why = jobspec.RehearsedNotPlanned, r.Why
		return &standIn{Rehearsed: said}, nil
	}
	if r.StandIn {
		return &standIn{Rehearsed: said}, renderAll(j)
	}
	if r.Chart != nil || r.Manifest != nil { // its destruction: all else was rendered
		said.How, said.Why = jobspec.RehearsedNotPlanned, whyDestroy
		return &standIn{Rehearsed: said}, nil
	}
	providers, err := providersIn(tree{j.In("artifact"), isOpenTofu(j)}, ".", map[string]bool{})
	if err != nil {
		return nil, job.Wrongf("correct the module and build it again", "the module of %s cannot be read: %v", j.Subject(), err)
	}
	said.Providers = clouds(providers)
	if j.Spec.Destroy {
		if len(said.Providers) == 0 {
			return nil, nil
		}
		said.How, said.Why = jobspec.RehearsedNotPlanned, whyDestroy
		return &standIn{Rehearsed: said}, nil
	}
	return tryModule(ctx, j, trial{env: env, providers: providers, said: said})
}

// clouds are the sources of the providers that are not of this machine, sorted.
func clouds(providers map[string]module.Provider) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		source := providers[name].Source
		if !slices.Contains(onThisMachine, source) && !slices.Contains(out, source) {
			out = append(out, source)
		}
	}
	slices.Sort(out)
	return out
}

// providersIn are the providers of a module and of those that it calls by path,
// each by the name that its module gives it. A module of a registry says in its own
// name which provider it is for.
func providersIn(t tree, dir string, seen map[string]bool) (map[string]module.Provider, error) {
	all := map[string]module.Provider{}
	if seen[dir] {
		return all, nil
	}
	seen[dir] = true
	m, err := module.Read(filepath.Join(t.root, filepath.FromSlash(dir)), t.openTofu)
	if err != nil {
		return nil, err
	}
	for _, call := range m.Calls {
		if !call.Local() {
			if name := providerOfRegistry(call.Source); name != "" {
				all[name] = module.Provider{Source: "hashicorp/" + name}
			}
			continue
		}
		called, err := providersIn(t, filepath.ToSlash(filepath.Join(dir, call.Source)), seen)
		if err != nil {
			return nil, err
		}
		for name, p := range called {
			p.Aliases = nil // the caller gives it its configurations
			all[name] = p
		}
	}
	maps.Copy(all, m.Providers)
	return all, nil
}

// providerOfRegistry reads the provider out of "NAMESPACE/NAME/PROVIDER" or
// "HOST/NAMESPACE/NAME/PROVIDER"; "" for sources of another form.
func providerOfRegistry(source string) string {
	address, _, _ := strings.Cut(source, "//")
	parts := strings.Split(address, "/")
	if strings.ContainsAny(address, ":?@") || len(parts) < 3 || len(parts) > 4 || len(parts) == 3 && strings.Contains(parts[0], ".") {
		return ""
	}
	return parts[len(parts)-1]
}

// renderAll renders everything that the module would read, for the mistakes in it.
func renderAll(j *job.Job) error {
	spec := j.Spec.TerraformModule
	if j.Spec.Destroy {
		return nil // what it read may be gone
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Vars)) {
		if _, err := j.RenderTree("vars."+name, spec.Vars[name]); err != nil {
			return err
		}
	}
	for i, contents := range spec.VarFiles {
		if _, err := j.RenderFile(fmt.Sprintf("var_file %d", i+1), job.NameOf(spec.VarFileNames, i), contents); err != nil {
			return err
		}
	}
	return nil
}

// standIn is a module of ours in the place of one that needs a cloud.
type standIn struct {
	jobspec.Rehearsed
	// plan is what the module's own plan came to; nil without one. It is no part of
	// what an apply needs.
	plan *jobspec.PlanSummary
	// detail is what Terraform said where it could not plan; "" for nothing.
	detail string
}

// pinnedStandIn reads what the plan decided; nil for a module as it is.
func pinnedStandIn(j *job.Job) (*standIn, error) {
	if j.Spec.Rehearsal == nil {
		return nil, nil
	}
	var s standIn
	err := job.ReadJSON(j.In("pinned", rehearsedFile), &s.Rehearsed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &s, err
}

const outputsFile = "rehearsal.json"

// write writes the module: one object that holds the outputs, and the outputs.
func (s *standIn) write(dir string, r *jobspec.Rehearsal) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	values := r.Outputs
	if values == nil {
		values = map[string]any{}
	}
	if err := job.WriteJSON(filepath.Join(dir, outputsFile), values); err != nil {
		return err
	}
	outputs := map[string]any{}
	for name := range values {
		outputs[name] = map[string]any{"value": fmt.Sprintf("${local.outputs[%q]}", name)}
	}
	main := map[string]any{
		"locals":   map[string]any{"outputs": fmt.Sprintf("${jsondecode(file(\"${path.module}/%s\"))}", outputsFile)},
		"resource": map[string]any{"terraform_data": map[string]any{"rehearsal": map[string]any{"input": "${local.outputs}"}}},
	}
	if len(outputs) > 0 {
		main["output"] = outputs
	}
	return job.WriteJSON(filepath.Join(dir, "main.tf.json"), main)
}

// about puts what is rehearsed above the plan of the stand-in, and in the place of
// its objects those of the module's own plan, if there is one.
func (s *standIn) about(summary jobspec.PlanSummary) jobspec.PlanSummary {
	summary.Rehearsed = &s.Rehearsed
	head := "Rehearsed (" + strings.ReplaceAll(string(s.How), "_", " ") + "): " + s.Why + ".\n\n"
	if s.plan != nil {
		shown := *s.plan
		shown.Rehearsed, shown.NoChange, shown.Outputs = &s.Rehearsed, summary.NoChange, summary.Outputs
		shown.Text = head + shown.Text
		return shown
	}
	if s.detail != "" {
		head += strings.TrimSpace(s.detail) + "\n\n"
	}
	summary.Text = head + summary.Text
	return summary
}
