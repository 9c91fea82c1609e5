package build

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/order"
	"github.com/berth-dev/berth/services/internal/store/builderdb"
)

// write does a decision that changes rows; others change nothing.
func (w *Worker) write(ctx context.Context, tx *database.Tx, s State, d Decision) error {
	b := s.Build
	if d.Act.moves() {
		tx.NotifyAfterCommit(model.ChannelBuild, b.AppID)
	}
	switch d.Act {
	case RecordSource:
		return tx.BuilderSetSource(ctx, builderdb.BuilderSetSourceParams{ID: b.ID, SourceCommit: optional.Of(d.Commit), ResolvedDigest: d.Resolved})
	case RecordArchive:
		p := b.Provenance
		p.Source.Kind, p.Source.Digest, p.Source.Archive = string(b.Source.Kind), b.Source.Digest, d.Archive
		return tx.BuilderSetProvenance(ctx, builderdb.BuilderSetProvenanceParams{ID: b.ID, Provenance: mustJSON(p)})
	case QueueJob:
		return w.queueJob(ctx, tx, s, d)
	case StopJob:
		if _, err := tx.BuilderStopJob(ctx, b.JobID); err != nil {
			return fmt.Errorf("stop job: %w", err)
		}
		tx.NotifyAfterCommit(model.ChannelJobs, s.Job.RunnerID)
		return nil
	case Again:
		p := b.Provenance
		p.Remade++
		w.Log.InfoContext(ctx, "build begins again: the machine of its job is gone", "org_id", b.OrgID, "build_id", b.ID, "job_id", b.JobID)
		return tx.BuilderForgetJob(ctx, builderdb.BuilderForgetJobParams{ID: b.ID, Provenance: mustJSON(p)})
	case Reuse:
		return w.succeed(ctx, tx, b, d.Made)
	case Succeed:
		p := provenanceOf(b, *s.Job)
		if s.Private {
			p.CopiedBy = copiedByBuilder
		}
		return w.succeed(ctx, tx, b, Made{Artifact: d.Artifact, Provenance: p})
	case RecordCopy:
		return w.succeed(ctx, tx, b, Made{Artifact: d.Copied.Artifact, Provenance: provenanceOfCopy(b, d.Copied)})
	case Fail:
		b.Status = model.BuildFailed
		w.ended(ctx, tx, b, d.Error)
		if d.Judgement != nil {
			p := b.Provenance
			p.Judgement = d.Judgement
			if err := tx.BuilderSetProvenance(ctx, builderdb.BuilderSetProvenanceParams{ID: b.ID, Provenance: mustJSON(p)}); err != nil {
				return fmt.Errorf("keep what policies say: %w", err)
			}
		}
		return tx.BuilderEnd(ctx, builderdb.BuilderEndParams{ID: b.ID, State: model.BuildFailed, Error: &d.Error})
	case Cancel:
		b.Status = model.BuildCancelled
		w.ended(ctx, tx, b, d.Error)
		return tx.BuilderEnd(ctx, builderdb.BuilderEndParams{ID: b.ID, State: model.BuildCancelled, Error: optional.Of(d.Error)})
	case Note:
		return tx.BuilderSetTrouble(ctx, builderdb.BuilderSetTroubleParams{ID: b.ID, Error: d.Error})
	}
	return nil
}

// queueJob gives the build to the Build Runner, with an order.
func (w *Worker) queueJob(ctx context.Context, tx *database.Tx, s State, d Decision) error {
	b, spec := s.Build, *d.Spec
	spec.JobID = id.New(id.Job)
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("job of build: %w", err)
	}
	trace := b.Trace // a builder that came back works outside of any trace
	if carried := telemetry.Inject(ctx); len(carried) > 0 {
		trace = mustJSON(carried)
	}
	key, err := w.Keys.Private(b.OrgID)
	if err != nil {
		return err
	}
	signed, err := order.Sign(key, spec, order.Draft{RunnerID: d.RunnerID, MachineKey: s.MachineKey, Actor: "builder"}, time.Now())
	if err != nil {
		return fmt.Errorf("order for build: %w", err)
	}
	err = tx.BuilderAddJob(ctx, builderdb.BuilderAddJobParams{
		ID: spec.JobID, RunnerID: d.RunnerID, BuildID: b.ID, Kind: string(spec.Kind), Operation: string(spec.Operation),
		Spec: signed.Spec, SignedOrder: signed.Envelope, TimeoutSeconds: int32(spec.TimeoutSeconds), Trace: trace,
	})
	if err != nil {
		return fmt.Errorf("queue job: %w", err)
	}
	tx.NotifyAfterCommit(model.ChannelJobs, d.RunnerID)
	return tx.BuilderSetJob(ctx, builderdb.BuilderSetJobParams{ID: b.ID, JobID: spec.JobID})
}

// succeed ends the build well, with what it made or what an earlier build had,
// and makes the releases that this completes.
func (w *Worker) succeed(ctx context.Context, tx *database.Tx, b Build, made Made) error {
	err := tx.BuilderSucceed(ctx, builderdb.BuilderSucceedParams{
		ID: b.ID, ReusedFrom: optional.Of(made.BuildID), Provenance: mustJSON(made.Provenance),
		ArtifactRepository: made.Artifact.Repository, ArtifactDigest: made.Artifact.Digest, ArtifactSizeBytes: made.Artifact.SizeBytes,
	})
	if err != nil {
		return fmt.Errorf("succeed: %w", err)
	}
	b.Status = model.BuildSucceeded
	w.ended(ctx, tx, b, "")
	return w.releaseWhatIsDone(ctx, tx, b)
}

// ended logs and counts that the build ended as its status says, once that is so.
func (w *Worker) ended(ctx context.Context, tx *database.Tx, b Build, text string) {
	tx.AfterCommit(func() {
		log := w.Log.With("org_id", b.OrgID, "build_id", b.ID, "component", b.Component, "state", b.Status)
		if text != "" {
			log = log.With("err", text)
		}
		log.InfoContext(ctx, "build ended")
		countEnded(ctx, b)
	})
}

// mustJSON encodes our own plain structs, which always can be.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
