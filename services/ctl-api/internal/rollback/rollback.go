// Package rollback finds what an install, or some components of it, can go back to:
// an earlier release with the inputs of then. What it finds is offered after a
// failure, and is what a workflow of kind rollback is made with; the workflow itself
// is planned, approved and done like any other.
//
// Secrets, toggles and app variables are not part of it: they stay as they are.
package rollback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Codes of refusals, both 409.
const (
	CodeNoEarlier = "no_earlier_release"
	CodeNever     = "never_deployed"
)

// sandboxName is what the sandbox is called where components are named.
const sandboxName = "sandbox"

// Finder finds what can be gone back to. Its methods run in the caller's transaction.
type Finder struct {
	Installs *installs.Service
	Log      *slog.Logger // needed by ByItself
}

// asked is a rollback as somebody asks for it, or as it is offered.
type asked struct {
	install    ctldb.Install
	components []string // none for all
	releaseID  string   // empty for the last good one
	number     int32    // of that release, for people
}

// goal is what was found.
type goal struct {
	from, to flow.Past
	// moved: the sandbox was changed after the state that is gone back to.
	moved bool
}

// Prepare completes a request for a rollback: the release, when it names none, and
// the inputs of then, stored as a version that comes into force once the rollback has
// succeeded. The install's row is locked by it.
//
// Errors: ErrConflict with CodeNoEarlier or CodeNever when there is nothing to go
// back to, or with no code when the named components have no state in common.
func (f Finder) Prepare(ctx context.Context, tx *database.Tx, req *workflow.Request) error {
	install, err := tx.LockInstallRow(ctx, req.InstallID)
	if err != nil {
		return fmt.Errorf("lock install: %w", err)
	}
	if install.State == model.InstallNew {
		return nil // workflow.Start says so
	}
	a := asked{install: install, components: req.Components, releaseID: req.ReleaseID}
	if a.releaseID != "" {
		row, err := tx.FindReleaseOfApp(ctx, ctldb.FindReleaseOfAppParams{AppID: install.AppID, ID: a.releaseID})
		if err != nil {
			return fmt.Errorf("find release: %w", err)
		}
		a.number = row.Number
	}
	g, err := find(ctx, tx, a)
	if err != nil {
		return err
	}
	app, err := releaseview.App(ctx, tx.Queries, g.to.ReleaseID)
	if err != nil {
		return err
	}
	back, err := f.Installs.BringBack(ctx, tx, install, installs.Back{
		Version: g.to.InputsVersion, Defined: app.Inputs, Actor: req.Actor, Preview: req.PlanOnly,
	})
	if err != nil {
		return err
	}
	made, err := g.rollback(ctx, tx, a, app)
	if err != nil {
		return err
	}
	made.Components, made.Changed, made.Overrides = req.Components, back.Inputs, back.Overrides
	if req.Rollback != nil {
		made.ByItself = req.Rollback.ByItself
	}
	if !g.from.Good {
		made.Answers = g.from.WorkflowID
	}
	req.Rollback, req.ReleaseID, req.InputsVersion = made, g.to.ReleaseID, back.Version
	return nil
}

// forward are the kinds whose failure a rollback answers.
var forward = []flow.Kind{flow.KindProvision, flow.KindReprovision, flow.KindReprovisionSandbox, flow.KindDeploy, flow.KindInputUpdate}

