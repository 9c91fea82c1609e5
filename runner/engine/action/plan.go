package action

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/stepimage"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
)

const (
	pinnedFile   = jobspec.PinnedAction
	pinnedFormat = 1
)

// script is a rendered step. It may hold secrets.
type script struct {
	Name string `json:"name"`
	// Text is what is run; a command line is a script of one line.
	Text    string            `json:"text"`
	EnvVars map[string]string `json:"env_vars"`
	// NoKubeConfig keeps the way to the cluster from it.
	NoKubeConfig bool `json:"no_kube_config,omitempty"`
	// Artifact is the digest of the directory that it runs in, "" for the job's own.
	Artifact string `json:"artifact,omitempty"`
}

// pinned is pinned/action.json.
type pinned struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// Image is the one that the scripts run in, "" for the engine's own place. The
	// agent reads it: it starts the engine of the apply there.
	Image string `json:"image,omitempty"`
	// Tools are the programs that the scripts need.
	Tools   []string          `json:"tools,omitempty"`
	Inputs  map[string]string `json:"inputs"`
	Scripts []script          `json:"scripts"`
	// Terms are those of a script that is part of no release; nil for an action, whose
	// terms its release has.
	Terms *terms `json:"terms,omitempty"`
}

// terms are what else people see of a script before they decide on it.
type terms struct {
	TimeoutSeconds int `json:"timeout_seconds"`
	// Cluster is the context of the cluster that it reaches, "sandbox" for the
	// install's own, "" for none.
	Cluster string `json:"cluster,omitempty"`
	// Holds is what nobody else changes while it runs: a component or the sandbox, ""
	// for nothing.
	Holds string `json:"holds,omitempty"`
}

// termsOf are the terms of an order; nil for an action.
func termsOf(s jobspec.Spec) *terms {
	if !s.Action.AdHoc {
		return nil
	}
	t := &terms{TimeoutSeconds: s.TimeoutSeconds}
	for _, step := range s.Action.Steps {
		switch {
		case step.NoKubeConfig:
		case s.Action.Cluster != nil:
			t.Cluster = s.Action.Cluster.Context
		default:
			t.Cluster = "sandbox"
		}
	}
	if s.Resource != nil {
		t.Holds = s.Resource.Name
	}
	return t
}

// Plan renders the scripts and pins them. It runs none of them.
func Plan(_ context.Context, j *job.Job) (jobspec.Result, error) {
	p, err := render(j)
	if err != nil {
		return jobspec.Result{}, err
	}
	if p.Image == "" { // those of an image are only where the scripts will run
		if _, err := findTools(j, p); err != nil {
			return jobspec.Result{}, err
		}
	}
	for path, v := range map[string]any{
		j.Out("pinned", pinnedFile):  p,
		j.Out("plan.canonical.json"): p,
		j.Out("inputs.json"):         inputsOf(p),
		j.Out("plan.summary.json"):   summarise(p),
	} {
		if err := job.WriteJSON(path, v); err != nil {
			return jobspec.Result{}, err
		}
	}
	// The agent makes the documents of scripts itself, of the very bytes that are pinned.
	if err := documents.Leave(j, nil); err != nil {
		return jobspec.Result{}, err
	}
	j.Logf("%s: %d scripts rendered", j.Subject(), len(p.Scripts))
	return jobspec.Result{}, nil
}

