package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/egress"
	"github.com/berth-dev/berth/runner/agent/jobdir"
)

// pushTries is how often a push is tried before the build has failed.
const pushTries = 8

// handResult reports an attempt to the control plane, a plan before its result.
func (j *job) handResult(life context.Context, result jobspec.Result) error {
	if j.spec.Operation == jobspec.OperationPlan && result.Outcome == jobspec.OutcomeSucceeded {
		var err error
		if result, err = j.handPlan(life, result); err != nil {
			return err
		}
	}
	if err := j.handDenied(life, result); err != nil {
		return err
	}
	report := runnerapi.ResultReport{Attempt: j.attempt.Assignment.Attempt, Fence: j.attempt.Assignment.Fence, Result: result}
	return control.Retry(life, j.log, "report result", func(ctx context.Context) error {
		if (len(result.Metrics) > 0 || result.MetricsError != "") && j.off(egress.Metrics) { // asked at each try
			report.Result.Metrics, report.Result.MetricsError = nil, noMetrics
		}
		return j.deps.API.Result(ctx, j.spec.JobID, report)
	})
}

// handPlan hands in the plan. When it is not taken, the attempt has failed.
func (j *job) handPlan(life context.Context, result jobspec.Result) (jobspec.Result, error) {
	var plan runnerapi.Plan
	if found, err := datadir.ReadJSON(j.dir.Plan(), &plan); err != nil || !found {
		j.log.ErrorContext(life, "plan on disk is damaged", "found", found, "err", err)
		result.Outcome, result.Error, result.Remedy = jobspec.OutcomeFailed, "the plan was damaged on the runner's disk before it was handed in", "plan again"
		return result, nil
	}
	err := control.Retry(life, j.log, "hand in plan", func(ctx context.Context) error {
		told, err := j.withoutDetails(plan)
		if err != nil {
			return err
		}
		return j.deps.API.Plan(ctx, j.spec.JobID, told)
	})
	if err == nil || life.Err() != nil || control.Away(err) || control.Status(err) == 404 {
		return result, err
	}
	j.log.ErrorContext(life, "plan was not taken", "err", err)
	result.Outcome, result.Error = jobspec.OutcomeFailed, "the plan was not taken: "+err.Error()
	return result, j.stored(life, "report", func() error { return datadir.WriteJSON(j.dir.Report(), result) })
}

// announce says that a scheduled run waits or has begun, which opens its log. After
// an outage the report of its end does the same.
func (j *job) announce(life context.Context, run jobspec.Run) {
	if len(j.tick.Looks) > 0 {
		return // each look is over in a moment
	}
	run.Action, run.ScheduledAt, run.Remedy = j.tick.Action, j.tick.At, j.tick.Remedy
	if run.State == "running" {
		run.StartedAt = j.deps.Now().UTC()
	}
	err := control.Retry(life, j.log, "announce run", func(ctx context.Context) error {
		select {
		case <-j.over: // the report of the end follows
			return nil
		default:
		}
		recorded, err := j.deps.API.ReportRun(ctx, j.spec.JobID, run)
		if err == nil {
			j.openStream(recorded)
		}
		return err
	})
	if err != nil && life.Err() == nil {
		j.log.WarnContext(life, "run was not announced", "err", err)
	}
}

// handRun reports a scheduled run; of several looks each is one. Reported again, they are the
// same.
func (j *job) handRun(life context.Context, result jobspec.Result) error {
	var refused []error
	for _, r := range j.tick.Ticks(j.spec.JobID, result) {
		run := runOf(r.Tick, r.Result)
		err := control.Retry(life, j.log, "report run", func(ctx context.Context) error {
			recorded, err := j.deps.API.ReportRun(ctx, r.RunID, j.allowed(run))
			if err == nil {
				if recorded.Drift != nil && *recorded.Drift == runnerapi.RunRecordedDriftStale {
					j.log.InfoContext(ctx, "what was found of drift is stale: another change is live, or goes on")
				}
				j.openStream(recorded)
			}
			if err != nil && !control.Away(err) && control.Status(err) != 401 {
				j.openStream(runnerapi.RunRecorded{}) // nobody will ask for its log
			}
			return err
		})
		if life.Err() != nil {
			return err
		}
		if err != nil { // the others have to be told all the same
			refused = append(refused, err)
		}
	}
	return errors.Join(refused...)
}

// openStream lets the log go where the control plane wants it; when it wants
// none, the lines are dropped.
func (j *job) openStream(r runnerapi.RunRecorded) {
	stream := ""
	if r.StreamID != nil && r.LogToken != nil {
		stream = *r.StreamID
		j.secrets.add(*r.LogToken, "log token")
		j.logs.setToken(*r.LogToken)
	}
	select {
	case j.stream <- stream:
	default: // known already
	}
}

// runOf is a result as the report of a scheduled run.
func runOf(tick jobdir.Tick, r jobspec.Result) jobspec.Run {
	run := jobspec.Run{
		Action: tick.Action, ScheduledAt: tick.At, Remedy: tick.Remedy, State: "failed", ExitCode: r.ExitCode, Error: jobspec.CutText(r.Error, maxError),
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, Outputs: map[string]any{}, Metrics: r.Metrics, MetricsError: r.MetricsError, Drift: r.Drift,
	}
	switch r.Outcome {
	case jobspec.OutcomeSucceeded:
		run.State = "succeeded"
	case jobspec.OutcomeNotStarted, jobspec.OutcomeStale: // nothing was done
		run.State, run.StartedAt = "missed", r.FinishedAt
	}
	for name, out := range r.Outputs {
		var value any
		if json.Unmarshal(out.Value, &value) == nil {
			run.Outputs[name] = value
		}
	}
	if len(r.Findings) > 0 {
		run.Outputs[jobspec.FindingsOutput] = r.Findings
	}
	if r.Certificates != nil {
		run.Outputs[jobspec.CertificatesOutput] = r.Certificates
	}
	for _, step := range r.Steps {
		if len(step.Outputs) > 0 {
			run.Outputs[step.Name] = step.Outputs
		}
		if step.ExitCode != 0 && run.ExitCode == 0 {
			run.ExitCode = step.ExitCode
		}
	}
	return run
}

func (j *job) push(ctx context.Context, ref string, to oci.Remote) error {
	err := j.insist(ctx, "the artifact", func() error {
		_, err := to.Push(ctx, j.deps.Layout, ref, oci.TransferOptions{})
		return err
	})
	if err == nil {
		j.remark("pushed " + to.Repository + "@" + ref)
	}
	return err
}

// insist repeats a push; what is the word for people. Each goes on where the one
// before broke off.
func (j *job) insist(ctx context.Context, what string, push func() error) error {
	for try := 0; ; try++ {
		err := push()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if try == pushTries || errors.Is(err, oci.ErrNotFound) {
			return fmt.Errorf("push %s: %w", what, err)
		}
		j.remark("the registry does not take " + what + ", trying again: " + err.Error())
		if err := pause.For(ctx, control.Backoff(try)); err != nil {
			return err
		}
	}
}
