package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/builderdb"
)

// load locks the app and the build, in this order, and reads what Next needs.
func load(ctx context.Context, tx *database.Tx, buildID string) (State, error) {
	app, err := tx.BuilderLockApp(ctx, buildID)
	if err != nil {
		return State{}, fmt.Errorf("lock app: %w", err)
	}
	row, err := tx.BuilderLockBuild(ctx, buildID)
	if err != nil {
		return State{}, fmt.Errorf("lock build: %w", err)
	}
	s := State{}
	if s.Build, err = buildOf(row, app.Name); err != nil {
		return State{}, err
	}
	if s.Build.Status.Ended() {
		return s, nil
	}
	if s.Build.Before, err = before(ctx, tx, s.Build); err != nil {
		return s, fmt.Errorf("read earlier build: %w", err)
	}
	if s.Build.JobID != "" {
		s.Job, err = loadJob(ctx, tx, s.Build.JobID)
		return s, err
	}
	if s.Build.Resolved == "" {
		return s, nil
	}
	runner, err := tx.BuilderRunnerOfOrg(ctx)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return s, fmt.Errorf("read build runner: %w", err)
	}
	s.MachineKey = runner.PublicKey
	made, err := tx.BuilderReusable(ctx, builderdb.BuilderReusableParams{ResolvedDigest: s.Build.Resolved, ComponentID: s.Build.ComponentID})
	if err != nil {
		return s, fmt.Errorf("find artifacts: %w", err)
	}
	for _, m := range made {
		provenance, err := provenanceFrom(m.ID, m.Provenance)
		if err != nil {
			return s, err
		}
		s.Reusable = append(s.Reusable, Made{
			BuildID:    m.ID,
			Artifact:   jobspec.BuiltArtifact{Repository: optional.Value(m.ArtifactRepository), Digest: optional.Value(m.ArtifactDigest), SizeBytes: optional.Value(m.ArtifactSizeBytes)},
			Provenance: provenance,
		})
	}
	return s, nil
}

// before is the digest that the version of a chart had in an earlier build of the
// component, "" when it is the same or the first.
func before(ctx context.Context, tx *database.Tx, b Build) (string, error) {
	pin, ok := source.ReadPin(b.Commit)
	if b.Source.Kind != source.KindChart || !ok {
		return "", nil
	}
	others, err := tx.BuilderOtherPin(ctx, builderdb.BuilderOtherPinParams{BuildID: b.ID, VersionAt: pin.Version + "@", SourceCommit: b.Commit})
	if err != nil || len(others) == 0 {
		return "", err
	}
	other, _ := source.ReadPin(others[0])
	return other.Digest, nil
}

func buildOf(row builderdb.BuilderLockBuildRow, app string) (Build, error) {
	provenance, err := provenanceFrom(row.Build.ID, row.Build.Provenance)
	if err != nil {
		return Build{}, err
	}
	b := Build{
		ID: row.Build.ID, OrgID: row.Build.OrgID, AppID: row.Build.AppID, App: app,
		ComponentID: row.Build.ComponentID, Component: row.ComponentName,
		Type: row.ComponentType, BuildDigest: row.Build.BuildDigest,
		Commit: optional.Value(row.Build.SourceCommit), Resolved: optional.Value(row.Build.ResolvedDigest),
		Provenance: provenance, Status: row.Build.State, JobID: optional.Value(row.Build.JobID),
		CancelRequested: row.Build.CancelRequestedAt != nil, Timeout: timeoutOf(row.Spec), Trace: row.Build.Trace, Asked: row.Build.CreatedAt,
	}
	b.File, b.Directory = placeOf(row.Spec)
	b.Kustomize, b.Docker, b.Pulumi = kustomizeOf(row.Spec), dockerOf(row.Spec), pulumiOf(row.Spec)
	b.Signer, b.Tool = extensionOf(row.Spec)
	b.ImageKey = imageKeyOf(row.Spec)
	if len(row.Policies) > 0 {
		if err := json.Unmarshal(row.Policies, &b.Policies); err != nil {
			return Build{}, fmt.Errorf("policies of build %s: %w", b.ID, err)
		}
	}
	if b.Source, err = source.Parse(row.Build.Source); err != nil {
		b.SourceFault = err.Error()
	}
	b.Source.Org = b.OrgID
	return b, nil
}

func loadJob(ctx context.Context, tx *database.Tx, jobID string) (*Job, error) {
	row, err := tx.BuilderJob(ctx, jobID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	job := &Job{
		ID: row.ID, State: row.State, Attempt: int(row.Attempt), RunnerID: row.RunnerID,
		CancelRequested: row.CancelRequested, Error: optional.Value(row.Error),
	}
	if len(row.Result) > 0 {
		// The runner wrote it. What is no result leaves a job without an artifact,
		// which Next knows what to do with.
		_ = json.Unmarshal(row.Result, &job.Result)
	}
	return job, nil
}

// provenanceFrom reads what this package wrote; nothing before.
func provenanceFrom(build string, raw json.RawMessage) (Provenance, error) {
	var p Provenance
	if len(raw) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("provenance of build %s: %w", build, err)
	}
	return p, nil
}