func render(j *job.Job) (pinned, error) {
	a := j.Spec.Action
	p := pinned{Format: pinnedFormat, Name: a.Name, Tools: a.Tools, Inputs: a.Inputs, Terms: termsOf(j.Spec)}
	if p.Inputs == nil {
		p.Inputs = map[string]string{}
	}
	var err error
	if p.Image, err = renderImage(j); err != nil {
		return p, err
	}
	for i, step := range a.Steps {
		name := step.Name
		if name == "" {
			name = fmt.Sprintf("step %d", i+1)
		}
		src := step.InlineContents
		if src == "" {
			src = step.Command
		}
		if strings.TrimSpace(src) == "" {
			return p, job.Refusef("give it inline_contents or a command", "%s: step %q has nothing to run", j.Subject(), name)
		}
		if step.InlineContents == "" && step.Artifact == nil && ofRepository(step.Command) {
			return p, job.Refusef("name the repository of the script, or put it into inline_contents; then sync and deploy again",
				"%s: step %q runs a file, and its release has no repository for it", j.Subject(), name)
		}
		text, err := j.RenderFile(fmt.Sprintf("step %q", name), step.ScriptName, src)
		if err != nil {
			return p, err
		}
		env, err := j.RenderEnv(fmt.Sprintf("step %q: env_vars", name), step.EnvVars)
		if err != nil {
			return p, err
		}
		sc := script{Name: name, Text: text, EnvVars: env, NoKubeConfig: step.NoKubeConfig}
		if step.Artifact != nil {
			sc.Artifact = step.Artifact.Digest
			if err := checkFolder(j, sc); err != nil {
				return p, err
			}
		}
		p.Scripts = append(p.Scripts, sc)
	}
	return p, nil
}

// renderImage is the image that the scripts run in, "" for none.
func renderImage(j *job.Job) (string, error) {
	if j.Spec.Action.Image == "" {
		return "", nil
	}
	image, err := j.Render("image", j.Spec.Action.Image)
	if err != nil {
		return "", err
	}
	if err := stepimage.Check(image); err != nil {
		return "", job.Refusef(stepimage.Remedy, "%s: %v", j.Subject(), err)
	}
	return image, nil
}

// ofRepository tells whether a command is a file next to the action.
func ofRepository(command string) bool {
	c := strings.TrimSpace(command)
	return strings.HasPrefix(c, "./") || strings.HasPrefix(c, "../")
}

// inputsOf are the values that went in together with the scripts.
func inputsOf(p pinned) map[string]any {
	steps := map[string]any{}
	for i, s := range p.Scripts {
		steps[fmt.Sprintf("%d %s", i+1, s.Name)] = s.EnvVars
	}
	return map[string]any{"inputs": p.Inputs, "env_vars": steps}
}

// summarise shows the scripts as they will run, and of the environment and the
// inputs the names only.
func summarise(p pinned) jobspec.PlanSummary {
	var s jobspec.PlanSummary
	var text strings.Builder
	if p.Image != "" {
		fmt.Fprintf(&text, "# runs in image %s\n", p.Image)
	}
	for _, sc := range p.Scripts {
		fields := []jobspec.FieldChange{{Path: jobspec.ScriptField, After: sc.Text}}
		if p.Image != "" {
			fields = append(fields, jobspec.FieldChange{Path: "image", After: p.Image})
		}
		if sc.Artifact != "" {
			fields = append(fields, jobspec.FieldChange{Path: "directory", After: sc.Artifact})
		}
		if len(p.Tools) > 0 {
			fields = append(fields, jobspec.FieldChange{Path: "tools", After: strings.Join(p.Tools, ", ")})
		}
		names := slices.Sorted(maps.Keys(sc.EnvVars))
		if len(names) > 0 {
			fields = append(fields, jobspec.FieldChange{Path: "env_vars", After: strings.Join(names, ", ")})
		}
		if len(p.Inputs) > 0 {
			fields = append(fields, jobspec.FieldChange{Path: "inputs", After: strings.Join(slices.Sorted(maps.Keys(p.Inputs)), ", ")})
		}
		fields = append(fields, p.Terms.fields()...)
		s.Objects = append(s.Objects, jobspec.ObjectChange{Address: p.Name + "/" + sc.Name, Action: "run", Fields: fields})
		fmt.Fprintf(&text, "# %s\n%s\n", sc.Name, strings.TrimRight(sc.Text, "\n"))
	}
	s.Text = text.String()
	return s
}

// fields shows the terms to people.
func (t *terms) fields() []jobspec.FieldChange {
	if t == nil {
		return nil
	}
	fields := []jobspec.FieldChange{{Path: "timeout", After: (time.Duration(t.TimeoutSeconds) * time.Second).String()}}
	if t.Cluster != "" {
		fields = append(fields, jobspec.FieldChange{Path: "kubernetes_context", After: t.Cluster})
	}
	if t.Holds != "" {
		fields = append(fields, jobspec.FieldChange{Path: "holds", After: t.Holds})
	}
	return fields
}
