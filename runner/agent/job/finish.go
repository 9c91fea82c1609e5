package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// Limits of what an engine may hand over.
const (
	maxResult  = 16 << 20
	maxPlan    = 128 << 20
	maxError   = 4000 // bytes; what the API takes of an error
	maxOutputs = 16 << 20
	maxErrored = 256 << 20 // a state
)

// finishEngine finishes an attempt whose engine is over.
func (j *job) finishEngine(life context.Context, exitCode int) error {
	end := ending.Facts{Mutates: j.mutates(), ExitCode: exitCode, Stop: j.why(), Inherited: j.inherited, Timeout: j.spec.Timeout()}
	var result jobspec.Result
	switch found, err := j.dir.ReadOutJSON("out/result.json", maxResult, &result); {
	case err != nil:
		end.BadResult = err.Error()
	case found:
		end.Result = &result
	}
	j.keepInit(life)
	if err := j.takePluginState(life, &end); err != nil {
		return err
	}
	j.deps.Engine.Providers.TakeJob(life, j.dir.Engine(), j.log)
	if j.proxy != nil && j.why() != ending.Lost { // nobody would take its state: it stays as evidence
		if err := j.proxy.Finish(life); err != nil {
			if life.Err() != nil {
				return errDetached
			}
			j.remark("the last state of this job was not taken: " + err.Error())
			j.log.WarnContext(life, "state is kept as evidence", "err", err)
		}
		if err := j.pushErrored(life); err != nil {
			return err
		}
	}
	return j.finish(life, ending.Conclude(end), end.Result)
}

// pushErrored hands in a state that Terraform could not save and wrote to a file. The
// engine may have been killed before it put that file where it belongs.
func (j *job) pushErrored(life context.Context) error {
	for _, name := range []string{"out/errored.tfstate", "work/module/errored.tfstate"} {
		body, found, err := j.dir.ReadOut(name, maxErrored)
		if err == nil && !found {
			continue
		}
		var serial int64
		if err == nil {
			serial, err = j.proxy.Push(life, body)
		}
		switch {
		case err != nil && life.Err() != nil:
			return errDetached
		case err != nil:
			j.remark("the state that terraform could not save was not taken: " + err.Error())
		default:
			j.remark(fmt.Sprintf("the state that terraform could not save was handed in, serial %d", serial))
		}
		return nil
	}
	return nil
}

// finish completes the result, puts it on disk, and answers the intent.
func (j *job) finish(life context.Context, result jobspec.Result, engine *jobspec.Result) error {
	if engine != nil && result.Outcome == jobspec.OutcomeSucceeded {
		if err := j.complete(life, &result); err != nil {
			if life.Err() != nil {
				return errDetached
			}
			result = jobspec.Result{Outcome: jobspec.OutcomeFailed, ExitCode: result.ExitCode, Error: err.Error(), StartedAt: result.StartedAt}
			if r, refused := errors.AsType[*refusal](err); refused {
				result = r.result
			}
			if j.mutates() {
				result.Outcome = jobspec.OutcomeUncertain // done, but its outcome is unknown
			}
		}
	}
	result.JobID, result.Attempt = j.attempt.Assignment.JobID, j.attempt.Assignment.Attempt
	if result.StartedAt.IsZero() {
		result.StartedAt = j.attempt.StartedAt
	}
	if result.StartedAt.IsZero() {
		result.StartedAt = j.deps.Now().UTC()
	}
	if result.FinishedAt.IsZero() {
		result.FinishedAt = j.deps.Now().UTC()
	}
	result = j.withFullDisk(result)
	logged := engine != nil && engine.Error == result.Error // by the engine, as its last words
	result, err := j.presentable(result)
	if err != nil {
		return err
	}
	j.log.InfoContext(life, "attempt ended", "operation", string(j.spec.Operation), "outcome", string(result.Outcome),
		"error", result.Error, "took", result.FinishedAt.Sub(result.StartedAt))
	j.observe(life, result)
	text := string(result.Outcome)
	if result.Error != "" && !logged {
		text += ": " + result.Error
	}
	j.remark(text)
	if err := j.stored(life, "report", func() error { return datadir.WriteJSON(j.dir.Report(), result) }); err != nil {
		return err
	}
	if err := j.stored(life, "attempt", func() error { return j.advance(recovery.Ended) }); err != nil {
		return err
	}
	return j.finishAgain(life, result)
}

