package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/rehearsal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/statetree"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/order"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// reviewTime bounds the runner's look at a release, and its acceptance.
const reviewTime = 5 * time.Minute

// plan makes a change for the step and has it planned. A change that the step
// had before is replaced: what was approved of it counts for the new one as long
// as the effect is the same.
func (e *Engine) plan(ctx context.Context, tx *database.Tx, s subject) error {
	if err := goOn(ctx, tx, s.step); err != nil { // it waited for the runner, which is there
		return err
	}
	if s.workflow.PlanOnly {
		if blind, err := foresee(ctx, tx, s); err != nil || blind {
			return err
		}
	}
	state, err := e.stateFor(ctx, tx, s, "plan of "+s.step.Name)
	if err != nil {
		return err
	}
	changeID := id.New(id.Change)
	origin := changeID
	insert := ctldb.InsertChangeParams{
		ID: changeID, InstallID: s.install.ID, WorkflowID: s.workflow.ID, StepID: s.step.ID, ResourceID: s.step.ResourceID,
		InputsVersion: s.workflow.InputsVersion, StateVersion: state.Version, ReleaseID: s.workflow.ReleaseID,
	}
	if s.change != nil {
		insert.Replaces, insert.ApprovedEffectDigest = &s.change.ID, s.change.ApprovedEffectDigest
		origin = originOf(*s.change)
	}
	insert.OriginID = &origin
	spec, err := planSpec(ctx, tx.Queries, s, &insert)
	if err == nil {
		spec.Continues, err = e.continues(ctx, tx, s.change)
	}
	if err != nil {
		return endStep(ctx, tx, s, flow.Decision{Do: flow.DoFailStep, Error: err.Error(), Remedy: "sync a config that this version can deploy, then start a new workflow"})
	}
	spec.ChangeID = changeID
	if !jobspec.Kinds[spec.Kind].ByAgent { // it has no templates to render
		spec.State, spec.StateVersion = state.Tree, int(state.Version)
	}
	if spec.Release != nil {
		if err := nameRoles(spec.Release.Roles, state.Tree); err != nil {
			return err
		}
	}
	if err := e.addScriptEnv(ctx, tx, s, &spec); err != nil {
		return err
	}
	insert.PlanJobID = &spec.JobID
	if err := tx.InsertChange(ctx, insert); err != nil {
		return fmt.Errorf("insert change: %w", err)
	}
	if err := tx.SetStepChange(ctx, ctldb.SetStepChangeParams{ID: s.step.ID, ChangeID: &changeID}); err != nil {
		return err
	}
	err = tell(ctx, tx, s.event(events.Change, events.Body{
		"change_id": changeID, "step": s.step.Name, "state": model.ChangePreparing, "replaces": optional.Value(insert.Replaces),
	}))
	if err != nil {
		return err
	}
	return e.dispatch(ctx, tx, s, job{spec: spec, origin: origin, releaseID: optional.Value(insert.ReleaseID)})
}

// stateFor is the newest version of the install's state tree, or a new one when
// what it is made of has moved. The engine holds the install's row.
func (e *Engine) stateFor(ctx context.Context, tx *database.Tx, s subject, cause string) (ctldb.StateVersion, error) {
	return statetree.Ensure(ctx, tx, e.Keys, statetree.Wanted{
		Install: s.install, InputsVersion: s.workflow.InputsVersion, ReleaseID: optional.Value(s.workflow.ReleaseID), Cause: cause,
		Preview: s.workflow.PlanOnly,
	})
}

// planSpec says what is planned, and completes the change's row.
func planSpec(ctx context.Context, q *ctldb.Queries, s subject, insert *ctldb.InsertChangeParams) (jobspec.Spec, error) {
	switch flow.StepKind(s.step.Kind) {
	case flow.StepAccept, flow.StepForget:
		return releaseSpec(ctx, q, s, insert)
	case flow.StepRunner:
		return runnerSpec(ctx, q, s, insert)
	case flow.StepAction:
		app, err := releaseview.App(ctx, q, optional.Value(s.workflow.ReleaseID))
		if err != nil {
			return jobspec.Spec{}, err
		}
		insert.Kind = model.ChangeScript
		return actionSpec(s, app, jobspec.OperationPlan)
	case flow.StepScript:
		insert.Kind, insert.ResourceID = model.ChangeScript, nil // it holds the resource and is no change of it
		return scriptSpec(ctx, q, s)
	}
	return resourceSpec(ctx, q, s, insert)
}

// releaseSpec says what the runner compares with the scripts that it accepted.
func releaseSpec(ctx context.Context, q *ctldb.Queries, s subject, insert *ctldb.InsertChangeParams) (jobspec.Spec, error) {
	spec := newSpec(s, jobspec.KindRelease, jobspec.OperationPlan, reviewTime)
	releaseID := optional.Value(s.workflow.ReleaseID)
	if flow.StepKind(s.step.Kind) == flow.StepForget {
		insert.Kind, spec.Destroy = model.ChangeForget, true
		spec.Release = &jobspec.Release{ID: releaseID, Artifacts: []jobspec.ReleaseArtifact{}, Scripts: []jobspec.Script{}}
		return spec, nil
	}
	release, err := releaseview.Offered(ctx, q, releaseID)
	insert.Kind, spec.Release = model.ChangeAccept, &release
	return spec, err
}

