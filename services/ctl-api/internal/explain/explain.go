// Package explain answers why something waits: it reads the rows that package why
// looks at, for any kind of id, and puts the reasons as the contract does.
package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/policies"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Answer is why something waits, and how it stands when nothing holds it.
type Answer struct {
	Name    string // of what was asked about, for people
	Stands  string // for one without reasons: "waits for nothing", "is applied"
	Reasons []why.Reason
}

// Object explains a workflow, step, change, job or run of an action, by its id, inside the
// transaction's org. ok is false for an id or a name of anything else, which is an
// install's; ErrNotFound says that there is no such object.
func Object(ctx context.Context, tx *database.Tx, ref string, now time.Time) (a Answer, ok bool, err error) {
	var read func(context.Context, *database.Tx, string, time.Time) (Answer, error)
	prefix, _, _ := strings.Cut(ref, "_")
	switch prefix {
	case id.Workflow:
		read = Workflow
	case id.Step:
		read = step
	case id.Change:
		read = change
	case id.Job:
		read = job
	case id.ActionRun:
		read = run
	default:
		return Answer{}, false, nil
	}
	a, err = read(ctx, tx, ref, now)
	if errors.Is(err, fault.ErrNotFound) {
		err = fault.Newf(fault.ErrNotFound, "there is no %s %q", nouns[prefix], ref)
	}
	return a, true, err
}

var nouns = map[string]string{id.Workflow: "workflow", id.Step: "step", id.Change: "change", id.Job: "job", id.ActionRun: "run"}

// Workflow explains a workflow with all its steps.
func Workflow(ctx context.Context, tx *database.Tx, ref string, now time.Time) (Answer, error) {
	in, err := read(ctx, tx, ref, now)
	return Answer{Name: "workflow " + ref, Stands: stands(string(in.Workflow.State), in.Workflow.State.Finished()), Reasons: why.Workflow(in)}, err
}

// stands says how something is that has no reasons to show.
func stands(state string, ended bool) string {
	if !ended {
		return "waits for nothing"
	}
	if text, ok := endings[state]; ok {
		return text
	}
	return "is " + state
}

// endings are the states that are not said as "it is applied".
var endings = map[string]string{
	"succeeded": "has succeeded", "failed": "has failed", "no_change": "has nothing to change", "uncertain": "has ended, and nobody knows how",
	"missed": "was missed", "skipped": "was skipped", "planned": "was only to be planned",
}

// read reads what explains a workflow and its parts.
func read(ctx context.Context, tx *database.Tx, workflowID string, now time.Time) (why.Input, error) {
	in := why.Input{Now: now}
	var err error
	if in.Workflow, err = tx.GetWorkflow(ctx, workflowID); err != nil {
		return in, err
	}
	install, err := installs.Find(ctx, tx, in.Workflow.InstallID)
	if err != nil {
		return in, err
	}
	in.Install = install.Name
	if in.Steps, err = tx.StepsOfWorkflow(ctx, workflowID); err != nil {
		return in, fmt.Errorf("read steps: %w", err)
	}
	if in.Jobs, err = tx.JobsOfWorkflow(ctx, &workflowID); err != nil {
		return in, fmt.Errorf("read jobs: %w", err)
	}
	if in.Runner, err = Runner(ctx, tx, install.ID); err != nil {
		return in, err
	}
	secrets, err := tx.SecretsOfInstall(ctx, install.ID)
	if err != nil {
		return in, fmt.Errorf("read secrets: %w", err)
	}
	in.MissingSecrets = why.Missing(secrets)
	if err := readQueue(ctx, tx, &in); err != nil {
		return in, err
	}
	if err := readClearance(ctx, tx, &in, install); err != nil {
		return in, err
	}
	if in.Roles, err = roles.Missing(ctx, tx.Queries, in.Steps); err != nil {
		return in, err
	}
	if err := readConsents(ctx, tx, &in); err != nil {
		return in, err
	}
	failed := func(s ctldb.Step) bool { return s.State == model.StepFailed }
	if !slices.ContainsFunc(in.Steps, failed) {
		return in, nil
	}
	changes, err := tx.CurrentChanges(ctx, workflowID)
	in.Superseded, in.Denied = map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		in.Superseded[c.StepID], in.Denied[c.StepID] = c.State == model.ChangeSuperseded, c.State == model.ChangeDenied
	}
	return in, err
}

// readClearance reads what holds changes and how votes stand, where a step waits for that.
func readClearance(ctx context.Context, tx *database.Tx, in *why.Input, install ctldb.Install) error {
	waits := func(s ctldb.Step) bool {
		reason := optional.Value(s.WaitReason)
		return s.State == model.StepWaiting && (reason == model.WaitDecision || reason == model.WaitFreeze || reason == model.WaitPaused)
	}
	if !slices.ContainsFunc(in.Steps, waits) {
		return nil
	}
	now, err := clearance.Read(ctx, tx, in.Workflow, install, in.Now)
	if err != nil {
		return err
	}
	in.Hold, in.Approvers, in.Votes = now.Hold, now.Policy.Who(), map[string]string{}
	for _, s := range in.Steps {
		id := optional.Value(s.ChangeID)
		if of := now.Case(id); waits(s) && (of.Policy.DemandsPeople() || len(of.Votes) > 0) {
			in.Votes[id] = of.Says()
		}
	}
	return nil
}

