package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/policies"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// rows is one look at a workflow, in a transaction that holds the workflow's row.
type rows struct {
	now      time.Time
	workflow ctldb.Workflow
	around   ctldb.InstallToMoveRow
	steps    []ctldb.StepsToMoveRow
	jobs     []ctldb.JobsToMoveRow
	queue    []ctldb.LockQueueRow
	toggles  toggles
	// clearance is read when a step has a change that people decide on or have.
	clearance *clearance.Clearance
	// roles are those of the install, read when an approved change needs one.
	roles roles.Known
	// gate is what the gate looks at, read when a step is at it.
	gate *flow.Gate
}

// load locks the workflow's row and reads what flow.Next needs. The lock is a
// statement of its own: what is read after it is as the worker that held the
// row before has left it. The clock is read after it too: what this look does is
// never dated before what was done while it waited.
func load(ctx context.Context, tx *database.Tx, workflowID string, now func() time.Time) (*rows, error) {
	r := &rows{}
	var err error
	if r.workflow, err = tx.LockWorkflow(ctx, workflowID); err != nil {
		return nil, fmt.Errorf("lock workflow: %w", err)
	}
	r.now = now()
	if r.around, err = tx.InstallToMove(ctx, r.workflow.InstallID); err != nil {
		return nil, fmt.Errorf("read install: %w", err)
	}
	if r.steps, r.jobs, err = readSteps(ctx, tx, workflowID, nil); err != nil {
		return nil, err
	}
	if err := r.readQueue(ctx, tx); err != nil {
		return nil, err
	}
	if err := r.readClearance(ctx, tx); err != nil {
		return nil, err
	}
	if err := r.readRoles(ctx, tx); err != nil {
		return nil, err
	}
	if err := r.readGate(ctx, tx); err != nil {
		return nil, err
	}
	r.toggles, err = togglesSince(ctx, tx, r.workflow, r.around.Install)
	return r, err
}

// hold locks the install's row, before the first move of a transaction: the moves
// after it may lock what belongs to the install in any order.
func (r *rows) hold(ctx context.Context, tx *database.Tx) (err error) {
	if _, err = tx.LockInstallRow(ctx, r.workflow.InstallID); err != nil {
		return fmt.Errorf("lock install: %w", err)
	}
	before := r.around.Install
	if r.around, err = tx.InstallToMove(ctx, r.workflow.InstallID); err != nil {
		return fmt.Errorf("read install: %w", err)
	}
	if r.around.Install.TogglesVersion != before.TogglesVersion {
		r.toggles, err = togglesSince(ctx, tx, r.workflow, r.around.Install)
	}
	return err
}

// again looks once more in the transaction that made the move d, of a step. Both rows
// are held, so the step and the locks of the install are all that it changed.
func (r *rows) again(ctx context.Context, tx *database.Tx, d flow.Decision, now time.Time) error {
	r.now = now
	steps, jobs, err := readSteps(ctx, tx, r.workflow.ID, &d.StepID)
	if err != nil {
		return err
	}
	for i := range r.steps {
		for _, row := range steps {
			if r.steps[i].Step.ID == row.Step.ID {
				r.steps[i] = row
			}
		}
	}
	r.jobs = append(slices.DeleteFunc(r.jobs, func(j ctldb.JobsToMoveRow) bool { return optional.Value(j.StepID) == d.StepID }), jobs...)
	if d.Do == flow.DoSettleChange || d.Do == flow.DoExecute {
		if r.around, err = tx.InstallToMove(ctx, r.workflow.InstallID); err != nil {
			return fmt.Errorf("read install: %w", err)
		}
	}
	if err := r.readQueue(ctx, tx); err != nil {
		return err
	}
	if err := r.readRoles(ctx, tx); err != nil {
		return err
	}
	if err := r.readGate(ctx, tx); err != nil {
		return err
	}
	return r.readClearance(ctx, tx)
}

// readSteps reads the steps of a workflow and their jobs; only one step when it is
// named.
func readSteps(ctx context.Context, tx *database.Tx, workflowID string, only *string) ([]ctldb.StepsToMoveRow, []ctldb.JobsToMoveRow, error) {
	steps, err := tx.StepsToMove(ctx, ctldb.StepsToMoveParams{WorkflowID: workflowID, StepID: only})
	if err != nil {
		return nil, nil, fmt.Errorf("read steps: %w", err)
	}
	jobs, err := tx.JobsToMove(ctx, ctldb.JobsToMoveParams{WorkflowID: &workflowID, StepID: only})
	if err != nil {
		return nil, nil, fmt.Errorf("read jobs: %w", err)
	}
	return steps, jobs, nil
}

