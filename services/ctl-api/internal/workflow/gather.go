package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// basis is what a workflow is planned from.
type basis struct {
	Request
	install   ctldb.Install
	releaseID string // empty for a deprovision of what was never deployed
}

// gather reads what flow.Plan needs, and makes rows for components that the
// install does not have yet. The resources are by resourceKey.
func gather(ctx context.Context, tx *database.Tx, b basis) (flow.PlanInput, map[string]ctldb.Resource, error) {
	in := flow.PlanInput{
		Kind: b.Kind, Install: b.install.Name, Selected: b.Components, WithDependents: b.WithDependents, WithoutComponents: b.WithoutComponents, Action: b.Action,
	}
	if b.Remedy != "" {
		in.Because = b.Remedy + " is unhealthy, and the app asks whether it shall run then"
	}
	if b.Script != nil {
		in.Action, in.Component = b.Script.Action(), b.Script.Component
	}
	var r release
	if b.releaseID != "" {
		var err error
		if r, err = gatherRelease(ctx, tx, b, &in); err != nil {
			return in, nil, err
		}
	}
	rows, err := tx.ResourcesOfInstall(ctx, b.install.ID)
	if err != nil {
		return in, nil, fmt.Errorf("read resources: %w", err)
	}
	left, err := leftBehind(ctx, tx.Queries, b.install.ID)
	if err != nil {
		return in, nil, err
	}
	orphans, err := tx.OrphansOfInstall(ctx, b.install.ID)
	if err != nil {
		return in, nil, fmt.Errorf("read orphans: %w", err)
	}
	resources := map[string]ctldb.Resource{}
	graphs := map[string]map[string][]string{} // release → component → needs
	for _, row := range rows {
		resources[resourceKey(row.Kind, row.Name)] = row
		standsOn := cmp.Or(optional.Value(row.LiveReleaseID), left[row.ID])
		if row.Kind == model.KindStack || standsOn == "" {
			continue // what never came to be has nothing to tear down
		}
		if row.Kind == model.KindSecrets {
			in.CopiesMade = true
			continue
		}
		made := flow.PlanMade{Name: row.Name, Sandbox: row.Kind == model.KindSandbox, Orphan: slices.Contains(orphans, row.ID), MaxRetries: retriesOf(in, row.Name)}
		if !made.Sandbox {
			if graphs[standsOn] == nil {
				if graphs[standsOn], err = releaseview.Needs(ctx, tx.Queries, standsOn); err != nil {
					return in, nil, err
				}
			}
			made.Needs = graphs[standsOn][row.Name]
		}
		in.Made = append(in.Made, made)
	}
	if r.app != nil {
		r.gatherActions()
		if err := gatherRoles(ctx, tx, b, r); err != nil {
			return in, nil, err
		}
	}
	in.Hold = b.hold()
	if b.PlanOnly && b.Kind != flow.KindActionRun {
		in.Checks = nil // nothing is accepted, so nothing may run
		withoutGate(&in)
	}
	if b.Rollback != nil {
		in.Because, in.SandboxMoved = b.Rollback.because(), b.Rollback.SandboxMoved
	}
	if b.Kind == flow.KindInputUpdate {
		if err := b.gatherRefers(ctx, tx, &in, resources); err != nil {
			return in, nil, err
		}
	}
	return in, resources, nil
}

// because says why something is in a rollback.
func (r Rollback) because() string {
	return fmt.Sprintf("goes back to release %d, with the inputs of then", r.To.Number)
}

// leftBehind reads what is there of an install's resources although none of
// their deploys has succeeded: with which release each is removed, by its id.
func leftBehind(ctx context.Context, q *ctldb.Queries, installID string) (map[string]string, error) {
	rows, err := q.AppliesWithoutRelease(ctx, installID)
	if err != nil {
		return nil, fmt.Errorf("read applies: %w", err)
	}
	applies := map[string][]flow.Apply{}
	for _, row := range rows {
		applies[row.ResourceID] = append(applies[row.ResourceID], flow.Apply{State: row.State, ReleaseID: row.ReleaseID})
	}
	left := map[string]string{}
	for id, all := range applies {
		if release := flow.Left(all); release != "" {
			left[id] = release
		}
	}
	return left, nil
}

// gatherRelease reads what flow.Plan needs of the release, but for its actions.
func gatherRelease(ctx context.Context, tx *database.Tx, b basis, in *flow.PlanInput) (release, error) {
	app, err := releaseview.App(ctx, tx.Queries, b.releaseID)
	if err != nil {
		return release{}, err
	}
	if err := rehearsable(b.install, app); err != nil {
		return release{}, err
	}
	r := release{app: app, toggles: map[string]bool{}, in: in}
	if err := json.Unmarshal(b.install.Toggles, &r.toggles); err != nil {
		return r, fmt.Errorf("read toggles: %w", err)
	}
	if err := gatherComponents(ctx, tx, b, r); err != nil {
		return r, err
	}
	if err := gatherSecrets(ctx, tx, b, app, in); err != nil {
		return r, err
	}
	if b.Script != nil {
		return r, b.Script.Fits(app)
	}
	if b.Kind != flow.KindActionRun {
		return r, nil
	}
	action := app.Action(b.Action)
	if action == nil {
		return r, fault.Newf(fault.ErrInvalid, "the release has no action %q; it has: %s", b.Action, strings.Join(actionNames(app), ", "))
	}
	return r, orders.CheckInputs(action, b.Inputs)
}