// settle writes down, once each, that the job has ended and what came of its
// intent.
func (j *job) settle(life context.Context, result jobspec.Result) error {
	// A job that did not start may be given out again, and so may one whose lease
	// somebody else has: nothing is reported of it.
	if j.attempt.Tick == nil && result.Outcome != jobspec.OutcomeNotStarted && j.why() != ending.Lost {
		if err := j.deps.Orders.End(j.spec.JobID, j.mutates() && result.Outcome == jobspec.OutcomeSucceeded); err != nil {
			return err
		}
	}
	if err := j.recordOutcome(life, result); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	if j.tick != nil && j.deps.TickEnded != nil {
		for _, r := range j.tick.Ticks(j.spec.JobID, result) {
			if err := j.deps.TickEnded(r.Tick, r.RunID, r.Result); err != nil {
				return err
			}
		}
	}
	return j.countRun(life, result)
}

// finishAgain does what is left once the report is on disk. It may be repeated.
func (j *job) finishAgain(life context.Context, result jobspec.Result) error {
	// Kept before it is sent: sent again, a report must be the same.
	if result.NotAhead(j.deps.Now().UTC()) {
		j.log.WarnContext(life, "report was dated in the future; its times are set to now")
		if err := j.stored(life, "report", func() error { return datadir.WriteJSON(j.dir.Report(), result) }); err != nil {
			return err
		}
	}
	if err := j.stored(life, "outcome in the chain", func() error { return j.settle(life, result) }); err != nil {
		return err
	}
	_ = j.finishLogs() // a log that cannot be ended yet keeps no report back: see endLogs
	return nil
}

// loadReport reads the report that finish wrote.
func (j *job) loadReport() (result jobspec.Result, err error) {
	found, err := datadir.ReadJSON(j.dir.Report(), &result)
	if err == nil && !found {
		err = fmt.Errorf("%s is missing", j.dir.Report())
	}
	return result, err
}

// reportLost sets a damaged report aside. What the engine left says how it ended
// once more.
func (j *job) reportLost(ctx context.Context, why error) {
	to, err := j.deps.Dir.SetAside(j.dir.Report(), j.attempt.Name(), why)
	j.log.ErrorContext(ctx, "report of the attempt is damaged, it is made again from what the engine left", "err", why, "set_aside", to, "problem", err)
	j.storedEvent(ctx, "damaged report was set aside", why.Error())
}

// complete adds what the agent makes of the engine's files.
func (j *job) complete(ctx context.Context, result *jobspec.Result) error {
	if _, err := j.dir.ReadOutJSON("out/outputs.json", maxOutputs, &result.Outputs); err != nil {
		return err
	}
	switch j.spec.Operation {
	case jobspec.OperationPlan:
		return j.keepPlan(ctx, result)
	case jobspec.OperationBuild:
		return j.pushBuild(ctx, result)
	}
	return nil
}

// presentable seals the sensitive outputs of a result and takes every known
// secret out of the rest: it may leave the machine.
func (j *job) presentable(r jobspec.Result) (jobspec.Result, error) {
	for name, out := range r.Outputs {
		if out.Sensitive {
			j.learnOutput(name, out.Value, func(value any) { j.learn(value, true) })
		}
	}
	for name, out := range r.Outputs {
		if !out.Sensitive && !j.secrets.shows(out.Value) {
			continue
		}
		// One that shows a secret is sensitive, whatever its author says.
		sealed, err := seal.SealLeaves(j.deps.Keys.Recipients(), out.Value, func([]string) (seal.Purpose, bool) {
			return outputPurpose(j.spec, name), true
		})
		if err != nil {
			return r, fmt.Errorf("seal output %q: %w", name, err)
		}
		raw, err := json.Marshal(sealed)
		if err != nil {
			return r, fmt.Errorf("seal output %q: %w", name, err)
		}
		r.Outputs[name] = jobspec.Output{Value: raw, Sensitive: true}
	}
	outputs := r.Outputs
	metrics, metricsError := j.metricsWithoutSecrets(r)
	r.Outputs, r.Metrics, r.MetricsError = nil, nil, ""
	raw, err := json.Marshal(j.secrets.set.Field(r))
	if err != nil {
		return r, err
	}
	var clean jobspec.Result
	if err := json.Unmarshal(raw, &clean); err != nil {
		// A secret that is also a number or a time of the result: say only how
		// it ended.
		clean = jobspec.Result{JobID: r.JobID, Attempt: r.Attempt, Outcome: r.Outcome, ExitCode: r.ExitCode, NoChange: r.NoChange,
			Reason: jobspec.Reason(j.secrets.set.String(string(r.Reason))), Lineage: r.Lineage, Serial: r.Serial, Tool: r.Tool, Artifact: r.Artifact, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt}
	}
	clean.Outputs, clean.Modules = outputs, j.withoutSecrets(r.Modules)
	clean.Metrics, clean.MetricsError = metrics, metricsError
	for i := range clean.Looks {
		clean.Looks[i].Error = jobspec.CutText(clean.Looks[i].Error, maxError)
	}
	clean.Error, clean.Remedy = jobspec.CutText(clean.Error, maxError), jobspec.CutText(clean.Remedy, maxError)
	return clean, nil
}

