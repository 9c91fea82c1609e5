// Package why explains, for people, what a workflow or an install waits for or
// stumbled over, on whom it waits, and the command that ends it. It only looks at
// rows that others have read.
package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Reason is one thing that a workflow waits for or stumbled over.
type Reason struct {
	What   string // for people: `component "api"`
	ID     string
	Code   Code
	Reason string
	Who    Who
	On     string // who can end it, for people
	// WokenBy is what makes the control plane look again.
	WokenBy  Waker
	Deadline *time.Time
	RetryAt  *time.Time
	Unblock  string // the command that ends it
	// Holders have what it waits for, and Queue are all who wait for that, the next one
	// first: of a wait for a lock.
	Holders, Queue []Turn
}

// Input is what Workflow looks at.
type Input struct {
	Workflow ctldb.Workflow
	Install  string // its name
	Steps    []ctldb.Step
	Jobs     []ctldb.JobsOfWorkflowRow
	Runner   *ctldb.Runner
	// Superseded are the steps that failed because a newer request
	// replaced their change, by id.
	Superseded map[string]bool
	// Denied are those whose change was denied, by id.
	Denied map[string]bool
	// MissingSecrets are those of the install that need a value and have none.
	MissingSecrets []string
	Locks          Locks
	// Roles says, by step, in which way the role of its action is missing.
	Roles map[string]string
	// Consents say, by change, how the customer's consent stands to those that wait for it.
	Consents map[string]string
	// Hold is what keeps its changes from being carried out; nil for nothing.
	Hold *flow.Hold
	// Votes say of changes that wait for a decision how that stands, and Approvers whose
	// approvals count; empty where anybody's single answer is enough.
	Votes     map[string]string
	Approvers string
	Now       time.Time
}

// OfflineAfter is how long a runner may be silent before it is called offline.
// It is written every 15 s while the runner polls.
const OfflineAfter = 2 * time.Minute

// Workflow explains everything that is blocking a workflow. It is empty for
// one that succeeded; every other state that is not final has a reason, which a
// test holds.
func Workflow(in Input) []Reason {
	var out []Reason
	for _, step := range in.Steps {
		switch step.State {
		case model.StepWaiting:
			out = append(out, in.waitingReason(step))
		case model.StepFailed:
			out = append(out, in.failedReason(step))
		case model.StepRunning:
			out = append(out, in.runningReason(step))
		}
	}
	if len(out) == 0 && !in.Workflow.State.Finished() {
		out = append(out, Reason{
			What: "workflow " + in.Workflow.ID, ID: in.Workflow.ID, Code: CodeControlPlane, Reason: "it is about to be looked at", Who: ControlPlane, On: "ctl-api", WokenBy: WakeQueue,
		})
	}
	return out
}

// NotAccepted explains why the checks of a live install do not run: it is
// older than the acceptance of releases, so its runner has accepted no script
// yet. scripts is how many its release brings.
func NotAccepted(install ctldb.Install, scripts int, accepted bool) []Reason {
	if install.State != model.InstallLive || scripts == 0 || accepted {
		return nil
	}
	return []Reason{{
		What: "scripts of " + install.Name, ID: install.ID, Code: CodeNotAccepted, Who: Operator, On: "operator", WokenBy: WakeRequest,
		Reason:  "its runner has not accepted the scripts of its release yet, so its checks do not run",
		Unblock: "berth deploy " + install.Name,
	}}
}

// failedReason says why a step failed. One that gave way to a newer request needs
// nobody: its work is done there.
func (in Input) failedReason(step ctldb.Step) Reason {
	r := Reason{What: step.Name, ID: step.ID, Reason: cmp.Or(optional.Value(step.Error), "it failed"), On: "operator", Unblock: "berth retry " + in.nameOf(step)}
	r.is(facts{CodeFailed, Operator, WakeRequest})
	if in.Denied[step.ID] {
		r.Code = CodeDenied
	}
	if in.Superseded[step.ID] {
		r.is(facts{CodeSuperseded, Nobody, WakeRequest})
		r.On, r.Unblock = "nobody", ""
	}
	return r
}

// Held says why the runner takes none of a workflow's queued jobs, for people; ""
// when none is queued, or it is about to take it.
func Held(in Input) string {
	for _, j := range in.Jobs {
		if j.State != model.JobQueued || in.Workflow.State.Finished() {
			continue
		}
		problem := in.problem()
		switch {
		case in.Runner != nil && switchHolds(*in.Runner, j.Mutates):
			return SwitchText(*in.Runner)
		case in.offline():
			return "the runner is offline"
		case problem != "":
			return problem
		}
	}
	return ""
}

