package pulumi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/stateclient"
)

// Apply does what in/pinned holds: what the saved plan allows, with the
// configuration and environment that it was made with. A teardown destroys what is
// in the state, which is the one of the plan.
func Apply(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	w, p, err := ready(ctx, j)
	if unbegun := job.Unbegun(ctx, j); unbegun != nil {
		return jobspec.Result{}, unbegun
	}
	if err != nil {
		return jobspec.Result{}, err
	}
	result := jobspec.Result{Tool: w.tool()}
	lock, err := stateclient.Backend(j.Env).Lock(ctx, random(), j.Spec.JobID)
	if err != nil {
		return result, job.Failf("try again when it has ended; a lock that nobody holds any more is freed by the next attempt", "%s: %v", j.Subject(), err)
	}
	defer func() { _ = lock.Free(context.WithoutCancel(ctx)) }() // the agent frees one that stays
	if err := w.load(ctx, p.Inputs); err != nil {
		return result, err
	}
	keeper, err := keep(w, lock)
	if err != nil {
		return result, err
	}
	applyErr := w.change(ctx)
	// Also a failed or interrupted apply leaves a state behind.
	late := context.WithoutCancel(ctx)
	doc, err := keeper.finish(late)
	if err != nil {
		return result, job.Failf("plan again, and look for what the plan would make a second time", "%s was changed, but its state could not be saved: %v", j.Subject(), errors.Join(applyErr, err))
	}
	result.Lineage, result.Serial = doc.Lineage, doc.Serial
	if applyErr != nil {
		return result, applyErr
	}
	result.Outputs = results(doc.Outputs)
	return result, j.LeaveJSON(ctx, "outputs.json", result.Outputs)
}

// ready makes the workspace of the plan again. It changes nothing.
func ready(ctx context.Context, j *job.Job) (*workspace, pinned, error) {
	var p pinned
	if err := job.ReadJSON(j.In("pinned", pinnedFile), &p); err != nil {
		return nil, p, job.Refusef("plan again", "what the plan pinned cannot be read: %v", err)
	}
	if p.Format != pinnedFormat {
		return nil, p, job.Refusef("plan again", "what the plan pinned has format %d, this engine knows %d", p.Format, pinnedFormat)
	}
	w, err := open(j)
	if err != nil {
		return nil, p, err
	}
	w.version = p.Version
	existed, err := w.readState(ctx)
	if err != nil {
		return nil, p, err
	}
	if !existed {
		w.doc.Lineage, w.doc.Pulumi.Passphrase, w.doc.Pulumi.Salt = p.Lineage, p.Passphrase, p.Salt
	}
	return w, p, nil
}

// change runs the update. An interrupt lets pulumi end what it is doing; it is not
// killed by the engine, which would lose what it did.
func (w *workspace) change(ctx context.Context) error {
	args := []string{"up", "--stack", w.stack, "--yes", "--skip-preview", "--refresh", "--suppress-outputs", "--plan", w.job.In("pinned", planFile)}
	if w.job.Spec.Destroy {
		args = []string{"destroy", "--stack", w.stack, "--yes", "--skip-preview", "--refresh", "--suppress-outputs"}
	}
	cmd := w.command(ctx, args...)
	out, kept := tee(w.job.Stdout)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if err == nil {
		return nil
	}
	text := errorText(kept.String())
	if text == "" {
		text = err.Error()
	}
	if strings.Contains(text, "not allowed by the plan") || strings.Contains(text, "violates plan") {
		return job.Failf("plan again", "%s is not as it was when it was planned: %s", w.job.Subject(), text)
	}
	return w.failed(args[0], fmt.Errorf("%s", text))
}