// readConsents reads how the customer's consent stands, where a step waits for it.
func readConsents(ctx context.Context, tx *database.Tx, in *why.Input) error {
	in.Consents = map[string]string{}
	for _, s := range in.Steps {
		if s.State != model.StepWaiting || optional.Value(s.WaitReason) != model.WaitConsent || s.ChangeID == nil {
			continue
		}
		rows, err := tx.ConsentOfChange(ctx, *s.ChangeID)
		if err != nil {
			return fmt.Errorf("read consent: %w", err)
		}
		for _, c := range rows {
			in.Consents[c.ChangeID] = policies.ConsentText(c.State, strings.Join(c.AnsweredBy, ", "), c.Why)
		}
	}
	return nil
}

// readQueue reads who holds and who wants the install's resources, where a step waits for one.
func readQueue(ctx context.Context, tx *database.Tx, in *why.Input) error {
	for _, step := range in.Steps {
		if step.State != model.StepWaiting || optional.Value(step.WaitReason) != model.WaitLock {
			continue
		}
		rows, err := tx.ResourcesOfInstall(ctx, in.Workflow.InstallID)
		if err != nil {
			return fmt.Errorf("read resources: %w", err)
		}
		for _, r := range rows {
			if r.Kind == model.KindSandbox {
				in.Locks.SandboxID = r.ID
			}
		}
		if in.Locks.Holders, err = tx.LockHolders(ctx, in.Workflow.InstallID); err != nil {
			return fmt.Errorf("read holders: %w", err)
		}
		if in.Locks.Queue, err = tx.LockQueue(ctx, in.Workflow.InstallID); err != nil {
			return fmt.Errorf("read the queue: %w", err)
		}
		return nil
	}
	return nil
}

// Runner reads the runner of an install; nil for none.
func Runner(ctx context.Context, tx *database.Tx, installID string) (*ctldb.Runner, error) {
	runner, err := tx.InstallRunner(ctx, installID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	return &runner, err
}

func step(ctx context.Context, tx *database.Tx, ref string, now time.Time) (Answer, error) {
	row, err := tx.GetStep(ctx, ref)
	if err != nil {
		return Answer{}, err
	}
	in, err := read(ctx, tx, row.WorkflowID, now)
	ended := row.State == model.StepSucceeded || row.State == model.StepSkipped || row.State == model.StepCancelled
	return Answer{Name: "step " + row.Name, Stands: stands(string(row.State), ended), Reasons: why.Step(in, ref)}, err
}

// change is what its step waits for, while it is that step's present change.
func change(ctx context.Context, tx *database.Tx, ref string, now time.Time) (Answer, error) {
	row, err := tx.GetChange(ctx, ref)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Name: "change " + ref, Stands: stands(string(row.State), !row.State.Open())}
	in, err := read(ctx, tx, row.WorkflowID, now)
	if err != nil {
		return a, err
	}
	for _, s := range in.Steps {
		present := s.ID == row.StepID && optional.Value(s.ChangeID) == ref
		if present && (row.State.Open() || s.State == model.StepFailed) {
			a.Reasons = why.Step(in, s.ID)
		}
	}
	return a, nil
}

// job explains a job of a step, or one of a build, which only those see who see builds.
func job(ctx context.Context, tx *database.Tx, ref string, now time.Time) (Answer, error) {
	row, err := tx.JobToExplain(ctx, ref)
	if err != nil {
		return Answer{}, err
	}
	if row.Runner.InstallID == nil && !auth.PrincipalOf(ctx).Scope(auth.AppsRead).Everywhere {
		return Answer{}, fault.ErrNotFound
	}
	a := Answer{Name: "job " + ref, Stands: stands(string(row.State), row.State.Ended())}
	a.Reasons = why.Job(why.Input{Runner: &row.Runner, Now: now}, "the "+row.Operation+" of job "+ref, ctldb.JobsOfWorkflowRow{
		ID: row.ID, StepID: row.StepID, Operation: row.Operation, Mutates: row.Mutates, State: row.State, Attempt: row.Attempt, QueuedAt: row.QueuedAt,
		LeasedAt: row.LeasedAt, TimeoutSeconds: row.TimeoutSeconds,
	})
	return a, nil
}

// run explains a run of an action: by the step of the workflow that it is for or, of the
// runner's own schedule, by the runner.
func run(ctx context.Context, tx *database.Tx, ref string, now time.Time) (Answer, error) {
	rows, err := tx.ListActionRuns(ctx, ctldb.ListActionRunsParams{ID: &ref, Most: 1})
	if err != nil {
		return Answer{}, err
	}
	if len(rows) == 0 {
		return Answer{}, fault.ErrNotFound
	}
	row := rows[0].ActionRun
	open := row.State == model.RunQueued || row.State == model.RunRunning
	a := Answer{Name: "run " + ref, Stands: stands(string(row.State), !open)}
	if row.WorkflowID == nil {
		in := why.Input{Now: now}
		if in.Runner, err = Runner(ctx, tx, row.InstallID); err == nil {
			a.Reasons = why.Scheduled(in, row)
		}
		return a, err
	}
	in, err := read(ctx, tx, *row.WorkflowID, now)
	if err != nil || !open {
		return a, err
	}
	a.Reasons = ofRun(in, row)
	return a, nil
}

// ofRun finds the step of a run: that of its change, of its job, or of its action.
func ofRun(in why.Input, run ctldb.ActionRun) []why.Reason {
	for _, j := range in.Jobs {
		if optional.Value(j.ActionRunID) == run.ID && j.StepID != nil {
			return why.Step(in, *j.StepID)
		}
	}
	for _, s := range in.Steps {
		if run.ChangeID != nil && optional.Value(s.ChangeID) == *run.ChangeID || run.ChangeID == nil && optional.Value(s.Action) == run.Action {
			return why.Step(in, s.ID)
		}
	}
	return why.Workflow(in)
}
