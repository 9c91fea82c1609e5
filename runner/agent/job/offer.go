package job

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// seeRelease refuses a release that the vendor's pinned key does not vouch for.
func (j *job) seeRelease() error {
	if j.deps.Offers == nil || j.spec.Destroy {
		return nil
	}
	refused, err := j.deps.Offers.See(context.Background(), *j.spec.Release)
	if err != nil {
		return fmt.Errorf("signed releases: %w", err)
	}
	return j.notTaken(context.Background(), refused)
}

// takeRelease makes the release one that was accepted, before anything else of it is.
func (j *job) takeRelease(release jobspec.Release) error {
	if j.deps.Offers == nil || j.spec.Destroy {
		return nil
	}
	refused, err := j.deps.Offers.Accept(context.Background(), release, j.spec.JobID)
	if err != nil {
		return fmt.Errorf("signed releases: %w", err)
	}
	return j.notTaken(context.Background(), refused)
}

// admitRelease refuses to work on anything that is part of no release which the vendor
// signed and the customer accepted, no matter who signed the order. A probe and a look for
// drift are code of the runner's own, which only reads; a look at a module runs the vendor's.
func (j *job) admitRelease(ctx context.Context) error {
	info := j.kind()
	looks := (info.Component || info.Resource || j.spec.Kind == jobspec.KindProbes) && (j.spec.Operation == jobspec.OperationRun || j.spec.Operation == jobspec.OperationDrift)
	if j.deps.Offers == nil || looks && !j.looksAtModule() || j.spec.Operation == jobspec.OperationBuild {
		return nil
	}
	o := offers.Order{Mutates: j.mutates() || j.spec.Operation == jobspec.OperationRun, Destroy: j.spec.Destroy}
	adHoc := j.spec.Action != nil && j.spec.Action.AdHoc
	config, about, err := j.spec.Config()
	if err != nil {
		return refuse(jobspec.OutcomeRefused, "sync and deploy again", "what the job is about has no digest: %v", err)
	}
	if j.spec.Artifact != nil && j.spec.Resource != nil {
		o.Needs = append(o.Needs, jobspec.ManifestItem{Kind: jobspec.ManifestArtifact, Name: j.spec.Resource.Name, Digest: j.spec.Artifact.Digest})
	}
	if j.looksAtModule() { // it works with what was planned
		record, _, err := j.planOf(j.spec.Drift.Change)
		if err != nil {
			return err
		}
		config.Digest = record.Config
	}
	if about && !adHoc && !removesCopies(j.spec) {
		o.Needs = append(o.Needs, config)
	}
	if j.tick != nil && j.spec.Action != nil {
		o.Needs = append(o.Needs, jobspec.ManifestItem{Kind: jobspec.ManifestScript, Name: j.spec.Action.Name, Digest: j.tick.Script})
	}
	// What is carried out is what the plan pinned: the plan's word counts too.
	if j.spec.Operation == jobspec.OperationApply && len(o.Needs) > 0 {
		record, found, err := j.planRecord()
		if err != nil {
			return err
		}
		if found && record.Config != config.Digest {
			o.Needs = append(o.Needs, jobspec.ManifestItem{Kind: jobspec.ManifestConfig, Name: config.Name, Digest: record.Config})
		}
	}
	refused, err := j.deps.Offers.Admit(ctx, o, adHoc)
	if err != nil {
		return fmt.Errorf("signed releases: %w", err)
	}
	return j.notTaken(ctx, refused)
}

// removesCopies says whether the job only removes copies of secrets, of which no release
// says anything any more.
func removesCopies(spec jobspec.Spec) bool { return spec.SecretSync != nil && spec.Destroy }

// configDigest is what the plan's record says of the config that was planned.
func (j *job) configDigest() string {
	config, _, _ := j.spec.Config() // without a digest nothing is admitted
	return config.Digest
}

// notTaken is the refusal, which is recorded; nil for none.
func (j *job) notTaken(ctx context.Context, refused *offers.Refusal) error {
	if refused == nil {
		return nil
	}
	j.recordEvent(ctx, string(jobspec.OutcomeRefused), "signed releases: "+refused.Text)
	r := refuse(jobspec.OutcomeRefused, refused.Remedy, "this install takes signed releases only: %s", refused.Text)
	switch {
	case j.looksAtModule():
		r.result.Outcome = jobspec.OutcomeFailed // a look that is not taken is not one that was missed
	case j.attempt.Tick != nil:
		r.result.Outcome = jobspec.OutcomeNotStarted
	}
	r.result.Differs = []jobspec.Difference{refused.Differs}
	return r
}
