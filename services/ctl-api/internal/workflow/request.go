package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/destruction"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
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
	// or the one that the install has (action_run, deprovision).
	ReleaseID  string
	Components []string // deploy: only these; empty means all
	Action     string   // action_run
	Inputs     map[string]string
	PlanOnly   bool
	// InputsVersion plans with inputs that are not in force; 0 takes those that are.
	// Only with PlanOnly.
	InputsVersion int32
	// Toggles are those to plan with; nil takes those of the install. Only with
	// PlanOnly.
	Toggles map[string]bool
	// Role to run under instead of those that the app says; refused for now.
	Role       string
	ApproveAll bool
	// Confirm is the install's name, when the workflow removes something.
	Confirm string
	Actor   string
}

// requestParams is what a workflow's row keeps of its request.
type requestParams struct {
	Components []string          `json:"components,omitempty"`
	Action     string            `json:"action,omitempty"`
	Inputs     map[string]string `json:"inputs,omitempty"`
	Toggles    map[string]bool   `json:"toggles,omitempty"` // of a preview
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
	if req.InputsVersion != 0 {
		if !req.PlanOnly {
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
		TogglesVersion: install.TogglesVersion, PlanOnly: req.PlanOnly, ApproveAll: req.ApproveAll, Params: mustJSON(requestParams{req.Components, req.Action, req.Inputs, req.Toggles}),
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
			Action: optional.Of(s.Action), Needs: append([]string{}, s.Needs...), Reason: s.Reason, Params: mustJSON(struct{}{}), MaxRetries: int32(s.MaxRetries),
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
	deed := destruction.Deed{What: fmt.Sprintf("the %s of install %s", req.Kind, install), Name: install, Goes: flow.Removes(steps)}
	if req.PlanOnly || req.Kind != flow.KindDeprovision && len(deed.Goes) == 0 {
		return nil
	}
	return deed.Confirmed(req.Confirm)
}

// mayStart says which kinds an install may have in its state.
func mayStart(install ctldb.Install, kind flow.Kind) error {
	switch {
	case install.State == model.InstallForgotten:
		return fault.Newf(fault.ErrConflict, "install %q is forgotten", install.Name)
	case kind == flow.KindProvision || kind == flow.KindDeprovision:
		return nil
	case install.State == model.InstallDeprovisioned:
		return fault.Newf(fault.ErrConflict, "install %q is deprovisioned; provision it first", install.Name)
	}
	return nil
}

// pinRelease says which release the workflow stands on from beginning to end.
func pinRelease(ctx context.Context, tx *database.Tx, install ctldb.Install, req Request) (string, error) {
	if req.ReleaseID != "" {
		return req.ReleaseID, nil
	}
	if (req.Kind == flow.KindActionRun || req.Kind == flow.KindDeprovision) && install.ReleaseID != nil {
		return *install.ReleaseID, nil
	}
	newest, err := tx.FindReleaseOfApp(ctx, ctldb.FindReleaseOfAppParams{AppID: install.AppID})
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

// resourceOf is the resource that a step is about; nil for a step that is about
// none.
func resourceOf(s flow.PlannedStep, resources map[string]ctldb.Resource) (*string, error) {
	if s.Resource == "" {
		return nil, nil
	}
	resource, ok := resources[resourceKey(s.Sandbox, s.Resource)]
	if !ok {
		return nil, fmt.Errorf("step %s: the install has no resource %q", s.Name, s.Resource)
	}
	return &resource.ID, nil
}