// actionSpec is a job that plans or runs the step's action, as the app has it.
func actionSpec(s subject, app *appconfig.App, op jobspec.Operation) (jobspec.Spec, error) {
	params, err := paramsOf(s.workflow)
	if err != nil {
		return jobspec.Spec{}, err
	}
	action, timeout, err := orders.Action(app, optional.Value(s.step.Action), params.Inputs)
	if err != nil {
		return jobspec.Spec{}, err
	}
	action.Inputs = orders.AllInputs(app.Action(action.Name), params.Inputs)
	action.SwitchedOff = switchedOff(params, action)
	spec := newSpec(s, jobspec.KindAction, op, timeout)
	spec.Action = action
	if op == jobspec.OperationPlan {
		spec.Policies = orders.ActionPolicies(app, action.Name)
	}
	return spec, nil
}

// resourceSpec is a job that plans what the step's resource is to become: what
// the workflow's release has of it, or nothing, and then it is about what is live
// or was left behind.
func resourceSpec(ctx context.Context, q *ctldb.Queries, s subject, insert *ctldb.InsertChangeParams) (jobspec.Spec, error) {
	if s.resource.Kind == model.KindSecrets {
		return secretsSpec(ctx, q, s, insert)
	}
	insert.Kind = model.ChangeDeploy
	releaseID := optional.Value(s.workflow.ReleaseID)
	spec := newSpec(s, "", jobspec.OperationPlan, 0)
	if flow.StepKind(s.step.Kind) == flow.StepTeardown {
		insert.Kind, spec.Destroy = model.ChangeTeardown, true
		left, err := leftBehind(ctx, q, s.install.ID)
		if err != nil {
			return jobspec.Spec{}, err
		}
		releaseID = cmp.Or(optional.Value(s.resource.LiveReleaseID), left[s.resource.ID])
	}
	item, err := releaseview.ItemOf(ctx, q, releaseID, releaseview.Resource{Row: s.resource, InputsVersion: s.workflow.InputsVersion})
	if err != nil {
		return jobspec.Spec{}, err
	}
	timeout, err := item.Revision.Fill(&spec)
	if err != nil {
		return jobspec.Spec{}, err
	}
	if err := staysInCluster(ctx, q, s, spec); err != nil {
		return jobspec.Spec{}, err
	}
	spec.TimeoutSeconds = int(timeout / time.Second)
	insert.ReleaseID, insert.RevisionID = &releaseID, &item.RevisionID
	insert.ArtifactRepository, insert.ArtifactDigest = &item.Artifact.Repository, &item.Artifact.Digest
	spec.Resource = &jobspec.Resource{ID: s.resource.ID, Kind: string(s.resource.Kind), Name: s.resource.Name}
	spec.Resource.Reversal = orders.Reversal(item.Revision.App, *spec.Resource)
	rehearsed, err := releaseview.RehearsalOf(s.install)
	if err != nil {
		return jobspec.Spec{}, err
	}
	if rehearsed != nil {
		orders.Rehearse(&spec, *spec.Resource, orders.Stage{
			App: item.Revision.App, Made: rehearsal.Complete(item.Revision.App, *rehearsed), Platform: rehearsed.Platform, NoCluster: rehearsed.NoCluster,
		})
	}
	spec.Artifact = &item.Artifact
	return spec, releasesHeld(ctx, q, &spec)
}

// releasesHeld tells a chart's job whether the control plane holds releases of the
// component: they move into the cluster when storage_driver changes.
func releasesHeld(ctx context.Context, q *ctldb.Queries, spec *jobspec.Spec) (err error) {
	if spec.HelmChart != nil {
		spec.HelmChart.RecordsHeld, err = q.HoldsReleases(ctx, spec.Resource.ID)
	}
	return err
}

// staysInCluster compares the cluster that a component is planned for with the one
// it is live in.
func staysInCluster(ctx context.Context, q *ctldb.Queries, s subject, next jobspec.Spec) error {
	live := optional.Value(s.resource.LiveReleaseID)
	if !jobspec.Kinds[next.Kind].OnCluster || next.Destroy || live == "" || live == optional.Value(s.workflow.ReleaseID) {
		return nil
	}
	item, err := releaseview.ItemOf(ctx, q, live, releaseview.Resource{Row: s.resource})
	if err != nil {
		return err
	}
	var was jobspec.Spec
	if _, err := item.Revision.Fill(&was); err != nil {
		return err
	}
	return orders.Stays(s.resource.Name, was.Cluster(), next.Cluster())
}

// continues names the change of uncertain outcome that a new plan follows: the
// one before, or the one that a plan before followed and did not come to apply.
func (e *Engine) continues(ctx context.Context, tx *database.Tx, before *ctldb.Change) (string, error) {
	switch {
	case before == nil:
		return "", nil
	case before.State == model.ChangeUncertain:
		return before.ID, nil
	case before.ApplyJobID != nil:
		return "", nil
	}
	spec, err := e.orderedPlan(ctx, tx, *before)
	if errors.Is(err, order.ErrNotOrdered) {
		return "", nil // it says nothing that could be believed
	}
	return spec.Continues, err
}

// originOf is the first change of the line of plans made again and retries that
// a change is of.
func originOf(c ctldb.Change) string {
	if c.OriginID != nil {
		return *c.OriginID
	}
	return c.ID // it was made before changes had an origin
}
