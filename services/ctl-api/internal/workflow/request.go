package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/destruction"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Request asks for a workflow.
type Request struct {
	InstallID string
	Kind      flow.Kind
	// Release is an id or a number; empty takes the newest (provision, deploy)
	// or the one that the install has (all other kinds).
	ReleaseID  string
	Components []string // deploy: only these, empty means all; teardown: these; remove_orphans: only these
	// WithDependents and WithoutComponents are as in flow.PlanInput.
	WithDependents, WithoutComponents bool
	// Moved says which inputs and overrides changed since a version of the inputs
	// that resources stand on, by that version; 0 for those that stand on none. For
	// input_update.
	Moved  map[int32]flow.Moved
	Action string // action_run
	// RunnerVersion is what a runner_update goes to, and ControlPlane the version that it
	// has to fit.
	RunnerVersion, ControlPlane string
	Inputs                      map[string]string
	Script                      *orders.Script // run_script
	PlanOnly                    bool
	// InputsVersion plans with inputs that are not in force; 0 takes those that are.
	// Only with PlanOnly, and for a rollback.
	InputsVersion int32
	// Rollback says what a rollback goes back to; nil for every other kind.
	Rollback *Rollback
	// Remedy is the check that the action is to heal, of an action_run that nobody asked for
	// but the app.
	Remedy string
	// RoleSwitch is what the customer switched; nil for every kind but role_switch.
	RoleSwitch *roles.Switch
	// Toggles are those to plan with; nil takes those of the install. Only with
	// PlanOnly.
	Toggles map[string]bool
	// Role to run under instead of those that the app says; refused for now.
	Role       string
	ApproveAll bool
	OnFailure  model.OnFailure // empty for FailureStops
	// Hold is how long the install has to be healthy before the workflow is done; nil takes
	// what the install says, and zero what the app says alone.
	Hold *time.Duration
	// Confirm is the install's name, when the workflow removes something.
	Confirm string
	Actor   string
}

// ReleaseRef names a release.
type ReleaseRef struct {
	ID     string `json:"id"`
	Number int32  `json:"number"`
}

// Rollback is what a rollback goes back to, as its row keeps it, or what one would
// that is offered.
type Rollback struct {
	From   ReleaseRef `json:"from"` // what it gets away from
	To     ReleaseRef `json:"to"`
	Inputs int32      `json:"inputs"` // the version whose values come back
	// Changed are the inputs that get another value, Overrides the components for
	// which what the install overrides changes.
	Changed   []string `json:"changed,omitempty"`
	Overrides []string `json:"overrides,omitempty"`
	// Components are those that it names, none for all; of an offer, what the failed
	// workflow changed.
	Components []string `json:"components,omitempty"`
	Stays      []string `json:"stays,omitempty"` // components that the release does not have
	// SandboxMoved: the sandbox was changed since.
	SandboxMoved bool   `json:"sandbox_moved,omitempty"`
	Answers      string `json:"answers,omitempty"`   // the workflow whose failure it answers
	ByItself     bool   `json:"by_itself,omitempty"` // nobody asked for it but the app
}

// requestParams is what a workflow's row keeps of its request.
type requestParams struct {
	Components []string `json:"components,omitempty"`

	WithDependents    bool `json:"with_dependents,omitempty"`
	WithoutComponents bool `json:"without_components,omitempty"`

	Action  string            `json:"action,omitempty"`
	Inputs  map[string]string `json:"inputs,omitempty"`
	Toggles map[string]bool   `json:"toggles,omitempty"` // of a preview

	Rollback *Rollback `json:"rollback,omitempty"`

	Script        *orders.Script `json:"script,omitempty"`
	RoleSwitch    *roles.Switch  `json:"role_switch,omitempty"`
	Remedy        string         `json:"remedy,omitempty"`
	RunnerVersion string         `json:"runner_version,omitempty"`
	ControlPlane  string         `json:"control_plane,omitempty"`
}

// RollbackOf is what a rollback goes back to; nil for a workflow of another kind.
func RollbackOf(w ctldb.Workflow) (*Rollback, error) {
	p, err := paramsOf(w)
	return p.Rollback, err
}

// ComponentsOf are the components that a workflow was asked for; none for all.
func ComponentsOf(w ctldb.Workflow) ([]string, error) {
	p, err := paramsOf(w)
	return p.Components, err
}

