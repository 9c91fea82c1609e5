package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Apply runs the scripts that the plan pinned.
func Apply(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	var p pinned
	if err := job.ReadJSON(j.In("pinned", pinnedFile), &p); err != nil {
		return jobspec.Result{}, job.Refusef("plan again", "what the plan pinned cannot be read: %v", err)
	}
	if p.Format != pinnedFormat {
		return jobspec.Result{}, job.Refusef("plan again", "what the plan pinned has format %d, this engine knows %d", p.Format, pinnedFormat)
	}
	if !reflect.DeepEqual(p.Terms, termsOf(j.Spec)) {
		return jobspec.Result{}, job.Refusef("plan again", "%s: its timeout, its cluster or what it holds is not what was approved", j.Subject())
	}
	if err := job.Unbegun(ctx, j); err != nil {
		return jobspec.Result{}, err
	}
	return run(ctx, j, p)
}

// Run renders and runs an action that is not planned: a read-only one, or one at a
// tick of its schedule.
func Run(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	p, err := render(j)
	if err != nil {
		return jobspec.Result{}, err
	}
	return run(ctx, j, p)
}

// run runs the scripts until one fails. The outputs of all that ran are kept:
// together in Result.Outputs, where a later step wins, and by step. So are the numbers
// of all.
func run(ctx context.Context, j *job.Job, p pinned) (jobspec.Result, error) {
	result := jobspec.Result{Outputs: jobspec.Outputs{}}
	sh, err := newShell(j, p.Image)
	if err != nil {
		return result, err
	}
	if err := checkTools(ctx, j, p); err != nil {
		return result, err
	}
	wrote := numbers{job: j}
	for i, sc := range p.Scripts {
		if ctx.Err() != nil {
			return result, &job.Failure{Message: fmt.Sprintf("%s: step %q was not started", j.Subject(), sc.Name)}
		}
		step, err := sh.step(ctx, i, sc, p.Inputs)
		wrote.take(sc.Name, sh.metricsPath(i))
		result.Metrics, result.MetricsError = wrote.kept()
		var untold *untoldError
		if errors.As(err, &untold) {
			step.ExitCode, err = 0, nil
			result.Findings = []jobspec.Finding{{Object: j.Subject(), Condition: jobspec.CutText(untold.says, jobspec.MaxFindingText), Unknown: true}}
		}
		result.Steps = append(result.Steps, step)
		if addErr := addOutputs(result.Outputs, step.Outputs); err == nil {
			err = addErr
		}
		result.ExitCode = step.ExitCode
		if err != nil {
			return result, errors.Join(err, j.LeaveJSON(ctx, "outputs.json", result.Outputs))
		}
	}
	return result, j.LeaveJSON(ctx, "outputs.json", result.Outputs)
}

// untoldError is of a probe that could not look: the run succeeds, with a finding that says so.
type untoldError struct{ says string }

func (e *untoldError) Error() string { return "nobody can tell: " + e.says }

func addOutputs(all jobspec.Outputs, step map[string]any) error {
	for name, v := range step {
		value, err := job.Marshal(v)
		if err != nil {
			return err
		}
		all[name] = jobspec.Output{Value: value}
	}
	return nil
}

// step runs the script with number i, from 0.
func (s shell) step(ctx context.Context, i int, sc script, inputs map[string]string) (jobspec.StepResult, error) {
	j := s.job
	step := jobspec.StepResult{Name: sc.Name, ExitCode: -1}
	base := fmt.Sprintf("%02d", i+1)
	scriptPath := j.Work("scripts", base)
	outputPath := j.Work("outputs", base)
	text, err := s.enter(sc)
	if err != nil {
		return step, err
	}
	if err := errors.Join(job.WriteFile(scriptPath, []byte(text)), job.WriteFile(outputPath, nil)); err != nil {
		return step, err
	}
	env, err := j.BaseEnv()
	if err != nil {
		return step, err
	}
	if path := j.Env["KUBECONFIG"]; path != "" && !sc.NoKubeConfig {
		env["KUBECONFIG"] = path
	}
	maps.Copy(env, inputs)
	job.Named(env, map[string]string{"STEP_NAME": sc.Name, "ACTIONS_OUTPUT_FILEPATH": outputPath, "METRICS": s.metricsPath(i)})
	if program, err := os.Executable(); err == nil {
		env["BERTH_PROBE"] = program // for the probes of components
	}
	maps.Copy(env, sc.EnvVars)
	env["PATH"] = s.bin + string(filepath.ListSeparator) + env["PATH"]

	j.Logf("step %q", sc.Name)
	before := said(j)
	began := time.Now()
	code, runErr := s.run(ctx, scriptPath, env)
	took := time.Since(began)
	step.ExitCode = code
	step.Took, _ = json.Marshal(took.Round(time.Millisecond).String())

	outputs, outErr := readOutputs(outputPath)
	step.Outputs = outputs
	switch {
	case runErr != nil:
		return step, &job.Failure{ExitCode: code, Message: fmt.Sprintf("%s: step %q: %v", j.Subject(), sc.Name, runErr)}
	case code == jobspec.ExitProbeUnknown && j.Spec.Action.IsProbe():
		return step, &untoldError{strings.TrimPrefix(before.lastWords(j), ": ")}
	case code != 0:
		return step, &job.Failure{ExitCode: code, Message: fmt.Sprintf("%s: step %q ended with exit code %d%s", j.Subject(), sc.Name, code, before.lastWords(j))}
	case outErr != nil:
		return step, job.Failf("write a JSON object, or lines of name=value",
			"%s: the outputs of step %q: %v", j.Subject(), sc.Name, outErr)
	}
	j.Logf("step %q done in %s", sc.Name, took.Round(time.Millisecond))
	return step, nil
}
