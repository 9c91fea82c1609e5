package rollback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// actor is who starts what nobody asked for.
const actor = "berth"

// ByItself starts, in the transaction in which a workflow fails, the rollback that the
// app asks for: of what failed, once. It is planned, and needs the approval that the
// install needs for every change; that of the failed workflow does not count for it.
// Where there is nothing to go back to, nothing is started.
func (f Finder) ByItself(ctx context.Context, tx *database.Tx, w ctldb.Workflow) error {
	if w.PlanOnly || w.ReleaseID == nil {
		return nil
	}
	app, err := releaseview.App(ctx, tx.Queries, *w.ReleaseID)
	if err != nil {
		return err
	}
	tried, err := triedBy(ctx, tx, w, app)
	if err != nil {
		return err
	}
	answered, err := tx.RollbackAnswers(ctx, ctldb.RollbackAnswersParams{InstallID: w.InstallID, WorkflowID: w.ID})
	if err != nil {
		return fmt.Errorf("look for an earlier rollback: %w", err)
	}
	names := flow.ByItself(flow.Kind(w.Kind), answered, tried)
	if len(names) == 0 {
		return nil
	}
	req := workflow.Request{InstallID: w.InstallID, Kind: flow.KindRollback, Components: names, Actor: actor, Rollback: &workflow.Rollback{ByItself: true}}
	if err = f.Prepare(ctx, tx, &req); err == nil {
		_, err = workflow.Start(ctx, tx, req)
	}
	// Nothing was written then but, at most, inputs that never come into force.
	if errors.Is(err, fault.ErrConflict) || errors.Is(err, fault.ErrInvalid) {
		f.Log.WarnContext(ctx, "no rollback by itself", "workflow_id", w.ID, "install_id", w.InstallID, "err", err)
		return nil
	}
	return err
}

// triedBy reads what a workflow has deployed, or tried to.
func triedBy(ctx context.Context, tx *database.Tx, w ctldb.Workflow, app *appconfig.App) ([]flow.Tried, error) {
	changes, err := tx.CurrentChanges(ctx, w.ID)
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	resources, err := tx.ResourcesOfInstall(ctx, w.InstallID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	held, err := workflow.HeldBack(ctx, tx, w.ID)
	if err != nil {
		return nil, err
	}
	var tried []flow.Tried
	for _, r := range resources {
		for _, c := range changes {
			if optional.Value(c.ResourceID) != r.ID || c.Kind != model.ChangeDeploy || len(c.Plan) == 0 {
				continue
			}
			var plan jobspec.PlanSummary
			if err := json.Unmarshal(c.Plan, &plan); err != nil {
				return nil, fmt.Errorf("read plan of change %s: %w", c.ID, err)
			}
			failed := c.State == model.ChangeFailed || c.State == model.ChangeApplied && r.Kind == model.KindComponent && slices.Contains(held, r.Name)
			t := flow.Tried{Name: r.Name, Failed: failed && c.ExecutedAt != nil, Asked: asksFor(app, r)}
			if plan.Reversal != nil {
				t.Class = plan.Reversal.Class
			}
			tried = append(tried, t)
		}
	}
	return tried, nil
}

// asksFor tells whether the app asks for a rollback of a resource whose deploy fails.
func asksFor(app *appconfig.App, r ctldb.Resource) bool {
	if r.Kind == model.KindSandbox {
		return app.Sandbox != nil && app.Sandbox.Berth != nil && app.Sandbox.Berth.AutoRollback
	}
	c := app.Component(r.Name)
	return c != nil && c.Berth != nil && c.Berth.AutoRollback
}
