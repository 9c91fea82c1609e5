package workflow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/policies"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// settleChange takes over what came of a change's jobs: the change ends, the
// resource is freed, and those who waited for it are woken.
func settleChange(ctx context.Context, tx *database.Tx, s subject, d flow.Decision) error {
	c := *s.change
	if d.ChangeState == model.ChangeDenied {
		err := tx.DenyChange(ctx, ctldb.DenyChangeParams{ID: c.ID, Error: optional.Of(d.Error), Remedy: optional.Of(d.Remedy), DeniedBy: optional.Of(d.EndedBy)})
		if err != nil {
			return err
		}
		return tell(ctx, tx, s.event(events.Change, events.Body{"change_id": c.ID, "step": s.step.Name, "state": model.ChangeDenied, "error": d.Error, "actor": d.EndedBy}))
	}
	last := c.PlanJobID
	if c.State == model.ChangeExecuting {
		last = c.ApplyJobID
	}
	res, _, err := readResult(ctx, tx.Queries, optional.Value(last))
	if err != nil {
		return err
	}
	if res.Plan != nil { // one that guardrails deny is handed in, and then refused
		if err := policies.Keep(ctx, tx, c, res.Plan); err != nil {
			return err
		}
	}
	differs := json.RawMessage(nil)
	if len(res.Differs) > 0 {
		differs = mustJSON(res.Differs)
	}
	err = tx.SettleChange(ctx, ctldb.SettleChangeParams{
		ID: c.ID, State: d.ChangeState, Result: mustJSON(res.Result), Error: optional.Of(d.Error), Remedy: optional.Of(d.Remedy), Differs: differs,
	})
	if err != nil {
		return fmt.Errorf("settle change: %w", err)
	}
	if c.State == model.ChangeExecuting {
		if err := settleResource(ctx, tx, s, applied{state: d.ChangeState, outputs: res.Outputs}); err != nil {
			return err
		}
		if err := settleActionRun(ctx, tx, c.ID, res.Result); err != nil {
			return err
		}
	}
	return tell(ctx, tx, s.event(events.Change, events.Body{
		"change_id": c.ID, "step": s.step.Name, "state": d.ChangeState, "error": d.Error, "differs": nilIfEmpty(res.Differs),
	}))
}

// applied is how an executing change ended.
type applied struct {
	state   model.ChangeState
	outputs jobspec.Outputs
}

// settleResource frees the resource that an executing change held and says what
// it is now.
func settleResource(ctx context.Context, tx *database.Tx, s subject, a applied) error {
	if s.change.ResourceID == nil {
		return letGo(ctx, tx, s)
	}
	before, err := stood(ctx, tx.Queries, s.resource)
	if err != nil {
		return err
	}
	after := resourceAfter(a.state, before)
	if err := free(ctx, tx, ctldb.SettleResourceParams{ID: *s.change.ResourceID, ChangeID: s.change.ID, State: after}); err != nil {
		return fmt.Errorf("free resource: %w", err)
	}
	if a.state == model.ChangeApplied {
		if a.outputs == nil {
			a.outputs = jobspec.Outputs{}
		}
		if err := landed(ctx, tx, s, standing{effectDigest: optional.Value(s.change.EffectDigest), outputs: a.outputs}); err != nil {
			return err
		}
	}
	return wakeNext(ctx, tx, s.workflow)
}

// letGo frees the resource that a script held.
func letGo(ctx context.Context, tx *database.Tx, s subject) error {
	if s.step.ResourceID == nil {
		return nil
	}
	if err := tx.LetGoOfResource(ctx, ctldb.LetGoOfResourceParams{ID: *s.step.ResourceID, ChangeID: s.change.ID}); err != nil {
		return fmt.Errorf("free resource: %w", err)
	}
	return wakeOthers(ctx, tx, s.workflow)
}

// wakeOthers re-evaluates the install's other open workflows: all of them,
// because one that is about to wait for the lock has not committed that yet.
func wakeOthers(ctx context.Context, tx *database.Tx, w ctldb.Workflow) error {
	open, err := tx.OpenWorkflowsOfInstall(ctx, w.InstallID)
	if err != nil {
		return err
	}
	for _, id := range open {
		if id == w.ID {
			continue
		}
		if err := tx.WakeWorkflow(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// stood is what a resource is when a change of it has done nothing.
func stood(ctx context.Context, q *ctldb.Queries, resource ctldb.Resource) (model.ResourceState, error) {
	if resource.LiveReleaseID != nil {
		return model.ResourceLive, nil
	}
	left, err := leftBehind(ctx, q, resource.InstallID)
	if err != nil || left[resource.ID] == "" {
		return model.ResourceAbsent, err
	}
	return model.ResourceFailed, nil
}

// resourceAfter is what a resource is once its change has ended so; before is
// what it is when that did nothing. An outcome that is not known leaves it unknown
// until a plan has looked.
func resourceAfter(change model.ChangeState, before model.ResourceState) model.ResourceState {
	switch change {
	case model.ChangeApplied:
		return model.ResourceLive
	case model.ChangeUncertain:
		return model.ResourceUnknown
	case model.ChangeFailed:
		return model.ResourceFailed
	}
	return before
}

// standing is what a resource stands on after a change.
type standing struct {
	effectDigest string
	outputs      jobspec.Outputs // nil keeps those it has
}

// landed writes what the resource stands on now.
func landed(ctx context.Context, tx *database.Tx, s subject, on standing) error {
	c := s.change
	if c.Kind == model.ChangeTeardown {
		if err := tx.MakeResourceAbsent(ctx, ctldb.MakeResourceAbsentParams{ID: *c.ResourceID, ChangeID: c.ID}); err != nil {
			return fmt.Errorf("make resource absent: %w", err)
		}
		return nil
	}
	p := ctldb.MakeResourceLiveParams{
		ID: *c.ResourceID, Type: s.resource.Type, ReleaseID: c.ReleaseID, RevisionID: c.RevisionID, ArtifactDigest: c.ArtifactDigest,
		InputsVersion: c.InputsVersion, EffectDigest: optional.Of(on.effectDigest), ChangeID: c.ID,
	}
	if on.outputs != nil {
		p.Outputs = mustJSON(on.outputs)
	}
	if err := tx.MakeResourceLive(ctx, p); err != nil {
		return fmt.Errorf("make resource live: %w", err)
	}
	return nil
}
