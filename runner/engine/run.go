package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/reversal"
	"github.com/berth-dev/berth/runner/engine/action"
	"github.com/berth-dev/berth/runner/engine/build"
	"github.com/berth-dev/berth/runner/engine/build/bom"
	"github.com/berth-dev/berth/runner/engine/helm"
	"github.com/berth-dev/berth/runner/engine/image"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/manifest"
	"github.com/berth-dev/berth/runner/engine/plugin"
	"github.com/berth-dev/berth/runner/engine/pulumi"
	"github.com/berth-dev/berth/runner/engine/rehearse"
	"github.com/berth-dev/berth/runner/engine/secretsync"
	"github.com/berth-dev/berth/runner/engine/survey"
	"github.com/berth-dev/berth/runner/engine/terraform"
)

// Config is what Run needs in addition to the directory.
type Config struct {
	Dir string
	// Env is the environment of the process, as os.Environ gives it.
	Env []string
	// Stdout and Stderr are the log; tools write to them directly.
	Stdout, Stderr *os.File
	// StartedAt is when the process ran its first instruction.
	StartedAt time.Time
}

// An operation does the work of one kind and operation. The result it returns
// holds what it found out, even together with an error; Run adds how it ended.
type operation func(context.Context, *job.Job) (jobspec.Result, error)

var operations = map[jobspec.Kind]map[jobspec.Operation]operation{
	jobspec.KindTerraformModule: {
		jobspec.OperationBuild: terraform.Build,
		jobspec.OperationPlan:  terraform.Plan,
		jobspec.OperationApply: terraform.Apply,
		jobspec.OperationDrift: terraform.Drift,
	},
	jobspec.KindRehearsal: {
		jobspec.OperationPlan:  rehearse.Plan,
		jobspec.OperationApply: terraform.Apply,
	},
	jobspec.KindContainerImage: {
		jobspec.OperationBuild: build.ContainerImage,
		jobspec.OperationPlan:  image.Plan,
	},
	jobspec.KindPulumi: {
		jobspec.OperationBuild: pulumi.Build,
		jobspec.OperationPlan:  pulumi.Plan,
		jobspec.OperationApply: pulumi.Apply,
	},
	jobspec.KindDockerBuild: {
		jobspec.OperationBuild: build.DockerBuild,
		jobspec.OperationPlan:  image.Plan,
	},
	jobspec.KindKubernetesManifest: {
		jobspec.OperationBuild: build.KubernetesManifest,
		jobspec.OperationPlan:  manifest.Plan,
		jobspec.OperationApply: manifest.Apply,
		jobspec.OperationRun:   manifest.Health,
		jobspec.OperationDrift: survey.Operation(manifest.Objects),
	},
	jobspec.KindHelmChart: {
		jobspec.OperationBuild: build.HelmChart,
		jobspec.OperationPlan:  helm.Plan,
		jobspec.OperationApply: helm.Apply,
		jobspec.OperationRun:   helm.Health,
		jobspec.OperationDrift: survey.Operation(helm.Objects),
	},
	jobspec.KindPlugin: {
		jobspec.OperationBuild: plugin.Build,
		jobspec.OperationPlan:  plugin.Plan,
		jobspec.OperationApply: plugin.Apply,
	},
	jobspec.KindSecretSync: {
		jobspec.OperationPlan:  secretsync.Plan,
		jobspec.OperationApply: secretsync.Apply,
	},
	jobspec.KindScripts: {jobspec.OperationBuild: build.Scripts},
	jobspec.KindProbes:  {jobspec.OperationRun: probes},
	jobspec.KindAction: {
		jobspec.OperationPlan:  action.Plan,
		jobspec.OperationApply: action.Apply,
		jobspec.OperationRun:   action.Run,
		jobspec.OperationTick:  action.Run,
	},
}

// Run works on the job in a directory, writes out/result.json and returns the
// exit code for the process. Ending ctx with job.ErrStopped means: stop at
// the next safe point.
func Run(ctx context.Context, cfg Config) int {
	j, err := job.Open(cfg.Dir)
	j.Env, j.Stdout, j.Stderr, j.StartedAt = environment(cfg.Env), cfg.Stdout, cfg.Stderr, cfg.StartedAt

	var result jobspec.Result
	if err != nil {
		err = job.Refusef("", "%v", err)
	} else {
		result, err = work(ctx, j)
	}
	finish(&result, j, err)

	if result.Outcome != jobspec.OutcomeSucceeded {
		fmt.Fprintf(j.Stderr, "%s: %s\n", result.Outcome, result.Error)
		if result.Remedy != "" {
			fmt.Fprintf(j.Stderr, "what to do: %s\n", result.Remedy)
		}
	}
	if err := j.Leave(ctx, func() error { return writeResult(j, result) }); err != nil {
		fmt.Fprintf(j.Stderr, "write the result: %v\n", err)
		return jobspec.ExitFailed
	}
	return exitCode(result.Outcome)
}