// withoutSecrets redacts the texts of modules and keeps the rest, whatever is a secret:
// without Moves, a build would be reused although its modules may have moved.
func (j *job) withoutSecrets(modules []jobspec.Module) []jobspec.Module {
	modules = slices.Clone(modules)
	for i := range modules {
		m := &modules[i]
		for _, text := range []*string{&m.Source, &m.Wanted, &m.Version, &m.From, &m.Commit, &m.Digest, &m.Before} {
			*text = j.secrets.set.String(*text)
		}
	}
	return modules
}

// outputPurpose is what a sealed output of the job is for: its place in the
// install's tree.
func outputPurpose(spec jobspec.Spec, name string) seal.Purpose {
	switch {
	case spec.Action != nil:
		return interpolate.ActionOutput(spec.OrgID, spec.InstallID, spec.Action.Name, name)
	case spec.Resource != nil && spec.Resource.Kind == "component":
		return interpolate.ComponentOutput(spec.OrgID, spec.InstallID, spec.Resource.ID, spec.Resource.Name, name)
	}
	return interpolate.SandboxOutput(spec.OrgID, spec.InstallID, name)
}

// deliver hands in what is on disk.
func (j *job) deliver(life context.Context) error {
	if j.attempt.Phase == recovery.Delivered {
		return nil
	}
	if j.why() == ending.Lost {
		j.log.WarnContext(life, "lease was lost, nothing is reported")
		return j.stored(life, "attempt", func() error { return j.advance(recovery.Delivered) })
	}
	result, err := j.loadReport()
	if err != nil {
		return err
	}
	if err := j.hand(life, result); err != nil {
		if life.Err() != nil || control.Away(err) {
			return err
		}
		j.log.WarnContext(life, "report was refused and is kept as evidence", "err", err)
		if err := j.stored(life, "evidence", func() error { return j.keepEvidence("report.json") }); err != nil {
			return err
		}
	}
	return j.stored(life, "attempt", func() error { return j.advance(recovery.Delivered) })
}

func (j *job) hand(life context.Context, result jobspec.Result) error {
	if j.attempt.Tick != nil {
		return j.handRun(life, result)
	}
	return j.handResult(life, result)
}

// keepEvidence moves files of the attempt to where nobody cleans up.
func (j *job) keepEvidence(patterns ...string) error {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(j.dir.Path, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			to := j.deps.Dir.Evidence(j.attempt.Name())
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			if err := os.Rename(path, filepath.Join(to, filepath.Base(path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// remove deletes the directory of an attempt of which all was said, but for
// states that nobody took.
func (j *job) remove(ctx context.Context) {
	if err := j.keepEvidence("refused-state-*.json", "pending-state.json"); err != nil {
		j.log.ErrorContext(ctx, "evidence cannot be kept, the job directory stays", "err", err)
		return
	}
	if err := j.dir.Remove(); err != nil {
		j.log.WarnContext(ctx, "job directory cannot be removed", "err", err)
	}
}

var (
	instruments = telemetry.InstrumentsOf("runner/agent")
	jobDuration = instruments.Duration("runner.job.duration", "how long attempts took, from the engine's start to its end", telemetry.Work)
	engineStart = instruments.Duration("runner.engine.start", "how long engines took to come to life", telemetry.Requests)
	checkTime   = instruments.Duration("runner.check.duration", "how long checks and probes of the schedule took", telemetry.Work)
)

// observe counts how long attempts take.
func (j *job) observe(ctx context.Context, r jobspec.Result) {
	attrs := metric.WithAttributes(attribute.String("operation", string(j.spec.Operation)), attribute.String("outcome", string(r.Outcome)))
	j.deps.Times.Job(r.FinishedAt.Sub(r.StartedAt))
	jobDuration.Record(ctx, r.FinishedAt.Sub(r.StartedAt).Seconds(), attrs)
	if tick := j.attempt.Tick; tick != nil && tick.HealthCheck {
		for _, of := range tick.Ticks(j.spec.JobID, r) {
			j.deps.Times.Check(of.Result.FinishedAt.Sub(of.Result.StartedAt))
			checkTime.Record(ctx, of.Result.FinishedAt.Sub(of.Result.StartedAt).Seconds(),
				metric.WithAttributes(attribute.String("check", of.Tick.Action), attribute.String("outcome", string(of.Result.Outcome))))
		}
	}
	if !r.FirstInstructionAt.IsZero() {
		engineStart.Record(ctx, r.FirstInstructionAt.Sub(r.StartedAt).Seconds(), attrs)
	}
}