func (r Request) params() requestParams {
	return requestParams{
		Components: r.Components, WithDependents: r.WithDependents, WithoutComponents: r.WithoutComponents,
		Action: r.Action, Inputs: r.Inputs, Toggles: r.Toggles, Rollback: r.Rollback, Script: r.Script, RoleSwitch: r.RoleSwitch, Remedy: r.Remedy,
		RunnerVersion: r.RunnerVersion, ControlPlane: r.ControlPlane,
	}
}

// paramsOf reads what a workflow's row keeps of its request.
func paramsOf(w ctldb.Workflow) (requestParams, error) {
	var p requestParams
	if err := json.Unmarshal(w.Params, &p); err != nil {
		return p, fmt.Errorf("read params of workflow %s: %w", w.ID, err)
	}
	return p, nil
}

// Start makes a workflow with its steps and wakes the engine, all in the
// caller's transaction. The install's row is locked by it.
//
// Errors: ErrConflict when the install cannot have such a workflow now,
// ErrInvalid when the request names what is not there or not supported yet, or
// removes something and does not confirm it.
func Start(ctx context.Context, tx *database.Tx, req Request) (string, error) {
	install, err := tx.LockInstallRow(ctx, req.InstallID)
	if err != nil {
		return "", fmt.Errorf("lock install: %w", err)
	}
	if err := mayStart(install, req.Kind); err != nil {
		return "", err
	}
	if (req.Kind == flow.KindRoleSwitch) != (req.RoleSwitch != nil) {
		return "", fault.With(fault.Newf(fault.ErrInvalid, "a role_switch is started by the customer's switch of a role, and by nothing else"),
			fault.Remedy("run one of its actions: `berth actions run %s ACTION`", install.Name))
	}
	if req.InputsVersion != 0 {
		if !req.PlanOnly && req.Rollback == nil {
			return "", fault.Newf(fault.ErrInvalid, "only a preview takes inputs that are not set yet: set them first")
		}
		install.InputsVersion = req.InputsVersion
	}
	if req.Toggles != nil {
		if !req.PlanOnly {
			return "", fault.Newf(fault.ErrInvalid, "only a preview takes toggles that are not set yet: set them first")
		}
		install.Toggles = mustJSON(req.Toggles)
	}
	if req.Kind == flow.KindRunnerUpdate {
		if err := mayUpdate(ctx, tx, req); err != nil {
			return "", err
		}
	}
	if req.ApproveAll && !req.PlanOnly {
		if err := refuseApproveAll(ctx, tx, install.ID); err != nil {
			return "", err
		}
	}
	releaseID, err := pinRelease(ctx, tx, install, req)
	if err != nil {
		return "", err
	}
	if req.Role != "" {
		return "", refuseRole(ctx, tx, releaseID, req.Role)
	}
	in, resources, err := gather(ctx, tx, basis{install: install, releaseID: releaseID, Request: req})
	if err != nil {
		return "", err
	}
	steps, err := flow.Plan(in)
	if err != nil {
		return "", err
	}
	if err := confirmed(req, install.Name, steps); err != nil {
		return "", err
	}
	row, err := tx.InsertWorkflow(ctx, ctldb.InsertWorkflowParams{
		ID: id.New(id.Workflow), InstallID: install.ID, Kind: string(req.Kind), ReleaseID: optional.Of(releaseID), InputsVersion: install.InputsVersion,
		TogglesVersion: install.TogglesVersion, PlanOnly: req.PlanOnly, ApproveAll: req.ApproveAll, OnFailure: cmp.Or(req.OnFailure, model.FailureStops), Params: mustJSON(req.params()),
		Trace: mustJSON(telemetry.Inject(ctx)), CreatedBy: req.Actor,
	})
	if err != nil {
		return "", fmt.Errorf("insert workflow: %w", err)
	}
	for i, s := range steps {
		resource, err := resourceOf(s, resources)
		if err != nil {
			return "", err
		}
		err = tx.InsertStep(ctx, ctldb.InsertStepParams{
			ID: id.New(id.Step), WorkflowID: row.ID, InstallID: install.ID, Idx: int32(i), Name: s.Name, Kind: string(s.Kind), ResourceID: resource,
			Action: optional.Of(s.Action), Needs: append([]string{}, s.Needs...), Reason: s.Reason, Params: mustJSON(stepParams{s.Toggle, s.SwitchedOff, s.Role, s.Gate}), MaxRetries: int32(s.MaxRetries),
		})
		if err != nil {
			return "", fmt.Errorf("insert step %s: %w", s.Name, err)
		}
	}
	if err := events.Append(ctx, tx, events.Event{WorkflowID: row.ID, Kind: events.Workflow, Body: events.Body{"state": model.WorkflowQueued, "kind": req.Kind}}); err != nil {
		return "", err
	}
	return row.ID, tx.WakeWorkflow(ctx, row.ID)
}