// rehearsable refuses a release with stand-ins for an install that is no rehearsal:
// ErrConflict with code rehearsal_only. Such a release leaves parts of the app out.
func rehearsable(install ctldb.Install, app *appconfig.App) error {
	stands := slices.Sorted(maps.Keys(app.StandIns()))
	if install.Rehearsal != nil || len(stands) == 0 {
		return nil
	}
	return fault.With(fault.Newf(fault.ErrConflict, "this release was made by `berth rehearse`: it has stand-ins for %s, and install %s is no rehearsal", strings.Join(stands, ", "), install.Name),
		fault.Code("rehearsal_only"), fault.Remedy("sync the app folder with `berth sync`, and deploy the release that it makes"))
}

// release is an app as an install has it, and what is planned from it.
type release struct {
	app     *appconfig.App
	toggles map[string]bool
	in      *flow.PlanInput
}

// gatherComponents makes rows for the sandbox and the components of the release,
// and says what each is in this install.
func gatherComponents(ctx context.Context, tx *database.Tx, b basis, r release) error {
	items, err := tx.ReleaseItemsOf(ctx, b.releaseID)
	if err != nil {
		return fmt.Errorf("read release items: %w", err)
	}
	overrides, err := releaseview.Overrides(ctx, tx.Queries, b.install.ID, b.install.InputsVersion)
	if err != nil {
		return err
	}
	g, _ := graph.New(r.app)
	for _, item := range items {
		if item.Kind == model.KindScripts {
			continue
		}
		err := tx.EnsureResource(ctx, ctldb.EnsureResourceParams{
			ID: id.New(id.Resource), InstallID: b.install.ID, Kind: item.Kind, ComponentID: &item.ComponentID, Name: item.Name, Type: item.Type,
		})
		if err != nil {
			return fmt.Errorf("ensure resource %s: %w", item.Name, err)
		}
		if item.Kind == model.KindSandbox {
			r.in.HasSandbox = true
			continue
		}
		c := r.app.Component(item.Name)
		if c == nil {
			return fmt.Errorf("release %s has component %q, its config has not", b.releaseID, item.Name)
		}
		planned := flow.PlanComponent{
			Name: c.Name, Needs: g.Needs(c.Name), Off: !c.EnabledIn(r.toggles), SwitchedOn: c.Toggleable && r.toggles[c.Name], Misfit: misfit(overrides[c.Name], c), MaxRetries: c.MaxAutoRetries,
			Plugin: c.Plugin != nil, Probed: jobspec.Kinds[jobspec.Kind(item.Type)].Probe(),
		}
		if h := c.Health; h != nil && h.BlockDeploy {
			planned.Gate, planned.Hold, planned.GateChecks = true, h.StabilizationWindow.Std(), h.RequiredChecks
		}
		for _, probe := range c.ProbeActions() {
			planned.Looks = append(planned.Looks, probe.Name)
		}
		r.in.Components = append(r.in.Components, planned)
	}
	return nil
}

// gatherActions lists the actions that a workflow runs by itself, but none that could
// only fail: it needs a component that is off. Before that one is removed, and while
// it is there, an action may need it.
func (r release) gatherActions() {
	off := func(name string) bool {
		c := r.app.Component(name)
		return c != nil && !c.EnabledIn(r.toggles)
	}
	gone := func(name string) bool {
		return off(name) && !slices.ContainsFunc(r.in.Made, func(m flow.PlanMade) bool { return !m.Sandbox && m.Name == name })
	}
	for i := range r.app.Actions {
		a := &r.app.Actions[i]
		needsOff, needsGone := r.app.ActionNeedsAny(a, off), r.app.ActionNeedsAny(a, gone)
		if _, ok := a.HealthCheck(); ok && !needsOff && !a.IsProbe() { // those the runner's schedule starts
			r.in.Checks = append(r.in.Checks, a.Name)
		}
		for _, t := range a.Triggers {
			lost := needsOff
			if t.Type == "pre-disable-component" || t.Type == "pre-teardown-component" {
				lost = needsGone
			}
			if lifecycle(string(t.Type)) && !lost && a.BreakGlassRole == "" { // with a role, only people and its switch start it
				r.in.Hooks = append(r.in.Hooks, flow.PlanHook{Action: a.Name, Trigger: string(t.Type), Component: t.ComponentName, Index: t.Index})
			}
		}
	}
}

// misfit is the first problem of an override by its key.
func misfit(override appconfig.InstallComponent, c *appconfig.Component) string {
	problems := check.OverrideProblems(override, c)
	for _, key := range slices.Sorted(maps.Keys(problems)) {
		return key + ": " + problems[key]
	}
	return ""
}

func lifecycle(trigger string) bool {
	return strings.HasPrefix(trigger, "pre-") || strings.HasPrefix(trigger, "post-")
}

func actionNames(app *appconfig.App) []string {
	var names []string
	for _, a := range app.Actions {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}

// resourceKey is unique among the resources of an install.
func resourceKey(kind model.ResourceKind, name string) string {
	if kind == model.KindSandbox {
		return "sandbox"
	}
	return string(kind) + "/" + name
}
