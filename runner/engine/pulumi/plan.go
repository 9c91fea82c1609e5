package pulumi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/stateclient"
)

// What is in pinned/.
const (
	planFile   = "plan.json"
	pinnedFile = "pulumi.json"
)

// pinned is pinned/pulumi.json: with the plan file and the state all that an apply
// needs in addition to the artifact.
type pinned struct {
	Format  int    `json:"format"`
	Version string `json:"pulumi_version"`
	Inputs  inputs `json:"inputs"`
	// Passphrase, Salt and Lineage are those of the state; an apply that is the first
	// of its resource begins one with them.
	Passphrase string `json:"passphrase"`
	Salt       string `json:"salt"`
	Lineage    string `json:"lineage"`
}

const pinnedFormat = 1

// Plan says what an apply would do and pins what it needs. It changes nothing and
// takes no lock.
func Plan(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	w, err := open(j)
	if err == nil {
		err = w.checkVersion(ctx)
	}
	if err != nil {
		return jobspec.Result{}, err
	}
	result := jobspec.Result{Tool: w.tool()}
	in, err := render(j, w.project)
	if err != nil {
		return result, err
	}
	existed, err := w.readState(ctx)
	if err != nil {
		return result, err
	}
	if existed {
		result.Lineage, result.Serial = w.doc.Lineage, w.doc.Serial
	}
	if err := w.load(ctx, in); err != nil {
		return result, err
	}
	if err := os.MkdirAll(j.Out("pinned"), 0o700); err != nil {
		return result, err
	}
	p, err := w.preview(ctx)
	if err != nil {
		return result, err
	}
	changed, err := w.changedOutputs()
	if err != nil {
		return result, err
	}
	if err := w.writePlan(p, changed, in); err != nil {
		return result, err
	}
	summary := summarise(p)
	summary.Outputs = changed
	summary.NoChange = summary.NoChange && len(changed) == 0 && len(w.creating) == 0
	summary.Text = w.notes() + summary.Text
	result.NoChange = summary.NoChange
	if err := job.WriteJSON(j.Out("plan.summary.json"), summary); err != nil {
		return result, err
	}
	if result.NoChange {
		j.Logf("nothing to do for %s", j.Subject())
		result.Outputs = results(w.doc.Outputs)
		return result, job.WriteJSON(j.Out("outputs.json"), result.Outputs)
	}
	j.Logf("%s", strings.TrimSpace(summary.Text))
	return result, nil
}

// readState reads the document of the resource, or begins one.
func (w *workspace) readState(ctx context.Context) (existed bool, err error) {
	body, err := stateclient.Backend(w.job.Env).Read(ctx)
	if err != nil {
		return false, fmt.Errorf("read the state of %s: %w", w.job.Subject(), err)
	}
	if len(body) == 0 {
		w.doc = fresh()
		return false, nil
	}
	w.doc, err = parse(body)
	return true, err
}

// preview runs the preview of the job. Where there is nothing to destroy it says so
// without asking.
func (w *workspace) preview(ctx context.Context) (preview, error) {
	var p preview
	args := []string{"preview", "--stack", w.stack, "--json", "--refresh", "--save-plan", w.job.Out("pinned", planFile)}
	if w.job.Spec.Destroy {
		if len(w.doc.Pulumi.Deployment) == 0 {
			return p, nil
		}
		args = []string{"destroy", "--stack", w.stack, "--json", "--refresh", "--preview-only"}
	}
	raw, err := w.ask(ctx, args...)
	if decodeErr := json.Unmarshal(raw, &p); decodeErr != nil && err == nil {
		return p, job.Failf("", "pulumi %s of %s did not answer JSON", args[0], w.job.Subject())
	}
	for _, d := range p.Diagnostics {
		if text := strings.TrimSpace(d.Message); text != "" {
			w.job.Logf("%s", text)
		}
	}
	if err == nil {
		return p, nil
	}
	if said := p.errors(); len(said) > 0 {
		err = errors.New(strings.TrimPrefix(said[0], "error: "))
	}
	return p, w.failed(args[0], err)
}

