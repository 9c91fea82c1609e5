package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/egress"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/shown"
)

// keepPlan makes of a finished plan what people approve (the effect) and what
// an apply needs again (the pinned bytes), and writes both down in the runner's
// own words.
func (j *job) keepPlan(ctx context.Context, result *jobspec.Result) error {
	plan, found, err := j.dir.ReadOut("out/plan.canonical.json", maxPlan)
	if err != nil {
		return err
	}
	if !found {
		return errors.New("the engine left no canonical plan")
	}
	inputs, _, err := j.dir.ReadOut("out/inputs.json", maxPlan)
	if err != nil {
		return err
	}
	whole, err := j.summary(result)
	if err != nil {
		return err
	}
	effect, err := j.effect(ctx, *result, plan, inputs)
	if err != nil {
		return err
	}
	judged, doubts, err := j.planCase(ctx, plan)
	if err != nil {
		return err
	}
	if !result.NoChange {
		if whole.Footprint, err = j.footprint(judged.Documents, effect); err != nil {
			return err
		}
	}
	summary := shown.Of(whole, shown.Limit)
	if j.off(egress.PlanDetails) {
		summary = shown.Counts(whole)
		j.remark("the customer has switched off plan details: counts and the effect digest are shown, the rest stays with the customer")
	}
	if summary.NotShownBytes > 0 {
		if err := datadir.WriteJSON(j.deps.Dir.PlanSummary(j.spec.ChangeID), whole); err != nil {
			return err
		}
		j.remark(fmt.Sprintf("%d bytes of this plan are not shown: all of it is in plans/%s on the runner", summary.NotShownBytes,
			filepath.Base(j.deps.Dir.PlanSummary(j.spec.ChangeID))))
	}
	if whole.Footprint != nil {
		judged.Documents = append(judged.Documents, guardrail.FootprintDocument(j.spec, *whole.Footprint))
		if effect.FootprintDigest, err = whole.Footprint.Digest(); err != nil {
			return err
		}
	}
	held := j.hold(ctx, *result, guards.Plan{Case: judged, Doubts: doubts})
	held.bind(&effect)
	image, err := j.imageOfPlan(plan)
	if err != nil {
		return err
	}
	record := order.Record{
		Image:    image,
		ChangeID: j.spec.ChangeID, JobID: j.spec.JobID, OriginID: j.originID(),
		Effect: effect, EffectDigest: effect.Digest(), PlannedAt: j.deps.Now().UTC(),
		Config: j.configDigest(), Footprint: whole.Footprint,
		Judgement: held.judgement(), Timed: held.timed, Kinds: held.Kinds,
	}
	if !result.NoChange && !held.denied() {
		if record.Pinned, record.Blob, err = j.pin(ctx); err != nil {
			return err
		}
		if record.Hidden, err = j.sealHidden(); err != nil {
			return err
		}
		if record.Kubeconfig, err = j.sealMade(); err != nil {
			return err
		}
	}
	if result.NoChange && j.kind().Drifts() && !j.spec.Destroy {
		if err := j.keepWanted(ctx, &record); err != nil {
			return err
		}
	}
	if err := datadir.WriteJSON(j.deps.Dir.Plan(j.spec.ChangeID), record); err != nil {
		return err
	}
	var asked *runnerapi.Consent
	if !held.denied() {
		if asked, err = j.consentFor(record, whole); err != nil {
			return err
		}
	}
	result.Lineage, result.Serial = effect.Lineage, effect.Serial
	told := runnerapi.Plan{
		Attempt: j.attempt.Assignment.Attempt, Effect: effect, EffectDigest: record.EffectDigest,
		Pinned: record.Pinned, PlanBytesDigest: record.Pinned, Summary: summary,
		Consent: asked,
	}
	return j.tellJudgement(told, record)
}

func (j *job) effect(ctx context.Context, result jobspec.Result, plan, inputs []byte) (capsule.Effect, error) {
	place, err := j.measure()
	if err != nil {
		return capsule.Effect{}, err
	}
	known := false
	if j.proxy != nil { // what Terraform was given, not what it says
		place.Lineage, place.Serial, known = j.proxy.Present()
	}
	if !known {
		if place.Lineage, place.Serial, err = j.presentState(ctx); err != nil {
			return capsule.Effect{}, err
		}
	}
	tool := capsule.Tool{}
	if result.Tool != nil {
		tool = capsule.Tool(*result.Tool)
	}
	return order.Planned(order.Base(j.spec, place, tool), j.deps.Keys.Salt, plan, inputs)
}

