package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// stepParams is what a step's row keeps about the toggle that decides on it, the role
// that it needs, and what it looks at, as in flow.PlannedStep.
type stepParams struct {
	Toggle      string `json:"toggle,omitempty"`
	SwitchedOff bool   `json:"switched_off,omitempty"`
	Role        string `json:"role,omitempty"`
	// Gate is what a gate looks at.
	Gate *flow.GateSpec `json:"gate,omitempty"`
}

// toggles are those of an install that changed since a workflow was planned; nil
// when none did.
type toggles struct {
	app *appconfig.App
	now map[string]bool
}

// togglesSince reads the toggles when they are newer than a workflow. A preview
// keeps those that it was asked with.
func togglesSince(ctx context.Context, tx *database.Tx, w ctldb.Workflow, install ctldb.Install) (toggles, error) {
	if w.PlanOnly || w.ReleaseID == nil || w.TogglesVersion == install.TogglesVersion || w.State.Finished() {
		return toggles{}, nil
	}
	t := toggles{now: map[string]bool{}}
	if err := json.Unmarshal(install.Toggles, &t.now); err != nil {
		return t, fmt.Errorf("read toggles: %w", err)
	}
	var err error
	t.app, err = releaseview.App(ctx, tx.Queries, *w.ReleaseID)
	return t, err
}

// component is the one that decides on a step, nil when none does or nothing
// changed.
func (t toggles) component(name string) *appconfig.Component {
	if t.app == nil || name == "" {
		return nil
	}
	return t.app.Component(name)
}

// unwanted says why a step is not wanted any more; empty when it is.
func (t toggles) unwanted(step ctldb.Step) string {
	if t.app == nil || step.State != model.StepPending {
		return ""
	}
	var p stepParams
	if err := json.Unmarshal(step.Params, &p); err != nil {
		return "" // of a version that kept something else there
	}
	c := t.component(p.Toggle)
	switch {
	case c == nil || c.EnabledIn(t.now) != p.SwitchedOff:
		return ""
	case p.SwitchedOff:
		return fmt.Sprintf("component %s was switched on after this workflow was planned", c.Name)
	}
	return fmt.Sprintf("component %s was switched off after this workflow was planned", c.Name)
}

// skipStep ends a step that nobody wants any more.
func skipStep(ctx context.Context, tx *database.Tx, step ctldb.Step, why string) error {
	if err := tx.SkipStep(ctx, ctldb.SkipStepParams{ID: step.ID, Why: why}); err != nil {
		return fmt.Errorf("skip step %s: %w", step.Name, err)
	}
	return tell(ctx, tx, events.Event{WorkflowID: step.WorkflowID, Kind: events.Step, Body: events.Body{
		"step_id": step.ID, "step": step.Name, "state": model.StepSkipped, "note": why,
	}})
}

// switchedOnSince says which components were switched on after a workflow that
// deploys all of them was planned: it has not added them. Empty for none.
func switchedOnSince(ctx context.Context, tx *database.Tx, s subject) (string, error) {
	t, err := togglesSince(ctx, tx, s.workflow, s.install)
	params, perr := paramsOf(s.workflow)
	if err != nil || perr != nil || t.app == nil || !brings[flow.Kind(s.workflow.Kind)] || len(params.Components) > 0 || s.workflow.Kind == string(flow.KindInputUpdate) {
		return "", err
	}
	steps, err := tx.StepsOfWorkflow(ctx, s.workflow.ID)
	if err != nil {
		return "", fmt.Errorf("read steps: %w", err)
	}
	has := map[string]bool{}
	for _, step := range steps {
		has[step.Name] = optional.Value(step.ResourceID) != ""
	}
	var names []string
	for i := range t.app.Components {
		c := &t.app.Components[i]
		if c.Toggleable && c.EnabledIn(t.now) && !has["component/"+c.Name] {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("switched on after this workflow was planned, and not added: %s; `berth deploy %s` adds what is on", strings.Join(names, ", "), s.install.Name), nil
}