// nameOf is what commands call a step: INSTALL/COMPONENT or INSTALL/ACTION, and the
// install for a step that is about neither.
func (in Input) nameOf(step ctldb.Step) string {
	part := optional.Value(step.Action)
	if step.ResourceID != nil {
		part = strings.TrimPrefix(step.Name, "component/")
	}
	if part == "" {
		return in.Install
	}
	return in.Install + "/" + part
}

// toApprove is what commands call the change that a step waits for: what it is
// about or, when it has no name of its own and others wait with it, its id.
func (in Input) toApprove(step ctldb.Step) string {
	decision := func(s ctldb.Step) bool {
		return s.State == model.StepWaiting && optional.Value(s.WaitReason) == model.WaitDecision
	}
	if decision(step) && step.ResourceID != nil {
		return in.nameOf(step)
	}
	for _, other := range in.Steps {
		if decision(other) && optional.Value(other.WaitOn) != optional.Value(step.WaitOn) {
			return optional.Value(step.WaitOn)
		}
	}
	return in.Install
}

func (in Input) waitingReason(step ctldb.Step) Reason {
	r := Reason{What: step.Name, ID: step.ID, On: optional.Value(step.WaitOn), Deadline: step.WaitDeadline, RetryAt: step.WaitRetryAt}
	switch optional.Value(step.WaitReason) {
	case model.WaitDecision:
		r.is(facts{CodeDecision, Approver, WakeDecision})
		r.ID, r.On = optional.Value(step.WaitOn), "an approver"
		r.Reason, r.Unblock = "its change is planned and needs a decision", "berth approve "+in.toApprove(step)
		if flow.StepKind(step.Kind) == flow.StepAccept {
			r.Reason = "the release brings scripts that this install has not accepted yet; approving any change of the workflow shows and covers them too"
		}
		if votes := in.Votes[r.ID]; votes != "" {
			r.Reason, r.On = r.Reason+": "+votes, in.Approvers
		}
	case model.WaitFreeze, model.WaitPaused:
		in.held(step, &r)
	case model.WaitRoleOff, model.WaitRoleUnknown:
		in.roleMissing(step, &r)
	case model.WaitConsent:
		r.is(facts{CodeConsent, Customer, WakeCustomer})
		r.ID, r.On = optional.Value(step.ChangeID), "the customer"
		r.Reason = "its change is approved, and " + cmp.Or(in.Consents[r.ID], "the customer was asked; it is about to be looked at again")
		r.Unblock = "the customer runs, on the runner's machine: berth-runner approve " + r.ID
	case model.WaitRelease:
		r.is(facts{CodeRelease, Approver, WakeDecision})
		r.Reason, r.Unblock = "it is ready, and waits until the release is accepted", "berth approve "+in.toApprove(step)
	case model.WaitLock:
		in.locked(step, &r)
	case model.WaitStack:
		r.is(facts{CodeStack, Customer, WakeCustomer})
		r.Reason, r.Unblock = "the customer has not applied the stack yet", "apply the stack in the customer's account; for a cluster `berth installs stack "+in.Install+" --new` prints how"
	case model.WaitRunner:
		r.is(facts{CodeEnrolment, TheRunner, WakeRunner})
		r.Reason, r.Unblock = "the install's runner has not enrolled yet", "start the runner, or read its log"
	case model.WaitHealth:
		r.is(facts{CodeHealth, TheRunner, WakeRunner})
		r.Reason = "it is deployed, and is done when it was healthy for a while; not yet: " + optional.Value(step.WaitOn)
		r.Unblock = "berth installs health " + in.Install + " shows the checks; it ends by itself"
	case model.WaitSecret:
		r.is(facts{CodeSecret, Customer, WakeCustomer})
		r.Reason, r.Unblock = in.missingSecrets()
	default:
		r.is(facts{CodeControlPlane, ControlPlane, WakeQueue})
		r.Reason = string(optional.Value(step.WaitReason))
	}
	return r
}