// summary reads what people are shown, and takes secrets out of it.
func (j *job) summary(result *jobspec.Result) (jobspec.PlanSummary, error) {
	var s jobspec.PlanSummary
	found, err := j.dir.ReadOutJSON("out/plan.summary.json", maxPlan, &s)
	if err != nil {
		return s, err
	}
	if !found {
		return s, errors.New("the engine left no summary of the plan")
	}
	raw, err := json.Marshal(j.secrets.set.Field(s))
	if err != nil {
		return s, err
	}
	var clean jobspec.PlanSummary
	if err := json.Unmarshal(raw, &clean); err != nil {
		return s, errors.New("summary of the plan cannot be shown without a secret")
	}
	result.NoChange = result.NoChange || clean.NoChange
	clean.NoChange = result.NoChange
	j.toldTool(result, &clean)
	return clean, nil
}

// pin seals what the engine pinned and keeps it in the own registry. It returns
// the digest of the sealed bytes and the name of the artifact that holds them.
func (j *job) pin(ctx context.Context) (pinned, blob string, err error) {
	dir, err := j.dir.OpenOut("out/pinned")
	if err != nil {
		return "", "", fmt.Errorf("the engine pinned nothing for the apply: %w", err)
	}
	defer func() { _ = dir.Close() }()
	var packed bytes.Buffer
	if err := oci.PackRoot(ctx, &packed, dir, nil); err != nil {
		return "", "", fmt.Errorf("pin plan: %w", err)
	}
	sealed, err := seal.Seal(j.deps.Keys.Recipients(), j.pinnedPurpose(j.spec.ChangeID), packed.Bytes())
	if err != nil {
		return "", "", fmt.Errorf("pin plan: %w", err)
	}
	name, err := j.deps.Layout.PutBlob(ctx, oci.KindPlan.ArtifactType(), j.spec.ChangeID, sealed)
	if err != nil {
		return "", "", fmt.Errorf("pin plan: %w", err)
	}
	return capsule.DigestBytes(sealed), name.String(), nil
}

// pinnedPurpose is what the pinned bytes of a change are sealed for.
func (j *job) pinnedPurpose(change string) seal.Purpose {
	return datadir.PlanPurpose(j.deps.Runner, change)
}

// pushBuild pushes what a build made to the org's registry.
func (j *job) pushBuild(ctx context.Context, result *jobspec.Result) error {
	var err error
	switch j.kind().Artifact {
	case jobspec.ArtifactImage:
		if j.spec.JudgesOnly() {
			return j.judgeCopied(ctx, result)
		}
		err = j.pushImage(ctx, result)
	case jobspec.ArtifactFolder:
		err = j.pushFolder(ctx, result)
	default:
		err = fmt.Errorf("a build of kind %s makes no artifact", j.spec.Kind)
	}
	if err != nil {
		return err
	}
	return j.attest(ctx, result)
}

// pushFolder packs a folder as an artifact, which is of the component's kind, and
// pushes it.
func (j *job) pushFolder(ctx context.Context, result *jobspec.Result) error {
	dir, err := j.dir.OpenOut("out/artifact")
	if err != nil {
		return fmt.Errorf("the engine built no artifact: %w", err)
	}
	defer func() { _ = dir.Close() }()
	annotations := map[string]string{}
	if j.spec.Source.Commit != "" {
		annotations[oci.AnnotationRevision] = j.spec.Source.Commit
	}
	packed, err := oci.Pack(ctx, j.deps.Layout, oci.PackInput{Kind: oci.Kind(j.spec.Kind), Root: dir, Annotations: annotations, TempDir: j.dir.Path})
	if err != nil {
		return fmt.Errorf("pack artifact: %w", err)
	}
	to, err := j.deps.Registry.Remote(ctx, j.spec.Source.Push, runnerapi.RegistryActionPush)
	if err != nil {
		return fmt.Errorf("push artifact: %w", err)
	}
	if err := j.push(ctx, packed.Digest.String(), to); err != nil {
		return err
	}
	artifact, err := oci.Inspect(ctx, j.deps.Layout, packed.Digest)
	if err != nil {
		return err
	}
	result.Artifact = &jobspec.BuiltArtifact{Repository: j.spec.Source.Push, Digest: packed.Digest.String(), SizeBytes: artifact.Size}
	return nil
}