// readQueue reads who waits for the install's resources, when a step wants one.
func (r *rows) readQueue(ctx context.Context, tx *database.Tx) (err error) {
	if r.queue = nil; !r.wantsTurn() {
		return nil
	}
	if r.queue, err = tx.LockQueue(ctx, r.workflow.InstallID); err != nil {
		return fmt.Errorf("read the queue: %w", err)
	}
	return nil
}

// wantsTurn tells whether a step has an approved change of a resource: only then
// does the queue matter.
func (r *rows) wantsTurn() bool {
	return slices.ContainsFunc(r.steps, func(row ctldb.StepsToMoveRow) bool {
		return row.Step.ResourceID != nil && row.ChangeState == string(model.ChangeApproved)
	})
}

// readClearance reads what people decided, and what holds changes, when a step has a
// change that it matters for.
func (r *rows) readClearance(ctx context.Context, tx *database.Tx) (err error) {
	if r.clearance = nil; r.free() || !r.wantsClearance() {
		return nil
	}
	r.clearance, err = clearance.Read(ctx, tx, r.workflow, r.around.Install, r.now)
	return err
}

// free tells whether changes need nobody and nothing holds them: all are approved by a
// standing answer, and there is no policy, no freeze and no pause.
func (r *rows) free() bool {
	return r.approvesAll() && !r.around.Governed && r.around.Install.PausedAt == nil
}

// approvesAll tells whether a standing answer of the workflow or the install approves
// all changes.
func (r *rows) approvesAll() bool { return r.workflow.ApproveAll || approvesAll(r.around.Install) }

// wantsClearance tells whether a step has a change that was proposed or approved.
func (r *rows) wantsClearance() bool {
	return slices.ContainsFunc(r.steps, func(row ctldb.StepsToMoveRow) bool {
		return row.ChangeState == string(model.ChangeProposed) || row.ChangeState == string(model.ChangeApproved)
	})
}

// state is the rows as flow.Next looks at them.
func (r *rows) state() flow.State {
	began := r.workflow.CreatedAt
	if r.workflow.StartedAt != nil {
		began = *r.workflow.StartedAt
	}
	s := flow.State{
		Now:             r.now,
		WorkflowState:   r.workflow.State,
		RequestedAt:     r.workflow.RequestedAt,
		PlanOnly:        r.workflow.PlanOnly,
		OnFailure:       r.workflow.OnFailure,
		ApproveAll:      r.approvesAll(),
		CancelRequested: r.workflow.CancelRequestedAt != nil,
		StackActive:     model.StackState(r.around.StackState) == model.StackActive,
		StackDeadline:   began.Add(flow.StackTime),
		RunnerID:        r.around.RunnerID,
		RunnerDeadline:  began.Add(flow.RunnerTime),
		// Enrolling is what wakes us; the session follows, and jobs wait for it.
		RunnerActive:   model.RunnerState(r.around.RunnerState) == model.RunnerActive,
		NoMachine:      r.around.RunnerKey == nil,
		MissingSecrets: r.around.MissingSecrets,
		Locks:          flow.Locks{By: map[string]string{}, SandboxID: r.around.SandboxID},
	}
	for i, id := range r.around.Held {
		s.Locks.By[id] = r.around.Holders[i]
	}
	for _, q := range r.queue {
		s.Locks.Queue = append(s.Locks.Queue, flow.Turn{ChangeID: q.ChangeID, Resource: q.ResourceID, RequestedAt: q.RequestedAt})
	}
	if r.clearance != nil {
		s.PeopleDecide, s.Hold = r.clearance.Policy.DemandsPeople(), r.clearance.Hold
	}
	jobs, checks, replaced := r.stepJobs()
	for _, row := range r.steps {
		step := stepOf(row)
		step.Unwanted = r.toggles.unwanted(row.Step)
		step.Hold = r.roleHold(row)
		if step.Kind == flow.StepGate {
			step.Gate = r.gate
		}
		step.Run, step.Replaced = checks[row.Step.ID], replaced[row.Step.ID]
		if step.Change != nil {
			step.Change.Plan, step.Change.Apply = jobs[row.PlanJobID], jobs[row.ApplyJobID]
			if r.clearance != nil && (step.Change.State == model.ChangeProposed || step.Change.State == model.ChangeApproved) {
				r.clearance.Fill(step.Change)
			}
		}
		s.Steps = append(s.Steps, step)
	}
	return s
}

