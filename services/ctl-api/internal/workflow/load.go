package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/events"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// rows is one look at a workflow, in a transaction that holds the workflow's row.
type rows struct {
	now       time.Time
	workflow  db.Workflow
	install   db.Install
	steps     []db.Step
	changes   map[string]db.Change // by step id
	resources []db.Resource
	runner    *db.Runner
	state     flow.State
}

// subject is what a decision is about: a workflow, mostly with one of its steps
// and what belongs to that.
type subject struct {
	now      time.Time // of the look
	workflow db.Workflow
	install  db.Install
	runner   *db.Runner // nil when the install has none
	step     db.Step    // zero when the decision is about the workflow
	change   *db.Change // the one that the step is at; nil before the first
	resource db.Resource
}

// load locks the workflow's row and reads what flow.Next needs.
func load(ctx context.Context, tx *store.Tx, workflowID string, now time.Time) (*rows, error) {
	r := &rows{now: now, changes: map[string]db.Change{}}
	var err error
	if r.workflow, err = tx.LockWorkflow(ctx, workflowID); err != nil {
		return nil, fmt.Errorf("lock workflow: %w", err)
	}
	if r.install, err = tx.FindInstall(ctx, r.workflow.InstallID); err != nil {
		return nil, fmt.Errorf("read install: %w", err)
	}
	if r.steps, err = tx.StepsOfWorkflow(ctx, workflowID); err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	changes, err := tx.CurrentChanges(ctx, workflowID)
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	for _, c := range changes {
		r.changes[c.StepID] = c
	}
	if r.resources, err = tx.ResourcesOfInstall(ctx, r.install.ID); err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	jobs, err := tx.JobsOfWorkflow(ctx, &workflowID)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	counts, err := tx.CountStepChanges(ctx, workflowID)
	if err != nil {
		return nil, fmt.Errorf("count changes: %w", err)
	}
	stack, err := tx.NewestStack(ctx, r.install.ID)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return nil, fmt.Errorf("read stack: %w", err)
	}
	runner, err := tx.InstallRunner(ctx, r.install.ID)
	switch {
	case err == nil:
		r.runner = &runner
	case !errors.Is(err, fault.ErrNotFound):
		return nil, fmt.Errorf("read runner: %w", err)
	}
	r.state = r.assemble(jobs, counts, stack)
	return r, nil
}

// assemble turns rows into what Next looks at.
func (r *rows) assemble(jobs []db.JobsOfWorkflowRow, counts []db.CountStepChangesRow, stack db.StackVersion) flow.State {
	began := r.workflow.CreatedAt
	if r.workflow.StartedAt != nil {
		began = *r.workflow.StartedAt
	}
	s := flow.State{
		Now:             r.now,
		WorkflowState:   r.workflow.State,
		PlanOnly:        r.workflow.PlanOnly,
		ApproveAll:      r.workflow.ApproveAll || r.install.ApprovalOption == "approve_all",
		CancelRequested: r.workflow.CancelRequestedAt != nil,
		StackActive:     stack.State == "active",
		StackDeadline:   began.Add(flow.StackTime),
		RunnerDeadline:  began.Add(flow.RunnerTime),
		Locks:           locksOf(r.resources),
	}
	if r.runner != nil {
		s.RunnerID = r.runner.ID
		// Enrolling is what wakes us; the session follows, and jobs wait for it.
		s.RunnerActive = r.runner.State == "active"
	}
	s.NoMachine = r.runner == nil || r.runner.PublicKey == nil
	byID := map[string]*flow.Job{}
	runs := map[string]*flow.Job{} // the newest check job of a step
	for _, j := range jobs {
		job := &flow.Job{ID: j.ID, State: j.State, Outcome: j.Outcome, NoChange: j.NoChange, Error: j.Error, Remedy: j.Remedy, CancelRequested: j.CancelRequested}
		byID[j.ID] = job
		if j.ChangeID == nil && j.StepID != nil && !beforeRetry(r.step(*j.StepID), j.QueuedAt) {
			runs[*j.StepID] = job
		}
	}
	for _, row := range r.steps {
		step := flow.Step{
			ID: row.ID, Name: row.Name, Kind: flow.StepKind(row.Kind), ResourceID: optional.Value(row.ResourceID), Needs: row.Needs,
			State: row.State, WaitReason: optional.Value(row.WaitReason), WaitOn: optional.Value(row.WaitOn),
			MaxRetries: int(row.MaxRetries), Run: runs[row.ID],
		}
		if row.WaitDeadline != nil {
			step.WaitDeadline = *row.WaitDeadline
		}
		for _, c := range counts {
			if c.StepID != row.ID {
				continue
			}
			switch c.State {
			case flow.ChangeUncertain:
				step.Uncertain = int(c.Count)
			case flow.ChangeStale:
				step.Stale = int(c.Count)
			case flow.ChangeFailed:
				step.Failed = int(c.Count)
			}
		}
		if c, ok := r.changes[row.ID]; ok && !beforeRetry(row, c.CreatedAt) {
			change := &flow.Change{
				ID: c.ID, State: c.State, ReadOnly: flow.StepKind(row.Kind) == flow.StepForget, EffectDigest: optional.Value(c.EffectDigest), ApprovedDigest: optional.Value(c.ApprovedEffectDigest), Error: optional.Value(c.Error), Remedy: optional.Value(c.Remedy),
				Plan: byID[optional.Value(c.PlanJobID)], Apply: byID[optional.Value(c.ApplyJobID)],
			}
			if c.WaitDeadline != nil {
				change.Deadline = *c.WaitDeadline
			}
			step.Change = change
		}
		s.Steps = append(s.Steps, step)
	}
	return s
}

// locksOf says who holds the resources of an install.
func locksOf(resources []db.Resource) flow.Locks {
	l := flow.Locks{By: map[string]string{}}
	for _, res := range resources {
		if res.LockedBy != nil {
			l.By[res.ID] = *res.LockedBy
		}
		if res.Kind == "sandbox" {
			l.SandboxID = res.ID
		}
	}
	return l
}

// beforeRetry says whether something of a step was made before a person asked
// for a retry: the step begins again without it.
func beforeRetry(step db.Step, made time.Time) bool {
	return step.RetriedAt != nil && made.Before(*step.RetriedAt)
}

// step returns the row of a step of this workflow.
func (r *rows) step(id string) db.Step {
	for _, s := range r.steps {
		if s.ID == id {
			return s
		}
	}
	return db.Step{}
}

// subject is the workflow with one of its steps; none for "".
func (r *rows) subject(stepID string) subject {
	s := subject{now: r.now, workflow: r.workflow, install: r.install, runner: r.runner, step: r.step(stepID)}
	if c, ok := r.changes[stepID]; ok {
		s.change = &c
	}
	for _, res := range r.resources {
		if res.ID == optional.Value(s.step.ResourceID) {
			s.resource = res
		}
	}
	return s
}

func (s subject) runnerID() *string {
	if s.runner == nil {
		return nil
	}
	return &s.runner.ID
}

// event is one of the subject's workflow.
func (s subject) event(kind string, body events.Body) events.Event {
	return events.Event{WorkflowID: s.workflow.ID, Kind: kind, Body: body}
}
