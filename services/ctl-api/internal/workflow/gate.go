package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// hold is how long the install has to be healthy before the workflow is done, because
// somebody says so who is not the app.
func (b basis) hold() time.Duration {
	if b.Hold != nil {
		return *b.Hold
	}
	return time.Duration(optional.Value(b.install.HealthHoldSeconds)) * time.Second
}

// withoutGate takes the gate out of a workflow that only plans.
func withoutGate(in *flow.PlanInput) {
	in.Hold = 0
	for i := range in.Components {
		in.Components[i].Gate = false
	}
}

// readGate reads what the gate looks at, when a step is at it.
func (r *rows) readGate(ctx context.Context, tx *database.Tx) error {
	r.gate = nil
	at := slices.IndexFunc(r.steps, func(row ctldb.StepsToMoveRow) bool {
		return flow.StepKind(row.Step.Kind) == flow.StepGate && (row.Step.State == model.StepRunning || row.Step.State == model.StepWaiting)
	})
	if at < 0 {
		return nil
	}
	step := r.steps[at].Step
	spec, err := gateOf(step)
	if err != nil {
		return err
	}
	r.gate = &flow.Gate{Hold: time.Duration(spec.HoldSeconds) * time.Second, Began: r.now}
	for _, at := range []*time.Time{step.StartedAt, step.RetriedAt} {
		if at != nil && (r.gate.Began.Equal(r.now) || at.After(r.gate.Began)) {
			r.gate.Began = *at
		}
	}
	names, err := r.sources(ctx, tx, spec)
	if err != nil {
		return err
	}
	known, err := tx.GateChecks(ctx, ctldb.GateChecksParams{InstallID: r.workflow.InstallID, Names: names})
	if err != nil {
		return fmt.Errorf("read checks: %w", err)
	}
	for _, name := range names {
		source := flow.GateSource{Name: name, Verdict: model.Unknown}
		if i := slices.IndexFunc(known, func(k ctldb.GateChecksRow) bool { return k.Name == name }); i >= 0 {
			k := known[i]
			source.Verdict, source.Since, source.Last, source.Good, source.Why = k.Verdict, k.Since, k.EndedAt, k.Good, k.Error
		}
		r.gate.Sources = append(r.gate.Sources, source)
	}
	return nil
}

// gateOf is what the step of a gate looks at.
func gateOf(step ctldb.Step) (flow.GateSpec, error) {
	var p stepParams
	if err := json.Unmarshal(step.Params, &p); err != nil {
		return flow.GateSpec{}, fmt.Errorf("read what gate %s looks at: %w", step.ID, err)
	}
	if p.Gate == nil {
		return flow.GateSpec{}, nil
	}
	return *p.Gate, nil
}

// HeldBack names the components whose deploy the gate of a workflow held back, when it failed:
// they were deployed, and what shows their health was not good.
func HeldBack(ctx context.Context, tx *database.Tx, workflowID string) ([]string, error) {
	steps, err := tx.StepsOfWorkflow(ctx, workflowID)
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	for _, step := range steps {
		if flow.StepKind(step.Kind) == flow.StepGate && step.State == model.StepFailed {
			spec, err := gateOf(step)
			return spec.Holds, err
		}
	}
	return nil, nil
}

// sources are the names of the checks behind a gate: of the actions, and of the probes of
// those components that this workflow did deploy.
func (r *rows) sources(ctx context.Context, tx *database.Tx, spec flow.GateSpec) ([]string, error) {
	names := append([]string{}, spec.Checks...)
	resources, err := tx.ResourcesOfInstall(ctx, r.workflow.InstallID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	for _, res := range resources {
		if res.Kind != model.KindComponent || res.State != model.ResourceLive || !slices.Contains(spec.Components, res.Name) {
			continue
		}
		deployed := slices.ContainsFunc(r.steps, func(row ctldb.StepsToMoveRow) bool {
			return optional.Value(row.Step.ResourceID) == res.ID && row.Step.State == model.StepSucceeded
		})
		if deployed {
			names = append(names, jobspec.ProbePrefix+res.Name)
		}
	}
	return names, nil
}
