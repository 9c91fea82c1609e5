package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/order"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// newSpec fills what all jobs of the install have in common.
func newSpec(s subject, kind jobspec.Kind, op jobspec.Operation, timeout time.Duration) jobspec.Spec {
	return jobspec.Spec{
		Version: jobspec.Version, JobID: id.New(id.Job), OrgID: s.workflow.OrgID, InstallID: s.install.ID,
		Kind: kind, Operation: op, InputsVersion: int(s.workflow.InputsVersion),
		TimeoutSeconds: int(timeout / time.Second),
	}
}

// job is one for the install's runner, with what its order says in addition to
// the spec.
type job struct {
	spec        jobspec.Spec
	actionRunID *string
	releaseID   string
	// origin is set for jobs of a change.
	origin string
	// The rest is of jobs that mutate.
	fence                         *int64
	effectDigest, planBytesDigest string
}

// dispatch stores a job with its order for the install's runner, and wakes the
// runner once it is committed.
func (e *Engine) dispatch(ctx context.Context, tx *database.Tx, s subject, j job) error {
	spec := j.spec
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("job for step %s: %w", s.step.Name, err)
	}
	if s.runner.id == "" {
		return fmt.Errorf("job for step %s: install %s has no runner", s.step.Name, s.install.ID)
	}
	signed, err := e.order(ctx, tx, s, j)
	if err != nil {
		return fmt.Errorf("order for step %s: %w", s.step.Name, err)
	}
	p := ctldb.InsertRunnerJobParams{
		ID: spec.JobID, RunnerID: s.runner.id, InstallID: &s.install.ID, StepID: &s.step.ID, WorkflowID: &s.workflow.ID,
		ChangeID: optional.Of(spec.ChangeID), ResourceID: s.step.ResourceID,
		Kind: string(spec.Kind), Operation: string(spec.Operation), Mutates: spec.Mutates(),
		Spec: signed.Spec, SignedOrder: signed.Envelope, Fence: j.fence, ActionRunID: j.actionRunID,
		TimeoutSeconds: int32(spec.TimeoutSeconds), Trace: mustJSON(telemetry.Inject(ctx)),
	}
	if err := tx.InsertRunnerJob(ctx, p); err != nil {
		return fmt.Errorf("store job for step %s: %w", s.step.Name, err)
	}
	tx.NotifyAfterCommit(model.ChannelJobs, s.runner.id)
	return tell(ctx, tx, s.event(events.Job, events.Body{"job_id": spec.JobID, "step": s.step.Name, "operation": string(spec.Operation)}))
}

// order signs what the runner is to do with the org's dispatch key.
func (e *Engine) order(ctx context.Context, tx *database.Tx, s subject, j job) (order.Signed, error) {
	key, err := e.Keys.Dispatch(ctx, tx)
	if err != nil {
		return order.Signed{}, err
	}
	draft := order.Draft{
		RunnerID: s.runner.id, MachineKey: s.runner.machineKey, OriginID: j.origin, ReleaseID: j.releaseID,
		MinRunnerVersion: e.MinRunnerVersion, Actor: s.workflow.CreatedBy,
		EffectDigest: j.effectDigest, PlanBytesDigest: j.planBytesDigest,
	}
	if j.fence != nil {
		draft.Fence = *j.fence
	}
	if draft.Actor == "" {
		draft.Actor = "ctl-api"
	}
	return order.Sign(key, j.spec, draft, s.now)
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // only our own structs and maps come here
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return raw
}
