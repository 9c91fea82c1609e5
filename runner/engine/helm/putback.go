package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/action"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// maxPutBack bounds how long it may take to put back what a failed upgrade
// changed. At most a third of the job's time is kept for it.
const maxPutBack = 5 * time.Minute

// putBackTime is what of the time that is left is kept for putting back.
func putBackTime(left time.Duration) time.Duration { return min(maxPutBack, left/3) }

// putsBack tells whether the apply takes back what it did when it fails. An
// install has nothing to go back to: what it made stays, so that it can be
// looked at.
func (p pinned) putsBack() bool { return p.Atomic && p.Mode == modeUpgrade }

// putBackNote says in the plan what happens when the upgrade fails.
func putBackNote(live int) string {
	return fmt.Sprintf("if the upgrade fails, what it changed is put back to revision %d, without its hooks; CRDs stay as they are then", live)
}

// afterFailure is what the apply does about an upgrade that failed: with atomic
// it puts back what was changed. The failure stays one, and says how that went.
// An apply that was asked to stop puts nothing back: the next plan goes on from
// what is there.
func (a *applying) afterFailure(ctx context.Context, failed error) error {
	if !a.putsBack() || !a.writer.wrote || ctx.Err() != nil {
		return failed
	}
	f, ok := errors.AsType[*job.Failure](failed)
	if !ok {
		return failed
	}
	out := *f
	a.job.Logf("%s", f.Message)
	a.job.Logf("putting back what was changed, to revision %d", a.Live)
	if err := a.putBack(ctx); err != nil {
		out.Message = fmt.Sprintf("%s; and what it changed could not be put back to revision %d: %v", f.Message, a.Live, err)
		return &out
	}
	a.job.Logf("release %s is as it was in revision %d", a.ReleaseName, a.Live)
	out.Message = fmt.Sprintf("%s; what it changed was put back to revision %d", f.Message, a.Live)
	return &out
}

// putBack makes the objects that this apply was to change what the revision that
// was deployed before says of them, and records that as a revision of its own.
// Objects that the plan left alone are not touched.
func (a *applying) putBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, putBackTime(a.job.Spec.Timeout()), job.ErrTimeout)
	defer cancel()
	at, err := a.keeping.find(ctx)
	if err != nil {
		return err
	}
	s := stand(at.history)
	if s.live() != a.Live {
		return fmt.Errorf("the deployed revision is %d", s.live())
	}
	d, scope, order, err := newDiffer(a.cluster, a.inputs, s, nil)
	if err != nil {
		return err
	}
	targets, err := scope.objects(s.Base.Manifest, a.Namespace)
	if err != nil {
		return err
	}
	for _, obj := range targets {
		d.owner.mark(obj)
	}
	steps, err := d.wanted(ctx, targets)
	if err != nil {
		return err
	}
	gone, err := d.unwanted(ctx, order, targets)
	if err != nil {
		return err
	}
	steps, gone = onlyPlanned(a.planned, steps), onlyPlanned(a.planned, gone)
	refs := make([]kube.Ref, 0, len(targets))
	for _, s := range steps {
		refs = append(refs, s.Object)
	}
	if err := a.prepare(ctx, d, steps, gone); err != nil {
		return err
	}
	a.writer.plan(changesOf(append(steps, gone...)))
	back := action.NewRollback(a.config)
	back.Version, back.Wait, back.WaitForJobs, back.DisableHooks = a.Live, true, true, true
	back.Timeout, back.MaxHistory = a.timeout(ctx), cmp.Or(a.MaxHistory, maxHistory)
	if err := back.Run(a.ReleaseName); err != nil {
		return cmp.Or(a.writer.failure, err)
	}
	return a.inventory.Save(ctx, refs)
}

// onlyPlanned leaves as they are all objects that the plan did not change.
func onlyPlanned(planned []kube.Change, steps []step) []step {
	changed := map[kube.Ref]bool{}
	for _, c := range planned {
		changed[keyOf(c.Object)] = c.Action != kube.ActionNone && c.Action != kube.ActionKeep
	}
	out := make([]step, len(steps))
	for i, s := range steps {
		if out[i] = s; !changed[keyOf(s.Object)] {
			out[i].Action = kube.ActionNone
		}
	}
	return out
}
