package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/foresight"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// foresee writes what the plan of a preview's step cannot know, before it is
// made. blind says that nothing can be planned, since something that the step
// reads is not there yet; then the step is skipped.
func foresee(ctx context.Context, tx *database.Tx, s subject) (blind bool, err error) {
	found, err := unforeseen(ctx, tx, s)
	if err != nil || len(found) == 0 {
		return false, err
	}
	if err := tx.SetStepMayChange(ctx, ctldb.SetStepMayChangeParams{ID: s.step.ID, MayChange: mustJSON(found)}); err != nil {
		return false, fmt.Errorf("store what may change: %w", err)
	}
	if !foresight.Blind(found) {
		return false, tell(ctx, tx, s.event(events.Step, events.Body{"step_id": s.step.ID, "step": s.step.Name, "may_change": found}))
	}
	return true, setStep(ctx, tx, s.step, stepIs{state: model.StepSkipped})
}

// unforeseen lists what the step reads of what changes before it.
func unforeseen(ctx context.Context, tx *database.Tx, s subject) ([]model.MayChange, error) {
	source := foresight.Source{Kind: foresight.SourceAction, Name: optional.Value(s.step.Action)}
	switch flow.StepKind(s.step.Kind) {
	case flow.StepDeploy:
		source = sourceOf(s.resource)
	case flow.StepAction:
	default:
		return nil, nil
	}
	app, err := releaseview.App(ctx, tx.Queries, optional.Value(s.workflow.ReleaseID))
	if err != nil {
		return nil, err
	}
	overrides, err := releaseview.Overrides(ctx, tx.Queries, s.install.ID, s.workflow.InputsVersion)
	if err != nil {
		return nil, err
	}
	override := appconfig.InstallComponent{}
	if source.Kind == foresight.SourceComponent {
		override = overrides[source.Name]
	}
	reads := foresight.Reads(foresight.Block{App: app, Source: source, Override: override})
	if len(reads) == 0 {
		return nil, nil
	}
	known, err := knownSources(ctx, tx, s)
	return foresight.Of(reads, known), err
}

// sourceOf is a resource as something that templates read.
func sourceOf(r ctldb.Resource) foresight.Source {
	switch r.Kind {
	case model.KindSandbox:
		return foresight.Source{Kind: foresight.SourceSandbox}
	case model.KindSecrets:
		return foresight.Source{Kind: foresight.SourceCopies}
	}
	return foresight.Source{Kind: foresight.SourceComponent, Name: r.Name}
}

// knownSources is what the preview has found so far of what its steps change.
func knownSources(ctx context.Context, tx *database.Tx, s subject) (map[foresight.Source]foresight.Known, error) {
	steps, err := tx.StepsOfWorkflow(ctx, s.workflow.ID)
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	changes, err := tx.CurrentChanges(ctx, s.workflow.ID)
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	resources, err := tx.ResourcesOfInstall(ctx, s.install.ID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	runs, err := tx.LastActionRuns(ctx, ctldb.LastActionRunsParams{InstallID: s.install.ID, Unattended: []string{}})
	if err != nil {
		return nil, fmt.Errorf("read action runs: %w", err)
	}
	byStep, byID, lastRun := map[string]ctldb.Change{}, map[string]ctldb.Resource{}, map[string]ctldb.ActionRun{}
	for _, c := range changes {
		byStep[c.StepID] = c
	}
	for _, r := range resources {
		byID[r.ID] = r
	}
	for _, r := range runs {
		lastRun[r.Action] = r
	}
	known := map[foresight.Source]foresight.Known{}
	for _, step := range steps {
		switch flow.StepKind(step.Kind) {
		case flow.StepDeploy:
			resource := byID[optional.Value(step.ResourceID)]
			known[sourceOf(resource)], err = knownResource(resource, step, byStep[step.ID])
		case flow.StepAction:
			action := optional.Value(step.Action)
			known[foresight.Source{Kind: foresight.SourceAction, Name: action}], err = knownAction(lastRun[action])
		}
		if err != nil {
			return nil, err
		}
	}
	return known, nil
}

// knownResource is what a preview knows of a resource after the plan of a step
// for it. Only Terraform lists the outputs that a plan changes, and only where
// nothing of the plan was left out and it knew all that it read.
func knownResource(r ctldb.Resource, step ctldb.Step, change ctldb.Change) (foresight.Known, error) {
	var outputs map[string]json.RawMessage
	if err := json.Unmarshal(r.Outputs, &outputs); err != nil {
		return foresight.Known{}, fmt.Errorf("read outputs of %s: %w", r.Name, err)
	}
	var open []model.MayChange
	if err := json.Unmarshal(step.MayChange, &open); err != nil {
		return foresight.Known{}, fmt.Errorf("read what may change in %s: %w", step.Name, err)
	}
	k := foresight.Known{
		Changes: change.State != model.ChangeNoChange || len(open) > 0,
		Live:    r.LiveReleaseID != nil, There: slices.Sorted(maps.Keys(outputs)),
	}
	terraform := r.Kind == model.KindSandbox || jobspec.Kind(r.Type) == jobspec.KindTerraformModule
	if change.State != model.ChangePlanned || len(open) > 0 || !terraform {
		return k, nil
	}
	var plan jobspec.PlanSummary
	if err := json.Unmarshal(change.Plan, &plan); err != nil {
		return k, fmt.Errorf("read plan of change %s: %w", change.ID, err)
	}
	k.Exact = plan.NotShownBytes == 0
	for _, field := range plan.Outputs {
		k.Outputs = append(k.Outputs, outputName.FindString(field.Path))
	}
	return k, nil
}

// outputName is the output that the path of a field in a plan begins with.
var outputName = regexp.MustCompile(`^[^.\[]*`)

// knownAction is what a preview knows of an action that its workflow runs, from
// the last run; zero when there was none. What it puts out is known once it has
// run.
func knownAction(last ctldb.ActionRun) (foresight.Known, error) {
	k := foresight.Known{Changes: true, Live: last.ID != ""}
	if len(last.Outputs) == 0 {
		return k, nil
	}
	var steps map[string]map[string]json.RawMessage
	if err := json.Unmarshal(last.Outputs, &steps); err != nil {
		return k, fmt.Errorf("read outputs of action %s: %w", last.Action, err)
	}
	k.There = append(k.There, "steps")
	for _, outputs := range steps {
		k.There = slices.AppendSeq(k.There, maps.Keys(outputs))
	}
	return k, nil
}