// changedOutputs are the outputs of the stack that the plan changes: the preview
// does not list them, the plan file does.
func (w *workspace) changedOutputs() ([]jobspec.FieldChange, error) {
	if w.job.Spec.Destroy {
		return nil, nil
	}
	var plan struct {
		Resources map[string]struct {
			Goal struct {
				Type string `json:"type"`
				Diff struct {
					Adds    map[string]any `json:"adds"`
					Deletes []string       `json:"deletes"`
					Updates map[string]any `json:"updates"`
				} `json:"outputDiff"`
			} `json:"goal"`
		} `json:"resourcePlans"`
	}
	if err := job.ReadJSON(w.job.Out("pinned", planFile), &plan); err != nil {
		return nil, fmt.Errorf("the plan that pulumi saved: %w", err)
	}
	var changes []jobspec.FieldChange
	for _, r := range plan.Resources {
		if r.Goal.Type != stackType {
			continue
		}
		after := maps.Clone(r.Goal.Diff.Adds)
		if after == nil {
			after = map[string]any{}
		}
		maps.Copy(after, r.Goal.Diff.Updates)
		for _, name := range r.Goal.Diff.Deletes {
			after[name] = nil
		}
		for name, value := range after {
			changes = append(changes, jobspec.FieldChange{Path: name, Before: w.shownOutput(name), After: showOutput(value)})
		}
	}
	slices.SortFunc(changes, func(a, b jobspec.FieldChange) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

func (w *workspace) shownOutput(name string) string {
	o, ok := w.doc.Outputs[name]
	switch {
	case !ok:
		return ""
	case o.Sensitive:
		return jobspec.Sensitive
	}
	return string(o.Value)
}

func showOutput(value any) string {
	raw, err := json.Marshal(value)
	switch {
	case value == nil || err != nil:
		return ""
	case strings.Contains(string(raw), secretMark):
		return jobspec.Sensitive
	case strings.Contains(string(raw), unknownValue):
		return "(known after apply)"
	}
	return string(raw)
}

// notes say what the plan cannot know.
func (w *workspace) notes() string {
	if len(w.creating) == 0 {
		return ""
	}
	text := "An apply before this one was ended while it created " + strings.Join(w.creating, ", ") + ": it may exist, unknown to the state, and is then made a second time.\n"
	w.job.Logf("Warning: %s", strings.TrimSpace(text))
	return text
}

// writePlan writes what the agent salts and hashes, and what the apply gets.
func (w *workspace) writePlan(p preview, changed []jobspec.FieldChange, in inputs) error {
	plan, err := canonical(p, w.job.Spec.Destroy)
	if err != nil {
		return err
	}
	whole := map[string]any{"plan": json.RawMessage(plan), "outputs": changed, "creating": w.creating}
	if err := job.WriteJSON(w.job.Out("plan.canonical.json"), whole); err != nil {
		return err
	}
	if err := job.WriteJSON(w.job.Out("inputs.json"), in); err != nil {
		return err
	}
	var body policy.Pulumi // what is approved is what rules see
	if err := json.Unmarshal(plan, &body); err != nil {
		return err
	}
	d, err := documents.With(w.job, policy.FormPulumi, "plan of "+w.job.Subject(), body)
	if err != nil {
		return err
	}
	if err := documents.Leave(w.job, []policy.Document{d}); err != nil {
		return err
	}
	return job.WriteJSON(w.job.Out("pinned", pinnedFile), pinned{
		Format: pinnedFormat, Version: w.version, Inputs: in,
		Passphrase: w.doc.Pulumi.Passphrase, Salt: w.doc.Pulumi.Salt, Lineage: w.doc.Lineage,
	})
}

func readYAML(path string, v any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(raw, v)
}