// Offer is the rollback that answers a workflow which failed or was cancelled after
// it had applied something; nil when there is nothing to go back to, or something
// newer has happened to the install. command is what accepts it.
func (f Finder) Offer(ctx context.Context, tx *database.Tx, w ctldb.Workflow) (offer *workflow.Rollback, command string, err error) {
	gaveUp := w.State == model.WorkflowFailed || w.State == model.WorkflowCancelled
	if !gaveUp || w.PlanOnly || !slices.Contains(forward, flow.Kind(w.Kind)) {
		return nil, "", nil
	}
	install, err := tx.FindInstall(ctx, w.InstallID)
	if err != nil {
		return nil, "", fmt.Errorf("read install: %w", err)
	}
	moved, err := tx.MovedByWorkflow(ctx, ctldb.MovedByWorkflowParams{InstallID: w.InstallID, WorkflowID: w.ID})
	if err != nil || len(moved) == 0 {
		return nil, "", err
	}
	open, err := tx.CountOpenWorkflows(ctx, w.InstallID)
	if err != nil || open > 0 {
		return nil, "", err
	}
	var names []string
	for _, r := range moved {
		names = append(names, r.Name)
	}
	g, a, err := answerTo(ctx, tx, w, asked{install: install, components: names})
	if errors.Is(err, fault.ErrConflict) || err == nil && g.from.WorkflowID != w.ID {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	app, err := releaseview.App(ctx, tx.Queries, g.to.ReleaseID)
	if err != nil {
		return nil, "", err
	}
	back, err := f.Installs.BringBack(ctx, tx, install, installs.Back{Version: g.to.InputsVersion, Defined: app.Inputs, Look: true})
	if err != nil {
		return nil, "", err
	}
	if offer, err = g.rollback(ctx, tx, a, app); err != nil {
		return nil, "", err
	}
	offer.Components, offer.Changed, offer.Overrides = names, back.Inputs, back.Overrides
	command = "berth rollback " + install.Name
	for _, name := range a.components {
		command += " --component " + name
	}
	return offer, command, nil
}

// answerTo finds what answers the failure of a workflow: of one about components what
// it changed, if that was at one state before, else all of the install. changed names
// what it changed; the answer is with the components that go back, none for all.
func answerTo(ctx context.Context, tx *database.Tx, w ctldb.Workflow, changed asked) (goal, asked, error) {
	part, err := workflow.ComponentsOf(w)
	if err != nil {
		return goal{}, changed, err
	}
	if len(part) > 0 {
		if g, err := find(ctx, tx, changed); !errors.Is(err, fault.ErrConflict) {
			return g, changed, err
		}
	}
	changed.components = nil
	g, err := find(ctx, tx, changed)
	return g, changed, err
}

// rollback is the goal as a row keeps it.
func (g goal) rollback(ctx context.Context, tx *database.Tx, a asked, app *appconfig.App) (*workflow.Rollback, error) {
	r := &workflow.Rollback{
		From: workflow.ReleaseRef{ID: g.from.ReleaseID, Number: g.from.Number}, To: workflow.ReleaseRef{ID: g.to.ReleaseID, Number: g.to.Number},
		Inputs: g.to.InputsVersion, SandboxMoved: g.moved,
	}
	if len(a.components) > 0 {
		return r, nil
	}
	resources, err := tx.ResourcesOfInstall(ctx, a.install.ID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	for _, res := range resources {
		if res.Kind == model.KindComponent && res.State != model.ResourceAbsent && app.Component(res.Name) == nil {
			r.Stays = append(r.Stays, res.Name)
		}
	}
	return r, nil
}

// find finds what an install, or components of it, can go back to.
func find(ctx context.Context, tx *database.Tx, a asked) (goal, error) {
	if len(a.components) > 0 {
		return findPart(ctx, tx, a)
	}
	rows, err := tx.PastOfInstall(ctx, a.install.ID)
	if err != nil {
		return goal{}, fmt.Errorf("read what the install was: %w", err)
	}
	var past []flow.Past
	for _, r := range rows {
		rollback := r.Kind == string(flow.KindRollback)
		if rollback && r.Part {
			continue // the rest did not go back
		}
		past = append(past, flow.Past{
			WorkflowID: r.WorkflowID, ReleaseID: r.ReleaseID, Number: r.ReleaseNumber, InputsVersion: r.InputsVersion,
			Good: r.Good, Rollback: rollback,
		})
	}
	var g goal
	var found bool
	if g.from, g.to, found = flow.Back(past, a.releaseID); !found {
		return g, a.nothing("install " + a.install.Name)
	}
	newer := map[string]bool{}
	for _, p := range past {
		if p.WorkflowID == g.to.WorkflowID {
			break
		}
		newer[p.WorkflowID] = true
	}
	sandbox, err := pastOf(ctx, tx, a.install.ID, sandboxName)
	if err != nil {
		return g, err
	}
	g.moved = slices.ContainsFunc(sandbox, func(p flow.Past) bool { return newer[p.WorkflowID] })
	return g, nil
}

// findPart finds the state that all of the named components can go back to.
func findPart(ctx context.Context, tx *database.Tx, a asked) (goal, error) {
	var common goal
	for i, name := range a.components {
		past, err := pastOf(ctx, tx, a.install.ID, name)
		if err != nil {
			return goal{}, err
		}
		from, to, found := flow.Back(past, a.releaseID)
		if !found {
			return goal{}, a.nothing("component " + name + " of install " + a.install.Name)
		}
		if i == 0 {
			common = goal{from: from, to: to}
		}
		if to.ReleaseID != common.to.ReleaseID || to.InputsVersion != common.to.InputsVersion {
			return goal{}, fault.With(fault.Newf(fault.ErrConflict, "components %s and %s of install %s have no earlier release and inputs in common", a.components[0], name, a.install.Name),
				fault.Code("no_common_state"), fault.Remedy("roll them back one after the other, or name a release that both stood on"))
		}
	}
	return common, nil
}

// pastOf reads what a component was, or the sandbox when no component has its name.
func pastOf(ctx context.Context, tx *database.Tx, installID, name string) ([]flow.Past, error) {
	resources, err := tx.ResourcesOfInstall(ctx, installID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	id := ""
	for _, r := range resources {
		if r.Kind == model.KindComponent && r.Name == name || id == "" && r.Kind == model.KindSandbox && name == sandboxName {
			id = r.ID
		}
	}
	if id == "" {
		return nil, nil
	}
	rows, err := tx.PastOfResource(ctx, &id)
	if err != nil {
		return nil, fmt.Errorf("read what %s was: %w", name, err)
	}
	var past []flow.Past
	for _, r := range rows {
		past = append(past, flow.Past{
			WorkflowID: r.WorkflowID, ReleaseID: r.ReleaseID, Number: r.ReleaseNumber, InputsVersion: r.InputsVersion,
			Good: (r.State == model.ChangeApplied || r.State == model.ChangeNoChange) && !r.Held, Rollback: r.Kind == string(flow.KindRollback),
		})
	}
	return past, nil
}

// nothing says that there is nothing that what can go back to.
func (a asked) nothing(what string) error {
	if a.releaseID == "" {
		return fault.With(fault.Newf(fault.ErrConflict, "%s has no older release to go back to", what),
			fault.Code(CodeNoEarlier), fault.Remedy("see what was deployed: `berth history %s`", a.install.Name))
	}
	return fault.With(fault.Newf(fault.ErrConflict, "release %d was never deployed well to %s, so there is nothing to go back to", a.number, what),
		fault.Code(CodeNever), fault.Remedy("deploy it: `berth deploy %s --to %d`", a.install.Name, a.number))
}
