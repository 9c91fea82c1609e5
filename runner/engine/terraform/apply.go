package terraform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Apply does what in/pinned holds: the saved plan, with the environment,
// providers and files that it was made with.
func Apply(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	var p pinned
	if err := job.ReadJSON(j.In("pinned", pinnedFile), &p); err != nil {
		return jobspec.Result{}, job.Refusef("plan again", "what the plan pinned cannot be read: %v", err)
	}
	if p.Format != pinnedFormat {
		return jobspec.Result{}, job.Refusef("plan again", "what the plan pinned has format %d, this engine knows %d", p.Format, pinnedFormat)
	}
	w, result, err := ready(ctx, j, p)
	if unbegun := job.Unbegun(ctx, j); unbegun != nil {
		return result, unbegun
	}
	if err == nil {
		err = ctx.Err() // its time is over
	}
	if err != nil {
		return result, err
	}
	applyErr := w.apply(ctx, j, p)
	if failure, ok := errors.AsType[*job.Failure](applyErr); ok && failure.Outcome == jobspec.OutcomeStale {
		return result, applyErr
	}
	// Also a failed or interrupted apply leaves a state behind.
	return w.readState(ctx, j, result, applyErr)
}

// ready makes the workspace of the plan again. It changes nothing.
func ready(ctx context.Context, j *job.Job, p pinned) (*workspace, jobspec.Result, error) {
	s, err := pinnedStandIn(j)
	if err != nil {
		return nil, jobspec.Result{}, job.Refusef("plan again", "what the plan pinned cannot be read: %v", err)
	}
	w, err := open(ctx, j, p.EnvVars, s)
	if err != nil {
		return nil, jobspec.Result{}, err
	}
	result := jobspec.Result{Tool: w.tool()}
	if made := cmp.Or(p.Tool, w.tf.name()) + " " + p.TerraformVersion; made != w.tf.name()+" "+w.version {
		have := w.tf.name() + " " + w.version
		return nil, result, job.Refusef("plan again", "the plan of %s was made with %s, the runner has %s now",
			j.Subject(), made, have).Differing("tool", made, have)
	}
	if err := w.restore(j.In("pinned")); err != nil {
		return nil, result, err
	}
	if err := w.init(ctx, j); err != nil {
		return nil, result, err
	}
	return w, result, w.checkProviders(j)
}

// checkProviders refuses to go on when init had to choose other providers than
// the plan was made with.
func (w *workspace) checkProviders(j *job.Job) error {
	want, err := readOptional(j.In("pinned", lockFile))
	if err != nil {
		return err
	}
	got, err := readOptional(filepath.Join(w.dir, lockFile))
	if err != nil {
		return err
	}
	if string(want) == string(got) {
		return nil
	}
	return job.Refusef("plan again", "the providers of %s are not those of the plan", j.Subject()).
		Differing("providers", digestOf(want), digestOf(got))
}

func (w *workspace) apply(ctx context.Context, j *job.Job, p pinned) error {
	args := []string{"apply", "-no-color", "-auto-approve", "-input=false", "-json"}
	if p.Ephemeral {
		args = append(args, "-var-file="+j.In("pinned", ephemeralFile))
	}
	// No limit: Terraform ends by itself after an interrupt, and killing it
	// loses what it did. The agent knows how long it wants to wait.
	w.tf.grace = 0
	events := newEvents(j.Stdout)
	events.show = j.Show
	applyCtx, cancel := onceStarted(ctx, events.started)
	defer cancel()
	w.tf.stderr = j.Stderr
	err := w.tf.run(applyCtx, events, append(args, j.In("pinned", planFile))...)
	w.tf.stderr = nil
	events.flush()
	if err == nil || events.completed() && ctx.Err() != nil {
		return nil // an interrupt that came after the last effect interrupts nothing
	}
	return w.applyFailure(ctx, j, events, err)
}

// onceStarted is ctx, but it does not end before Terraform has said its first
// word: a process that is interrupted while it starts ends without notice.
func onceStarted(ctx context.Context, started <-chan struct{}) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		for _, wait := range []<-chan struct{}{ctx.Done(), started} {
			select {
			case <-wait:
			case <-done:
				return
			}
		}
		cancel(context.Cause(ctx))
	}()
	return late, func() { close(done); cancel(nil) }
}

// applyFailure explains an apply that did not end well.
func (w *workspace) applyFailure(ctx context.Context, j *job.Job, events *events, err error) error {
	if d, ok := events.find(staleSummaries...); ok {
		return &job.Failure{
			Outcome: jobspec.OutcomeStale, Remedy: "plan again",
			Message: fmt.Sprintf("the state of %s moved since the plan: %s", j.Subject(), d.Summary),
		}
	}
	if _, ok := events.find(lockedSummary); ok {
		return job.Failf("try again when it has ended; a lock that nobody holds any more is freed by the next attempt",
			"the state of %s is locked by %s", j.Subject(), lockHolder(ctx, j.Env))
	}
	failure := job.Failf("", "terraform apply of %s: %s", j.Subject(), events.firstError(err))
	if needsChange(events.diagnosticErrors(), events.wroteAccess) {
		failure.Reason = jobspec.ReasonNeedsChange
	}
	if len(events.diagnosticErrors()) == 0 && ctx.Err() == nil {
		failure.Message += "; it ended without a word, so what it did last may be missing in its state"
		failure.Remedy = "plan again, and look for what the plan would make a second time"
	}
	if kept, keepErr := w.keepState(j); keepErr != nil {
		failure.Message = fmt.Sprintf("%s; its state could not be saved nor kept: %v", failure.Message, keepErr)
	} else if kept {
		failure.Message = "terraform changed " + j.Subject() + " but could not save its state; " + failure.Message
		failure.Remedy = "the runner hands that state (" + erroredState + ") in now that the engine has ended; the log says whether it was taken. Then plan again"
	}
	return failure
}

// erroredState is where Terraform leaves a state that the backend did not take.
const erroredState = "errored.tfstate"

func (w *workspace) keepState(j *job.Job) (bool, error) {
	err := copyFile(filepath.Join(w.dir, erroredState), j.Out(erroredState))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readState completes the result with the state that an apply left, also when
// the job's own time is over.
func (w *workspace) readState(ctx context.Context, j *job.Job, result jobspec.Result, applyErr error) (jobspec.Result, error) {
	state, err := presentState(context.WithoutCancel(ctx), j.Env)
	if applyErr != nil && err != nil {
		return result, applyErr // the first trouble is the one to tell
	}
	if err != nil {
		return result, job.Failf("plan again: it shows that nothing is left to do, and its outputs",
			"%s was applied, but its state could not be read: %v", j.Subject(), err)
	}
	result.Lineage, result.Serial = state.Lineage, state.Serial
	if applyErr != nil {
		return result, applyErr
	}
	result.Outputs = jobspec.Outputs{}
	for name, o := range state.Outputs {
		result.Outputs[name] = jobspec.Output{Value: o.Value, Sensitive: o.Sensitive}
	}
	return result, j.LeaveJSON(ctx, "outputs.json", result.Outputs)
}