// stepJobs are the jobs of steps that have not ended, by id; and by step, since its last retry, the
// newest run of a check and how many were made for a machine of before.
func (r *rows) stepJobs() (byID, checks map[string]*flow.Job, replaced map[string]int) {
	byID, checks, replaced = map[string]*flow.Job{}, map[string]*flow.Job{}, map[string]int{}
	for _, j := range r.jobs {
		job := &flow.Job{ID: j.ID, State: j.State, Outcome: j.Outcome, Reason: j.Reason, NoChange: j.NoChange, Error: j.Error, Remedy: j.Remedy, CancelRequested: j.CancelRequested}
		if !j.Overridden {
			job.PolicyDenies = j.Denied
		}
		byID[j.ID] = job
		if j.ChangeID == nil && j.StepID != nil && !beforeRetry(r.step(*j.StepID), j.QueuedAt) {
			checks[*j.StepID] = job
			if jobspec.Reason(j.Reason) == jobspec.ReasonMachineReplaced {
				replaced[*j.StepID]++
			}
		}
	}
	return byID, checks, replaced
}

// stepOf is a step with the change that it is at, without the jobs.
func stepOf(row ctldb.StepsToMoveRow) flow.Step {
	s := row.Step
	step := flow.Step{
		ID: s.ID, Name: s.Name, Kind: flow.StepKind(s.Kind), ResourceID: optional.Value(s.ResourceID), Needs: s.Needs,
		State: s.State, WaitReason: optional.Value(s.WaitReason), WaitOn: optional.Value(s.WaitOn), WaitDeadline: optional.Value(s.WaitDeadline), WaitRetryAt: optional.Value(s.WaitRetryAt),
		MaxRetries: int(s.MaxRetries), Failed: int(row.Failed), Stale: int(row.Stale), Uncertain: int(row.Uncertain), HostEnded: int(row.HostEnded),
	}
	if row.ChangeMadeAt != nil && !beforeRetry(s, *row.ChangeMadeAt) {
		step.Change = &flow.Change{
			ID: optional.Value(s.ChangeID), State: model.ChangeState(row.ChangeState), ReadOnly: step.Kind == flow.StepForget,
			EffectDigest: row.EffectDigest, ApprovedDigest: row.ApprovedDigest, Deadline: optional.Value(row.ChangeDeadline),
			Error: row.ChangeError, Remedy: row.ChangeRemedy, DeniedBy: row.DeniedBy, Then: model.DeniedThen(row.DeniedThen),
			Consent: model.ConsentState(row.Consent), ConsentText: policies.ConsentText(model.ConsentState(row.Consent), row.ConsentBy, row.ConsentWhy),
		}
	}
	return step
}

// locksOf says who holds the resources of an install.
func locksOf(resources []ctldb.Resource) flow.Locks {
	l := flow.Locks{By: map[string]string{}}
	for _, res := range resources {
		if res.LockedBy != nil {
			l.By[res.ID] = *res.LockedBy
		}
		if res.Kind == model.KindSandbox {
			l.SandboxID = res.ID
		}
	}
	return l
}

// beforeRetry says whether something of a step was made before a person asked
// for a retry: the step begins again without it.
func beforeRetry(step ctldb.Step, made time.Time) bool {
	return step.RetriedAt != nil && made.Before(*step.RetriedAt)
}

// step returns the row of a step of this workflow; zero for one that it has not.
func (r *rows) step(id string) ctldb.Step {
	for i := range r.steps {
		if r.steps[i].Step.ID == id {
			return r.steps[i].Step
		}
	}
	return ctldb.Step{}
}

// subject is what a decision is about: a workflow, mostly with one of its steps
// and what belongs to that.
type subject struct {
	now      time.Time // of the look
	workflow ctldb.Workflow
	install  ctldb.Install
	free     bool // as in rows.free
	runner   runner
	step     ctldb.Step // zero when the decision is about the workflow
	// The rest is read for acts on a change (act.go).
	change   *ctldb.Change // the one that the step is at; nil before the first
	resource ctldb.Resource
}

// runner is that of the install.
type runner struct {
	id         string  // empty when the install has none
	machineKey *string // nil before one enrolled
}

// subject is the workflow with one of its steps; none for "".
func (r *rows) subject(stepID string) subject {
	return subject{
		now: r.now, workflow: r.workflow, install: r.around.Install, free: r.free(), step: r.step(stepID),
		runner: runner{id: r.around.RunnerID, machineKey: r.around.RunnerKey},
	}
}

// event is one of the subject's workflow.
func (s subject) event(kind string, body events.Body) events.Event {
	return events.Event{WorkflowID: s.workflow.ID, Kind: kind, Body: body}
}
