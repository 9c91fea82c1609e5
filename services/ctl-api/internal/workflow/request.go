package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// Request asks for a workflow.
type Request struct {
	InstallID string
	Kind      flow.Kind
	// Release is an id or a number; empty takes the newest (provision, deploy)
	// or the one that the install has (action_run, deprovision).
	ReleaseID  string
	Components []string // deploy: only these; empty means all
	Action     string   // action_run
	Inputs     map[string]string
	PlanOnly   bool
	ApproveAll bool
	Actor      string
}

// requestParams is what a workflow's row keeps of its request.
type requestParams struct {
	Components []string          `json:"components,omitempty"`
	Action     string            `json:"action,omitempty"`
	Inputs     map[string]string `json:"inputs,omitempty"`
}

// Start makes a workflow with its steps and wakes the engine, all in the
// caller's transaction. The install's row is locked by it.
//
// Errors: ErrConflict when the install cannot have such a workflow now,
// ErrInvalid when the request names what is not there.
func Start(ctx context.Context, tx *store.Tx, req Request) (string, error) {
	install, err := tx.LockInstallRow(ctx, req.InstallID)
	if err != nil {
		return "", fmt.Errorf("lock install: %w", err)
	}
	if err := mayStart(install, req.Kind); err != nil {
		return "", err
	}
	releaseID, err := pinRelease(ctx, tx, install, req)
	if err != nil {
		return "", err
	}
	in, resources, err := gather(ctx, tx, install, releaseID, req)
	if err != nil {
		return "", err
	}
	steps, err := flow.Plan(in)
	if err != nil {
		return "", err
	}
	row, err := tx.InsertWorkflow(ctx, db.InsertWorkflowParams{
		ID: id.New(id.Workflow), InstallID: install.ID, Kind: string(req.Kind), ReleaseID: optional.Of(releaseID), InputsVersion: install.InputsVersion,
		TogglesVersion: install.TogglesVersion, PlanOnly: req.PlanOnly, ApproveAll: req.ApproveAll, Params: mustJSON(requestParams{req.Components, req.Action, req.Inputs}),
		Trace: mustJSON(telemetry.Inject(ctx)), CreatedBy: req.Actor,
	})
	if err != nil {
		return "", fmt.Errorf("insert workflow: %w", err)
	}
	for i, s := range steps {
		p := db.InsertStepParams{
			ID: id.New(id.Step), WorkflowID: row.ID, InstallID: install.ID, Idx: int32(i), Name: s.Name, Kind: string(s.Kind),
			Action: optional.Of(s.Action), Needs: append([]string{}, s.Needs...), Reason: s.Reason, Params: mustJSON(struct{}{}), MaxRetries: int32(s.MaxRetries),
		}
		if s.Resource != "" {
			resource, ok := resources[resourceKey(s.Sandbox, s.Resource)]
			if !ok {
				return "", fmt.Errorf("step %s: the install has no resource %q", s.Name, s.Resource)
			}
			p.ResourceID = &resource.ID
		}
		if err := tx.InsertStep(ctx, p); err != nil {
			return "", fmt.Errorf("insert step %s: %w", s.Name, err)
		}
	}
	if err := appendEvent(ctx, tx, row.ID, "workflow", map[string]any{"state": flow.WorkflowQueued, "kind": req.Kind}); err != nil {
		return "", err
	}
	return row.ID, tx.WakeWorkflow(ctx, row.ID)
}

// mayStart says which kinds an install may have in its state.
func mayStart(install db.Install, kind flow.Kind) error {
	switch {
	case install.State == "forgotten":
		return fault.Newf(fault.ErrConflict, "install %q is forgotten", install.Name)
	case kind == flow.KindProvision || kind == flow.KindDeprovision:
		return nil
	case install.State == "deprovisioned":
		return fault.Newf(fault.ErrConflict, "install %q is deprovisioned; provision it first", install.Name)
	}
	return nil
}

// pinRelease says which release the workflow stands on from beginning to end.
func pinRelease(ctx context.Context, tx *store.Tx, install db.Install, req Request) (string, error) {
	if req.ReleaseID != "" {
		return req.ReleaseID, nil
	}
	if (req.Kind == flow.KindActionRun || req.Kind == flow.KindDeprovision) && install.ReleaseID != nil {
		return *install.ReleaseID, nil
	}
	newest, err := tx.FindReleaseOfApp(ctx, db.FindReleaseOfAppParams{AppID: install.AppID})
	if errors.Is(err, fault.ErrNotFound) {
		if req.Kind == flow.KindDeprovision {
			return "", nil // nothing was ever deployed
		}
		return "", fault.Newf(fault.ErrConflict, "the app has no release yet: wait until its builds are done (`berth builds`), or sync it")
	}
	if err != nil {
		return "", fmt.Errorf("find newest release: %w", err)
	}
	return newest.ID, nil
}