// held explains a step whose change is approved and not carried out yet.
func (in Input) held(step ctldb.Step, r *Reason) {
	text := ""
	if in.Hold != nil && in.Hold.Reason == *step.WaitReason {
		text = ": " + in.Hold.Text
	}
	if *step.WaitReason == model.WaitPaused {
		r.is(facts{CodePaused, Operator, WakeRequest})
		r.Reason, r.On, r.Unblock = "its change is approved, and the install is paused"+text, "operator", "berth installs resume "+in.Install
		return
	}
	r.is(facts{CodeFreeze, Operator, WakeQueue})
	r.Reason, r.On, r.Unblock = "its change is approved, and goes on when the freeze ends"+text, "an admin", "berth freezes override "+in.Workflow.ID+" --reason TEXT"
}

// runningReason tells what a running step is at: mostly a job at the runner.
func (in Input) runningReason(step ctldb.Step) Reason {
	r := Reason{What: step.Name, ID: step.ID, On: "ctl-api", Reason: "it is about to be looked at"}
	r.is(facts{CodeControlPlane, ControlPlane, WakeQueue})
	for _, j := range in.Jobs {
		if optional.Value(j.StepID) == step.ID && (j.State == model.JobQueued || j.State == model.JobLeased) {
			in.jobReason(&r, j)
		}
	}
	return r
}

// jobReason tells what keeps a job that has not ended.
func (in Input) jobReason(r *Reason, j ctldb.JobsOfWorkflowRow) {
	r.ID, r.On, r.Unblock = j.ID, "the runner", ""
	if j.State == model.JobLeased {
		in.leased(r, j)
		return
	}
	problem := in.problem()
	switch {
	case in.Runner != nil && in.Runner.DisputedSince != nil:
		r.is(facts{CodeRunnerDisputed, Customer, WakeRunner})
		r.Reason = fmt.Sprintf("its %s is queued and nothing is given to the runner: %s", j.Operation, problem)
		r.On, r.Unblock = "the customer", "berth-runner replace --recovery FILE, on another machine"
	case in.Runner != nil && switchHolds(*in.Runner, j.Mutates):
		r.is(facts{CodeSwitch, Customer, WakeCustomer})
		r.Reason = fmt.Sprintf("its %s is queued, and %s", j.Operation, SwitchText(*in.Runner))
		r.On, r.Unblock = "the customer", "ask the customer to set the runner's switch to run"
	case problem != "" && !in.offline():
		r.is(facts{CodeRunnerProblem, TheRunner, WakeRunner})
		r.Reason = fmt.Sprintf("its %s is queued and the runner takes no work: %s", j.Operation, problem)
		r.Unblock = "look after the runner's machine; `berth-runner status` there shows the same"
	case in.offline():
		r.is(facts{CodeRunnerOffline, TheRunner, WakeRunner})
		r.Reason = fmt.Sprintf("its %s is queued and the runner %s", j.Operation, in.silent())
		r.Unblock = "start the runner, or read its log"
	default:
		r.is(facts{CodeRunnerQueue, TheRunner, WakeRunner})
		r.Reason = fmt.Sprintf("its %s is queued for the runner", j.Operation)
	}
}

// leased tells of a job that the runner has taken. It ends the job at its deadline.
func (in Input) leased(r *Reason, j ctldb.JobsOfWorkflowRow) {
	r.is(facts{CodeAtWork, TheRunner, WakeRunner})
	if j.LeasedAt != nil && j.TimeoutSeconds > 0 {
		r.Deadline = optional.Of(j.LeasedAt.Add(time.Duration(j.TimeoutSeconds) * time.Second))
	}
	r.Reason = fmt.Sprintf("its %s is being worked on, attempt %d", j.Operation, j.Attempt)
	problem := in.problem()
	switch {
	case in.Runner != nil && in.offline():
		r.is(facts{CodeRunnerOffline, TheRunner, WakeRunner})
		r.Reason = fmt.Sprintf("its %s was begun, attempt %d, and the runner %s", j.Operation, j.Attempt, in.silent())
		r.Unblock = "start the runner, or read its log"
	case problem != "":
		r.Reason += "; the runner says: " + problem
	}
}

// silent says since when nothing is heard of the runner, as the end of a sentence.
func (in Input) silent() string {
	if in.Runner == nil || in.Runner.LastSeenAt == nil {
		return "is not heard of"
	}
	return "is not heard of since " + timeText(*in.Runner.LastSeenAt)
}

// problem is what keeps the runner from working, "" for nothing.
func (in Input) problem() string {
	if in.Runner == nil {
		return ""
	}
	return RunnerProblem(*in.Runner)
}

func (in Input) offline() bool {
	return in.Runner == nil || in.Runner.LastSeenAt == nil || in.Now.Sub(*in.Runner.LastSeenAt) > OfflineAfter
}