func work(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	do := operations[j.Spec.Kind][j.Spec.Operation]
	if do == nil {
		return jobspec.Result{}, job.Refusef("run a newer runner", "this engine cannot %s a %s", j.Spec.Operation, j.Spec.Kind)
	}
	for _, dir := range []string{j.Work(), j.Out()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return jobspec.Result{}, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.Spec.Timeout(), job.ErrTimeout)
	defer cancel()
	result, err := do(ctx, j)
	if err == nil && j.Spec.Operation == jobspec.OperationPlan {
		err = errors.Join(j.PinNames(), classify(j))
	}
	if err == nil && j.Spec.Operation == jobspec.OperationBuild {
		err = bom.Leave(j, result.Modules)
	}
	if err != nil {
		err = explain(ctx, j, err)
	}
	return result, err
}

// classify writes into the plan's summary what going back from it costs. It reads the
// whole plan, also what is not going to be shown of it.
func classify(j *job.Job) error {
	if j.Spec.Resource == nil {
		return nil
	}
	raw, err := os.ReadFile(j.Out("plan.summary.json"))
	if err != nil {
		return err
	}
	var s jobspec.PlanSummary
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read the summary of the plan: %w", err)
	}
	said := j.Spec.Resource.Reversal
	if s.Reversal != nil { // a plugin's own word
		said = reversal.Worse(said, s.Reversal.Class)
	}
	found := reversal.Of(j.Spec.Kind, s, said)
	s.Reversal = &found
	return job.WriteJSON(j.Out("plan.summary.json"), s)
}

// explain turns the error of an operation that was cut short into one that says
// so. What an operation says about its outcome itself stays.
func explain(ctx context.Context, j *job.Job, err error) error {
	said, ok := errors.AsType[*job.Failure](err)
	if !ok {
		said = &job.Failure{Message: err.Error()}
	}
	if said.Outcome != "" && said.Outcome != jobspec.OutcomeFailed {
		return said
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case errors.Is(cause, job.ErrTimeout):
		return &job.Failure{
			Outcome: jobspec.OutcomeFailed, ExitCode: said.ExitCode, Differs: said.Differs,
			Message: fmt.Sprintf("%s took longer than the %s that it may: %s", j.Subject(), j.Spec.Timeout(), said.Message),
			Remedy:  firstOf(said.Remedy, "raise its timeout, or find out in the log what it waited for"),
		}
	default:
		return &job.Failure{
			Outcome: jobspec.OutcomeCancelled, ExitCode: said.ExitCode, Differs: said.Differs,
			Message: jobspec.StoppedOnRequest + said.Message,
			Remedy:  said.Remedy,
		}
	}
	return said
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// finish completes a result with what is the same for all operations.
func finish(r *jobspec.Result, j *job.Job, err error) {
	r.JobID = j.Spec.JobID
	r.Outcome = jobspec.OutcomeSucceeded
	if err != nil {
		r.Outcome, r.Error = jobspec.OutcomeFailed, oneLine(err.Error())
		if f, ok := errors.AsType[*job.Failure](err); ok {
			r.Remedy, r.Differs = f.Remedy, f.Differs
			if f.Outcome != "" {
				r.Outcome = f.Outcome
			}
			if r.Outcome == jobspec.OutcomeFailed {
				r.Reason = f.Reason
			}
			r.ExitCode = f.ExitCode
		}
		if r.ExitCode == 0 {
			r.ExitCode = exitCode(r.Outcome)
		}
	}
	r.StartedAt, r.FirstInstructionAt = j.StartedAt.UTC(), j.StartedAt.UTC()
	r.FinishedAt = time.Now().UTC()
}

// maxError bounds Result.Error, in bytes; the whole story is in the log.
const maxError = 2000

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxError {
		s = strings.ToValidUTF8(s[:maxError], "") + "…"
	}
	return s
}

// exitCode is what the process says: refused, stale and not started all mean that
// nothing was done.
func exitCode(o jobspec.Outcome) int {
	switch o {
	case jobspec.OutcomeSucceeded:
		return jobspec.ExitFinished
	case jobspec.OutcomeRefused, jobspec.OutcomeStale, jobspec.OutcomeNotStarted:
		return jobspec.ExitRefused
	default:
		return jobspec.ExitFailed
	}
}

// writeResult writes result.json last and durably: what comes of an effect hangs
// on it.
func writeResult(j *job.Job, r jobspec.Result) error {
	data, err := job.Marshal(r)
	if err != nil {
		return err
	}
	path := j.Out("result.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(path, data, 0o600)
}

func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, kv := range list {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	return env
}
