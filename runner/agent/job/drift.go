package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/order"
)

// keepWanted keeps what a plan that changes nothing says of its resource: what was
// deployed, once the control plane calls it live. Nobody can apply it.
func (j *job) keepWanted(ctx context.Context, record *order.Record) (err error) {
	if _, record.Wanted, err = j.pin(ctx); err != nil {
		return err
	}
	record.Hidden, err = j.sealHidden()
	return err
}

// bringLive gives a look for drift what the plan of the live change pinned, and registers
// what that plan had opened. noValues: the plan is not here any more, so nobody knows
// which values are secret.
func (j *job) bringLive(ctx context.Context) (noValues bool, err error) {
	if j.spec.Operation != jobspec.OperationDrift {
		return false, nil
	}
	record, err := j.learnLive()
	if err != nil || record == nil {
		return true, err
	}
	kept := *record
	if kept.Blob == "" {
		kept.Blob = kept.Wanted
	}
	sealed := j.pinned(ctx, &kept)
	if sealed == nil {
		return false, nil // the engine says so, where it needs it
	}
	return false, j.unpin(ctx, j.spec.Drift.Change, sealed, j.dir.In("live"))
}

// learnLive registers what the plan of the live change had opened, for a look for drift;
// nil for other jobs, and when the plan is not here any more.
func (j *job) learnLive() (*order.Record, error) {
	if j.spec.Operation != jobspec.OperationDrift || j.spec.Drift == nil {
		return nil, nil
	}
	record, found, err := j.planOf(j.spec.Drift.Change)
	if err != nil {
		return nil, err
	}
	if !found {
		j.remark("what change " + j.spec.Drift.Change + " planned is not here any more: no values are shown")
		return nil, nil
	}
	if j.spec.Resource == nil || record.Effect.ResourceID != j.spec.Resource.ID {
		return nil, errors.New("the change that is called live is another resource's")
	}
	if err := j.learnHidden(j.spec.Drift.Change, record.Hidden); err != nil {
		return nil, fmt.Errorf("what must not be shown: %w", err)
	}
	return &record, nil
}

// looksAtModule says whether the job looks for drift by a plan of the vendor's module.
func (j *job) looksAtModule() bool {
	return j.spec.Operation == jobspec.OperationDrift && j.kind().HasState
}

// admitLive has a look at a module work with the module, the values and the state of the
// live change. All are on this machine and none is fetched, so that a look goes on without
// the control plane; which they are, the runner's own record of the plan says. Where one is
// missing the error says when looks work again: a report has no remedy.
func (j *job) admitLive(ctx context.Context) error {
	if !j.looksAtModule() {
		return nil
	}
	change := j.spec.Drift.Change
	record, found, err := j.planOf(change)
	switch {
	case err != nil:
		return err
	case !found:
		return refuse(jobspec.OutcomeFailed, "", "what change %s planned is not on this machine: it took over from another, or that was long ago; looks work again after the next deploy", change)
	case record.Effect.ResourceID != j.spec.Resource.ID:
		return errors.New("the change that is called live is another resource's")
	}
	live := jobspec.Artifact{Digest: record.Effect.ArtifactDigest}
	if err := j.deps.Trees.Verify(ctx, digest.Digest(live.Digest)); err != nil {
		return refuse(jobspec.OutcomeFailed, "", "the module of change %s is not whole on this machine; looks work again after the next deploy: %s", change, oneLine(err))
	}
	j.spec.Artifact = &live
	mark := *j.spec.Drift.State
	if _, err := j.states().Marked(j.spec.Resource.ID, mark); err != nil {
		return refuse(jobspec.OutcomeFailed, "", "the state that is live, serial %d, is not on this machine: it took over from another, or its disk was full when the state was written; "+
			"looks work again after the next plan, which brings the state", mark.Serial)
	}
	return nil
}