// confirmed refuses a workflow that removes something without the install's name.
// Its steps stay what they are now, so one confirmation is for all of it.
func confirmed(req Request, install string, steps []flow.PlannedStep) error {
	deed := destruction.Deed{What: fmt.Sprintf("the %s of install %s", strings.ReplaceAll(string(req.Kind), "_", " "), install), Name: install, Goes: flow.Removes(steps)}
	if req.PlanOnly || !removes[req.Kind] && len(deed.Goes) == 0 {
		return nil
	}
	return deed.Confirmed(req.Confirm)
}

// removes are the kinds that are for removing something.
var removes = map[flow.Kind]bool{
	flow.KindTeardown: true, flow.KindTeardownAll: true, flow.KindRemoveOrphans: true, flow.KindDeprovisionSandbox: true, flow.KindDeprovision: true,
}

// mayStart says which kinds an install may have in its state.
func mayStart(install ctldb.Install, kind flow.Kind) error {
	switch {
	case install.State == model.InstallForgotten:
		return fault.Newf(fault.ErrConflict, "install %q is forgotten", install.Name)
	case kind == flow.KindProvision || kind == flow.KindDeprovision:
		return nil
	case install.State == model.InstallNew && (kind == flow.KindSyncSecrets || kind == flow.KindReprovision || kind == flow.KindReprovisionSandbox || kind == flow.KindInputUpdate || kind == flow.KindToggle || kind == flow.KindRollback):
		return fault.With(fault.Newf(fault.ErrConflict, "install %q was never provisioned", install.Name), fault.Code("never_provisioned"),
			fault.Remedy("provision it: `berth installs provision %s`", install.Name))
	case install.State == model.InstallDeprovisioned:
		return fault.Newf(fault.ErrConflict, "install %q is deprovisioned; provision it first", install.Name)
	}
	return nil
}

// pinRelease says which release the workflow stands on from beginning to end.
func pinRelease(ctx context.Context, tx *database.Tx, install ctldb.Install, req Request) (string, error) {
	switch {
	case req.Kind == flow.KindRunnerUpdate:
		return "", nil // it is about no release of the app
	case req.ReleaseID != "":
		return req.ReleaseID, nil
	}
	if req.Kind != flow.KindProvision && req.Kind != flow.KindDeploy && install.ReleaseID != nil {
		return *install.ReleaseID, nil
	}
	newest, err := tx.FindReleaseOfApp(ctx, ctldb.FindReleaseOfAppParams{AppID: install.AppID})
	if errors.Is(err, fault.ErrNotFound) {
		if removes[req.Kind] {
			return "", nil // nothing was ever deployed
		}
		return "", fault.Newf(fault.ErrConflict, "the app has no release yet: wait until its builds are done (`berth builds`), or sync it")
	}
	if err != nil {
		return "", fmt.Errorf("find newest release: %w", err)
	}
	return newest.ID, nil
}

// resourceOf is the resource that a step is about; nil for a step that is about
// none.
func resourceOf(s flow.PlannedStep, resources map[string]ctldb.Resource) (*string, error) {
	if s.Resource == "" {
		return nil, nil
	}
	kind := model.KindComponent
	switch {
	case s.Sandbox:
		kind = model.KindSandbox
	case s.Copies:
		kind = model.KindSecrets
	}
	resource, ok := resources[resourceKey(kind, s.Resource)]
	if !ok {
		return nil, fmt.Errorf("step %s: the install has no resource %q", s.Name, s.Resource)
	}
	return &resource.ID, nil
}
