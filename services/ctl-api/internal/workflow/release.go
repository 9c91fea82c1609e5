package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// reviewTime bounds the runner's look at a release, and its acceptance.
const reviewTime = 5 * time.Minute

// Scripts lists the scripts that an app brings: every action, once for each of
// its schedules, or once when it has none. The same app gives the same scripts.
func Scripts(app *appconfig.App) ([]jobspec.Script, error) {
	list := []jobspec.Script{}
	for i := range app.Actions {
		a := &app.Actions[i]
		action, timeout, err := ActionSpec(app, a.Name, nil)
		if err != nil {
			return nil, err
		}
		_, check := a.HealthCheck()
		script := jobspec.Script{Action: *action, Role: a.Role, TimeoutSeconds: int(timeout / time.Second), HealthCheck: check}
		for _, input := range a.Inputs {
			script.Inputs = append(script.Inputs, input.Name)
		}
		slices.Sort(script.Inputs)
		scheduled := false
		for _, t := range a.Triggers {
			if t.Type == appconfig.TriggerCron {
				scheduled = true
				script.Cron = t.CronSchedule
				list = append(list, script)
			}
		}
		if !scheduled {
			list = append(list, script)
		}
	}
	return list, nil
}

// ReleaseOf reads what a release brings, as a runner accepts it. It is computed
// from the config and the items of the release, which never change.
func ReleaseOf(ctx context.Context, q *db.Queries, releaseID string) (jobspec.Release, error) {
	row, err := q.ConfigBodyOfRelease(ctx, releaseID)
	if err != nil {
		return jobspec.Release{}, fmt.Errorf("read config of release %s: %w", releaseID, err)
	}
	var app appconfig.App
	if err := json.Unmarshal(row.Body, &app); err != nil {
		return jobspec.Release{}, fmt.Errorf("read config of release %s: %w", releaseID, err)
	}
	items, err := q.ReleaseItemsOf(ctx, releaseID)
	if err != nil {
		return jobspec.Release{}, fmt.Errorf("read release items: %w", err)
	}
	release := jobspec.Release{ID: releaseID, Number: int(row.Number), Artifacts: []jobspec.ReleaseArtifact{}}
	for _, item := range items {
		release.Artifacts = append(release.Artifacts, jobspec.ReleaseArtifact{Name: item.Name, Digest: item.ArtifactDigest})
	}
	release.Scripts, err = Scripts(&app)
	return release, err
}

// planAcceptance says what the runner compares, and completes the change's row.
func (r *round) planAcceptance(ctx context.Context, step db.Step, insert *db.InsertChangeParams) (jobspec.Spec, error) {
	spec := r.baseSpec(jobspec.KindRelease, jobspec.OperationPlan, reviewTime)
	releaseID := optional.Value(r.workflow.ReleaseID)
	if flow.StepKind(step.Kind) == flow.StepForget {
		insert.Kind, spec.Destroy = "forget", true
		spec.Release = &jobspec.Release{ID: releaseID, Artifacts: []jobspec.ReleaseArtifact{}, Scripts: []jobspec.Script{}}
		return spec, nil
	}
	release, err := ReleaseOf(ctx, r.tx.Queries, releaseID)
	insert.Kind, spec.Release = "accept", &release
	return spec, err
}

// supersedeAcceptances has older proposals to accept a release on this install
// give way to a newer one.
func (r *round) supersedeAcceptances(ctx context.Context, c db.Change) error {
	if c.Kind != "accept" {
		return nil
	}
	older, err := r.tx.SupersedeAcceptances(ctx, db.SupersedeAcceptancesParams{ID: c.ID, InstallID: c.InstallID, Error: "superseded by " + c.ID})
	if err != nil {
		return err
	}
	for _, o := range older {
		if err := r.tx.WakeWorkflow(ctx, o.WorkflowID); err != nil {
			return err
		}
	}
	return nil
}

// putOff takes a step back to pending: what it planned is not going to be done.
func (r *round) putOff(ctx context.Context, step db.Step, d flow.Decision) error {
	if c, ok := r.changes[step.ID]; ok && flow.ChangeOpen(c.State) {
		err := r.tx.EndPlannedChange(ctx, db.EndPlannedChangeParams{
			ID: c.ID, State: flow.ChangeSuperseded, Effect: c.Effect, EffectDigest: c.EffectDigest, Plan: c.Plan, Error: optional.Of(d.Error),
		})
		if err != nil {
			return err
		}
	}
	if err := r.setStep(ctx, step, flow.StepPending, flow.Wait{}, "", ""); err != nil {
		return err
	}
	// What it planned before now does not count any more.
	return r.tx.RetryStep(ctx, step.ID)
}