// gather reads what Plan needs, and makes rows for components that the install
// does not have yet.
func gather(ctx context.Context, tx *store.Tx, install db.Install, releaseID string, req Request) (flow.PlanInput, map[string]db.Resource, error) {
	in := flow.PlanInput{Kind: req.Kind, Install: install.Name, Selected: req.Components, Action: req.Action}
	if releaseID != "" {
		if err := gatherRelease(ctx, tx, install, releaseID, req, &in); err != nil {
			return in, nil, err
		}
	}
	rows, err := tx.ResourcesOfInstall(ctx, install.ID)
	if err != nil {
		return in, nil, fmt.Errorf("read resources: %w", err)
	}
	resources := map[string]db.Resource{}
	graphs := map[string]map[string][]string{} // release → component → needs
	for _, row := range rows {
		resources[resourceKey(row.Kind == "sandbox", row.Name)] = row
		if row.Kind == "stack" || row.State == "absent" {
			continue
		}
		made := flow.PlanMade{Name: row.Name, Sandbox: row.Kind == "sandbox"}
		if live := optional.Value(row.LiveReleaseID); live != "" && !made.Sandbox {
			if graphs[live] == nil {
				if graphs[live], err = needsInRelease(ctx, tx, live); err != nil {
					return in, nil, err
				}
			}
			made.Needs = graphs[live][row.Name]
		}
		// What never came to be has nothing to tear down.
		if row.LiveReleaseID != nil {
			in.Made = append(in.Made, made)
		}
	}
	return in, resources, nil
}

func gatherRelease(ctx context.Context, tx *store.Tx, install db.Install, releaseID string, req Request, in *flow.PlanInput) error {
	app, err := AppOfRelease(ctx, tx.Queries, releaseID)
	if err != nil {
		return err
	}
	items, err := tx.ReleaseItemsOf(ctx, releaseID)
	if err != nil {
		return fmt.Errorf("read release items: %w", err)
	}
	toggles := map[string]bool{}
	if err := json.Unmarshal(install.Toggles, &toggles); err != nil {
		return fmt.Errorf("read toggles: %w", err)
	}
	overrides, err := overridesOf(ctx, tx, install.ID, install.InputsVersion)
	if err != nil {
		return err
	}
	graph, _ := appconfig.NewGraph(app)
	for _, item := range items {
		err := tx.EnsureResource(ctx, db.EnsureResourceParams{
			ID: id.New(id.Resource), InstallID: install.ID, Kind: item.Kind, ComponentID: &item.ComponentID, Name: item.Name, Type: item.Type,
		})
		if err != nil {
			return fmt.Errorf("ensure resource %s: %w", item.Name, err)
		}
		if item.Kind == "sandbox" {
			in.HasSandbox = true
			continue
		}
		c := app.Component(item.Name)
		if c == nil {
			return fmt.Errorf("release %s has component %q, its config has not", releaseID, item.Name)
		}
		in.Components = append(in.Components, flow.PlanComponent{
			Name: c.Name, Needs: graph.Needs(c.Name), Off: !c.EnabledIn(toggles), Misfit: misfit(overrides[c.Name], c), MaxRetries: c.MaxAutoRetries,
		})
	}
	off := func(name string) bool {
		c := app.Component(name)
		return c != nil && !c.EnabledIn(toggles)
	}
	for i := range app.Actions {
		a := &app.Actions[i]
		if app.ActionNeedsAny(a, off) {
			continue // it could only fail
		}
		if _, ok := a.HealthCheck(); ok {
			in.Checks = append(in.Checks, a.Name)
		}
		for _, t := range a.Triggers {
			if lifecycle(string(t.Type)) {
				in.Hooks = append(in.Hooks, flow.PlanHook{Action: a.Name, Trigger: string(t.Type), Component: t.ComponentName, Index: t.Index})
			}
		}
	}
	if req.PlanOnly && req.Kind != flow.KindActionRun {
		in.Checks = nil // nothing is accepted, so nothing may run
	}
	if req.Kind == flow.KindActionRun && app.Action(req.Action) == nil {
		return fault.Newf(fault.ErrInvalid, "the release has no action %q; it has: %s", req.Action, strings.Join(actionNames(app), ", "))
	}
	return nil
}

// misfit is the first problem of an override by its key.
func misfit(override appconfig.InstallComponent, c *appconfig.Component) string {
	problems := override.Problems(c)
	for _, key := range slices.Sorted(maps.Keys(problems)) {
		return key + ": " + problems[key]
	}
	return ""
}

func needsInRelease(ctx context.Context, tx *store.Tx, releaseID string) (map[string][]string, error) {
	app, err := AppOfRelease(ctx, tx.Queries, releaseID)
	if err != nil {
		return nil, err
	}
	graph, _ := appconfig.NewGraph(app)
	needs := map[string][]string{}
	for _, c := range app.Components {
		needs[c.Name] = graph.Needs(c.Name)
	}
	return needs, nil
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

func resourceKey(sandbox bool, name string) string {
	if sandbox {
		return "sandbox"
	}
	return "component/" + name
}
