package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Plan says what an apply would do and pins what it needs. It changes nothing
// and takes no lock.
func Plan(ctx context.Context, j *job.Job) (jobspec.Result, error) { return planAs(ctx, j, nil) }

// PlanRendered plans the stand-in of a rehearsal for what needs a cluster and was
// rendered without one. People are shown the rendered plan.
func PlanRendered(ctx context.Context, j *job.Job, rendered jobspec.PlanSummary) (jobspec.Result, error) {
	said := jobspec.Rehearsed{How: jobspec.RehearsedMocked, Why: whyRendered, MadeUp: j.Spec.Rehearsal.MadeUp}
	return planAs(ctx, j, &standIn{Rehearsed: said, plan: &rendered})
}

func planAs(ctx context.Context, j *job.Job, s *standIn) (jobspec.Result, error) {
	env, err := renderEnv(j, j.Spec.TerraformModule)
	if err != nil {
		return jobspec.Result{}, err
	}
	if s == nil {
		if s, err = rehearse(ctx, j, env); err != nil {
			return jobspec.Result{}, err
		}
	}
	if s != nil {
		env = nil // it is for the module's own providers
	}
	var in inputs
	in.EnvVars = withoutVars(env)
	w, err := open(ctx, j, in.EnvVars, s)
	if err != nil {
		return jobspec.Result{}, err
	}
	result := jobspec.Result{Tool: w.tool()}
	if s == nil {
		in, err = renderInputs(j, w.module, env)
	} else {
		in = inputs{Vars: map[string]any{}, VarFiles: []string{}, EnvVars: map[string]string{}}
	}
	if err != nil {
		return result, err
	}
	varFiles, err := in.write(j.Work("vars"))
	if err != nil {
		return result, err
	}
	before, err := listFiles(w.dir)
	if err != nil {
		return result, err
	}
	if err := w.init(ctx, j); err != nil {
		return result, err
	}
	shown, err := w.plan(ctx, j, varFiles)
	if err != nil {
		return result, err
	}
	plan, raw, err := w.show(ctx, j)
	if err != nil {
		return result, err
	}
	if result.Lineage, result.Serial, err = priorState(planPath(j)); err != nil {
		return result, err
	}
	if err := w.pin(j, in, before); err != nil {
		return result, err
	}
	if err := w.writeSummary(ctx, j, plan, shown); err != nil {
		return result, err
	}
	if err := w.writePlan(j, raw, in); err != nil {
		return result, err
	}
	result.NoChange = !changes(plan)
	if result.NoChange {
		j.Logf("nothing to do for %s", j.Subject())
		if result.Outputs, err = plannedOutputs(plan); err != nil {
			return result, err
		}
		return result, job.WriteJSON(j.Out("outputs.json"), result.Outputs)
	}
	return result, nil
}

func planPath(j *job.Job) string { return j.Out("pinned", planFile) }

// plan saves a plan and returns what Terraform wrote meanwhile. Where an earlier init was
// taken and will not do, it runs one.
func (w *workspace) plan(ctx context.Context, j *job.Job, varFiles []string) (shown string, err error) {
	shown, err = w.planOnce(ctx, j, varFiles)
	if err != nil && w.spared && lacksInit(err) && ctx.Err() == nil {
		j.Logf("terraform wants its own init")
		if err := w.reallyInit(ctx, j); err != nil {
			return "", err
		}
		shown, err = w.planOnce(ctx, j, varFiles)
	}
	if err == nil {
		return shown, nil
	}
	f := job.Failf("", "terraform plan of %s: %s", j.Subject(), firstError(err))
	if w.wrong(ctx, err, true) {
		f.Reason = jobspec.ReasonNeedsChange
	}
	return "", f
}

func (w *workspace) planOnce(ctx context.Context, j *job.Job, varFiles []string) (shown string, err error) {
	if err := os.MkdirAll(j.Out("pinned"), 0o700); err != nil {
		return "", err
	}
	args := []string{"plan", "-no-color", "-input=false", "-lock=false", "-out=" + planPath(j)}
	if j.Spec.Destroy {
		args = append(args, "-destroy")
	}
	for _, path := range varFiles {
		args = append(args, "-var-file="+path)
	}
	var stdout strings.Builder
	if err := w.loudly(j, func() error { return w.tf.run(ctx, &stdout, args...) }); err != nil {
		return "", err
	}
	return stdout.String(), os.Chmod(planPath(j), 0o600)
}

// show returns the plan, also in the bytes that Terraform gave.
func (w *workspace) show(ctx context.Context, j *job.Job) (*tfjson.Plan, []byte, error) {
	var raw bytes.Buffer
	if err := w.tf.run(ctx, &raw, "show", "-json", "-no-color", planPath(j)); err != nil {
		return nil, nil, job.Failf("", "terraform show of %s: %s", j.Subject(), firstError(err))
	}
	var plan tfjson.Plan
	plan.UseJSONNumber(true)
	shown := jsonIn(raw.Bytes())
	if err := json.Unmarshal(shown, &plan); err != nil { // it also looks at the version of the format
		return nil, nil, job.Failf("", "terraform show of %s: %v", j.Subject(), err)
	}
	return &plan, shown, nil
}

// writeSummary writes what people are shown.
func (w *workspace) writeSummary(ctx context.Context, j *job.Job, plan *tfjson.Plan, shown string) error {
	summary := summarise(plan, j.Spec.DigestKey)
	text, ok := planText(shown)
	if !ok {
		var raw strings.Builder
		if err := w.tf.run(ctx, &raw, "show", "-no-color", planPath(j)); err != nil {
			return job.Failf("", "terraform show of %s: %s", j.Subject(), firstError(err))
		}
		text = raw.String()
	}
	summary.Text = text
	switch want := j.Spec.TerraformModule.TerraformVersion; {
	case w.standIn != nil:
		summary = w.standIn.about(summary)
	case j.Spec.Rehearsal != nil && checkVersion(want, w.version, "") != nil:
		summary.Text = jobspec.PlannedWith + tfprogram.Of(w.tf.path).Title + " " + w.version + " instead of " + want + ".\n\n" + summary.Text
	case w.setAside != "":
		summary.Text = jobspec.PlannedWith + tfprogram.Of(w.tf.path).Title + " " + w.version + " instead of " + w.setAside + ".\n\n" + summary.Text
	}
	return job.WriteJSON(j.Out("plan.summary.json"), summary)
}

// writePlan writes what the agent salts and hashes, and what rules are held against.
func (w *workspace) writePlan(j *job.Job, plan []byte, in inputs) error {
	lock, err := readOptional(filepath.Join(w.dir, lockFile))
	if err != nil {
		return err
	}
	canonical, err := canonicalPlan(plan, lock)
	if err != nil {
		return err
	}
	if err := job.WriteFile(j.Out("plan.canonical.json"), canonical); err != nil {
		return err
	}
	document := documents.Of(j, policy.FormPlan, "plan of "+j.Subject())
	document.Body = plan
	return errors.Join(job.WriteJSON(j.Out("inputs.json"), in), documents.Leave(j, []policy.Document{document}))
}

// plannedOutputs are the outputs as they are after a plan that changes nothing.
func plannedOutputs(plan *tfjson.Plan) (jobspec.Outputs, error) {
	outputs := jobspec.Outputs{}
	if plan.PlannedValues == nil {
		return outputs, nil
	}
	for name, o := range plan.PlannedValues.Outputs {
		value, err := job.Marshal(o.Value)
		if err != nil {
			return nil, err
		}
		outputs[name] = jobspec.Output{Value: value, Sensitive: o.Sensitive}
	}
	return outputs, nil
}
